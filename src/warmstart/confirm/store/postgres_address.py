"""Parse a PostgreSQL address and connect to it, without ever showing the password that it may hold."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from warmstart.confirm.store.protocol import ServerAddress
from warmstart.errors import ConfigError, StoreError

SCHEMA = "warmstart_confirm"
_SHORTEST_SILENCE = 1.0  # seconds: a busy machine may pause that long

# Defaults for parameters that the address does not set: a silent server is noticed within seconds, not hours.
_USUAL = {
    "application_name": "warmstart confirm",
    "client_encoding": "utf8",
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}

# Settings of each session. Read committed: a read sees what was committed before it began, not before the transaction
# waited for the lock. Read only: a change must say BEGIN READ WRITE. The idle timeout lets the server end a client that
# holds the lock and falls silent. synchronous_commit: a commit is on disk.
_SETTINGS = """
SELECT set_config('search_path', %(schema)s, false),
    set_config('lock_timeout', %(patience)s, false),
    set_config('idle_in_transaction_session_timeout', %(silence)s, false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('default_transaction_read_only', 'on', false),
    set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), false)
"""


@dataclass(frozen=True)
class Server:
    """A parsed address."""

    place: str  # for messages: host, port and database
    anchor: Path  # the file that holds the audit's newest hash
    parameters: dict[str, Any] = field(repr=False)  # for psycopg; may hold a password

    def describe_error(self, error: Exception) -> str:
        """Return the first line of an error, without the password."""
        text = (str(error).strip().splitlines() or [type(error).__name__])[0]
        password = str(self.parameters.get("password") or "")
        return text.replace(password, "***") if password else text


def read_address(address: ServerAddress) -> Server:
    """Parse an address. The ConfigError for a bad one does not repeat it: a part of it may be the password."""
    try:
        given = psycopg.conninfo.conninfo_to_dict(address.url)
    except psycopg.Error:
        given = {"port": "?"}
    host, port, name = (str(given.get(key) or "") for key in ("host", "port", "dbname"))
    if "@" in host + name or (port and not port.replace(",", "").isdigit()):
        raise ConfigError(
            "not the address of a PostgreSQL server; give postgresql://USER@HOST:PORT/DATABASE, "
            "and write : / @ % in a user or password as %3A %2F %40 %25"
        )
    mark = hashlib.sha256(f"{host}:{port}/{name}".encode()).hexdigest()[:12]
    shown = f"{host}:{port}" if port else host
    return Server(
        f"postgresql://{shown if not host.startswith('/') else ''}/{name}",
        address.home / f"confirm-{mark}.anchor",
        _USUAL | given,
    )


def connect(server: Server, patience: float) -> psycopg.Connection[Any]:
    """Connect. `patience`: seconds to wait for other writers; the server ends a writer that is silent for a third of
    that."""
    db: psycopg.Connection[Any] = psycopg.connect(autocommit=True, **server.parameters)
    try:
        if db.info.parameter_status("server_encoding") != "UTF8":
            raise StoreError(f"{server.place}: the database must have the encoding UTF8")
        silence = max(_SHORTEST_SILENCE, patience / 3)
        waits = {"patience": f"{int(patience * 1000)}ms", "silence": f"{int(silence * 1000)}ms"}
        db.execute(_SETTINGS, {"schema": SCHEMA} | waits)
    except BaseException:
        db.close()
        raise
    return db
