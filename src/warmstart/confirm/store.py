"""The confirmation daemon's own database: a SQLite file, or PostgreSQL for teams, by the same statements.

What a returned `with writing()` held is on the disk. One thread at a time: a store that is shared takes turns under a
lock. Statements are named in queries.sql and bound by name; schemas and triggers are each database's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, Self

from warmstart.errors import ConfigError

Values = Mapping[str, Any]
GUARDS = {"audit_is_never_changed", "audit_is_never_shortened", "audit_only_grows"}


def load_queries(path: Path) -> dict[str, str]:
    """The statements of a file, by the names that begin them."""
    _, *parts = path.read_text("utf-8").split("-- name: ")
    return {name.strip(): sql.strip() for name, _, sql in (part.partition("\n") for part in parts)}


QUERIES = load_queries(Path(__file__).parent / "queries.sql")


class ConfirmStore(Protocol):
    """A database. `open_store` opens one; use it in a `with`, or close it."""

    place: str  # for messages, without secrets
    anchor_path: Path

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def close(self) -> None: ...

    def rows(self, query: str, values: Values | None = None) -> list[Any]:
        """What a statement answers."""

    def row(self, query: str, values: Values | None = None) -> Any:
        """The first row, or None."""

    def writing(self) -> AbstractContextManager[None]:
        """A transaction, alone: all of it is on the disk when this returns, or nothing of it after an error."""

    def part(self) -> AbstractContextManager[None]:
        """Of a transaction: an error undoes only this."""

    def alone(self) -> AbstractContextManager[None]:
        """Nobody writes meanwhile, in no process; nothing is written here either."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Several reads of one moment, whatever others write meanwhile."""

    def version(self) -> int:
        """Another number as soon as anyone else has written: cheap to ask often."""

    def missing_guards(self) -> list[str]:
        """Triggers of the audit that somebody took away."""


def open_store(where: Path | str, *, patience: float = 30.0) -> ConfirmStore:
    """Open the database at a path or `postgresql://...`, making it where there is none.

    `patience`: seconds to wait for another process's write.
    """
    if is_url(where):
        from warmstart.confirm.store_postgres import open_server

        return open_server(str(where), patience)
    from warmstart.confirm.store_sqlite import open_file

    return open_file(Path(where), patience)


def is_url(where: Path | str) -> bool:
    """Whether that is a server's address and no file. Raises ConfigError for servers that we do not know."""
    text = str(where)
    if isinstance(where, str) and text.startswith(("postgresql://", "postgres://")):
        return True
    if "://" in text:
        raise ConfigError(f"{text.partition('://')[0]}://: no store; give the path of a file or postgresql://...")
    return False
