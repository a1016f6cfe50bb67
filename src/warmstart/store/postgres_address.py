"""Parse a PostgreSQL address and connect to it, without ever showing the password that it may hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import psycopg

from warmstart.errors import ConfigError, StoreError

_SHORTEST_CONNECT = 2  # seconds; libpq knows no shorter wait

# Defaults for parameters that the address does not set: a silent server is noticed within seconds, not hours.
_USUAL = {
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
SELECT set_config('search_path', '{schema}', false),
    set_config('lock_timeout', '{patience}ms', false),
    set_config('statement_timeout', '{answer}ms', false),
    set_config('idle_in_transaction_session_timeout', '{silence}ms', false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('default_transaction_read_only', 'on', false),
    set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), false)
"""


@dataclass(frozen=True)
class PostgresServer:
    """A parsed address."""

    place: str  # for messages: host, port and database
    parameters: dict[str, Any] = field(repr=False)  # for psycopg; may hold a password

    def describe_error(self, error: Exception) -> str:
        """Return the first line of an error, without the password."""
        text = (str(error).strip().splitlines() or [type(error).__name__])[0]
        password = str(self.parameters.get("password") or "")
        return text.replace(password, "***") if password else text


@dataclass(frozen=True)
class Waits:
    """How long a connection waits, in seconds."""

    patience: float  # for other writers
    silence: float  # until the server ends a client that began a change and says nothing more
    answer: float  # for the answer to one statement; 0: as long as it takes
    spare: float = 2.0  # after which we give the connection up, where the server itself reports no timeout


def read_server(url: str, program: str) -> PostgresServer:
    """Parse an address. The ConfigError for a bad one does not repeat it: a part of it may be the password."""
    try:
        given = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        given = {"port": "?"}
    host, port, name = (str(given.get(key) or "") for key in ("host", "port", "dbname"))
    if "@" in host + name or (port and not port.replace(",", "").isdigit()):
        raise ConfigError(
            "not the address of a PostgreSQL server; give postgresql://USER@HOST:PORT/DATABASE, "
            "and write : / @ % in a user or password as %3A %2F %40 %25"
        )
    shown = f"{host}:{port}" if port else host
    place = f"postgresql://{shown if not host.startswith('/') else ''}/{name}"
    return PostgresServer(place, _USUAL | {"application_name": program} | given)


def connect(server: PostgresServer, schema: str, waits: Waits, **options: Any) -> psycopg.Connection[Any]:
    """Connect to a server and make the settings of the session. `options` are psycopg's."""
    parameters = dict(server.parameters)
    if waits.patience < int(parameters["connect_timeout"]):
        parameters["connect_timeout"] = max(_SHORTEST_CONNECT, int(waits.patience))
    db: psycopg.Connection[Any] = psycopg.connect(autocommit=True, **parameters, **options)
    try:
        if db.info.parameter_status("server_encoding") != "UTF8":
            raise StoreError(f"{server.place}: the database must have the encoding UTF8")
        milliseconds = {name: int(getattr(waits, name) * 1000) for name in ("patience", "answer", "silence")}
        milliseconds["patience"] = max(1, milliseconds["patience"])  # 0 would be for ever
        db.execute(_SETTINGS.format(schema=schema, **milliseconds))
    except BaseException:
        db.close()
        raise
    return db
