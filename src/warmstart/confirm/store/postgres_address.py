"""The daemon's PostgreSQL server: its address, and the file on this machine that anchors the audit."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from warmstart.confirm.store.protocol import ServerAddress
from warmstart.store.postgres_address import PostgresServer, read_server

SCHEMA = "warmstart_confirm"


@dataclass(frozen=True)
class Server(PostgresServer):
    """A parsed address."""

    anchor: Path  # the file that holds the audit's newest hash


def read_address(address: ServerAddress) -> Server:
    """Parse an address. The ConfigError for a bad one does not repeat it: a part of it may be the password."""
    server = read_server(address.url, "warmstart confirm")
    host, port, name = (str(server.parameters.get(key) or "") for key in ("host", "port", "dbname"))
    mark = hashlib.sha256(f"{host}:{port}/{name}".encode()).hexdigest()[:12]
    return Server(server.place, server.parameters, address.home / f"confirm-{mark}.anchor")
