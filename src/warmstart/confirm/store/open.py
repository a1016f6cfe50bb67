"""Open the confirmation daemon's database: a SQLite file or a PostgreSQL server."""

from __future__ import annotations

from pathlib import Path

from warmstart import config
from warmstart.confirm.store.protocol import ConfirmStore, Database, ServerAddress
from warmstart.errors import ConfigError


def open_store(where: Database, *, patience: float = 30.0) -> ConfirmStore:
    """Open the database at a path or `postgresql://...`, creating it if there is none.

    `patience`: seconds to wait for another process's write.
    """
    place = locate(where)
    if isinstance(place, ServerAddress):
        from warmstart.confirm.store.postgres import open_server

        return open_server(place, patience)
    from warmstart.confirm.store.sqlite import open_file

    return open_file(place, patience)


def open_to_read(where: Database, *, patience: float = 30.0) -> ConfirmStore:
    """Open a database to read: nothing is created, upgraded or left behind, so read-only copies can be read."""
    place = locate(where)
    if isinstance(place, ServerAddress):
        from warmstart.confirm.store.postgres import open_server_to_read

        return open_server_to_read(place, patience)
    from warmstart.confirm.store.sqlite import open_file_to_read

    return open_file_to_read(place, patience)


def locate(where: Database, home: Path | None = None) -> Path | ServerAddress:
    """Return a file's path or a server's address. Raise ConfigError for an unknown kind of server."""
    if isinstance(where, Path | ServerAddress):
        return where
    if where.startswith(("postgresql://", "postgres://")):
        return ServerAddress(where, home or config.find_homes()[1])
    if "://" in where:
        kind = where.partition("://")[0]
        raise ConfigError(f"{kind}://: not a supported database; give the path of a file or postgresql://...")
    return Path(where).expanduser()
