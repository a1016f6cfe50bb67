"""Where a PostgreSQL server is and how it is connected to, without ever showing the password that its address may hold."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from warmstart.confirm.store.protocol import ServerAddress
from warmstart.errors import ConfigError, StoreError

SCHEMA = "warmstart_confirm"
_SHORTEST_SILENCE = 1.0  # seconds: a busy machine is not a dead one

# Where the address does not say: a server that falls silent is noticed within seconds, not hours.
_USUAL = {
    "application_name": "warmstart confirm",
    "client_encoding": "utf8",
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}

# What a transaction or a lone statement goes by. Reads see what was committed before they began, not before the
# transaction waited for its turn. What changes something must say so: BEGIN READ WRITE. Who holds everybody up and falls
# silent is ended by the server. A commit is on the disk.
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
    """An address, read."""

    place: str  # for messages: host, port and database
    anchor: Path  # the file that holds the audit's newest hash
    parameters: dict[str, Any] = field(repr=False)  # for psycopg; may hold a password

    def tell(self, error: Exception) -> str:
        """What an error says, in one line."""
        text = (str(error).strip().splitlines() or [type(error).__name__])[0]
        password = str(self.parameters.get("password") or "")
        return text.replace(password, "***") if password else text


def read_address(address: ServerAddress) -> Server:
    """Raises ConfigError where it is none, without repeating it: what is misread may be the password."""
    try:
        given = psycopg.conninfo.conninfo_to_dict(address.url)
    except psycopg.Error:
        given = {"port": "?"}
    host, port, name = (str(given.get(key) or "") for key in ("host", "port", "dbname"))
    if "@" in host + name or (port and not port.replace(",", "").isdigit()):
        raise ConfigError(
            "no address of a PostgreSQL server: it is postgresql://USER@HOST:PORT/DATABASE, "
            "and in a user or password : / @ % are written as %3A %2F %40 %25"
        )
    mark = hashlib.sha256(f"{host}:{port}/{name}".encode()).hexdigest()[:12]
    shown = f"{host}:{port}" if port else host
    return Server(
        f"postgresql://{shown if not host.startswith('/') else ''}/{name}",
        address.home / f"confirm-{mark}.anchor",
        _USUAL | given,
    )


def connect(server: Server, patience: float) -> psycopg.Connection[Any]:
    """`patience`: seconds to wait for others' writes. Who falls silent in the middle of one has a third of that."""
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
