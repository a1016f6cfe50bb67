"""The confirmation store in PostgreSQL, in a schema of its own. Needs psycopg 3.

The audit is one chain, so the writers of all machines take turns, as in every store of ours. The anchor is a file under
the home of the user who runs the daemon, out of the database administrator's reach.

A write transaction is a pipeline: statements without rows are sent and not waited for, so that a change costs as many
ways to the server and back as it asks questions.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from warmstart.confirm.store.protocol import QUERIES, ServerAddress, Values, find_migrations
from warmstart.confirm.store.triggers import compare_guards
from warmstart.errors import ConfigError
from warmstart.store.sqlite_file import Migration

try:
    import psycopg

    from warmstart.confirm.store.postgres_address import SCHEMA, Server, read_address
    from warmstart.confirm.store.postgres_triggers import FIND_TRIGGERS, restore_guards, wanted_guards
    from warmstart.store.postgres_address import Waits
    from warmstart.store.postgres_connection import PostgresConnection, PostgresKind
except ImportError as error:
    raise ConfigError("PostgreSQL needs psycopg; install it with: pip install 'warmstart[postgres]'") from error

MIGRATIONS = find_migrations(postgres=True)
WRITE_LOCK = 0x57524D43  # id of the advisory lock that writers take
_SHORTEST_SILENCE = 1.0  # seconds: a busy machine may pause that long
_AT_ONCE = 2_000  # rows fetched at a time from a stream
_QUERIES = {name: re.sub(r":([a-z_]+)", r"%(\1)s", sql) for name, sql in QUERIES.items()}
_ANSWERING = {name for name, sql in QUERIES.items() if re.search(r"^SELECT\b|\bRETURNING\b", sql, re.MULTILINE)}


def _put_migration(db: psycopg.Connection[Any], migration: Migration) -> None:
    applied = int(time.time() * 1000)
    db.execute(_QUERIES["put_migration"], {"number": migration.number, "name": migration.name, "applied": applied})


def open_server(address: ServerAddress, patience: float) -> ConfirmPostgresStore:
    """Open a server's database, creating or upgrading the schema."""
    server = read_address(address)
    server.anchor.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    store = ConfirmPostgresStore(server, patience)
    try:
        store.migrate()
    except BaseException:
        store.close()
        raise
    return store


def open_server_to_read(address: ServerAddress, patience: float) -> ConfirmPostgresStore:
    """Open a server's database to read; statements outside a write transaction change nothing, see `connect`."""
    store = ConfirmPostgresStore(read_address(address), patience)
    try:
        store.check_schema()
    except BaseException:
        store.close()
        raise
    return store


def has_schema(address: ServerAddress, patience: float = 30.0) -> bool:
    """Return whether the server holds a confirmation database, without creating one."""
    with ConfirmPostgresStore(read_address(address), patience) as store:
        return store.find_schema() is not None


class ConfirmPostgresStore(PostgresConnection):
    """The ConfirmStore of protocol.py. A lost connection is replaced at the next call; an interrupted change is never
    repeated."""

    def __init__(self, server: Server, patience: float, migrations: Sequence[Migration] = MIGRATIONS) -> None:
        kind = PostgresKind(
            schema=SCHEMA,
            lock=WRITE_LOCK,
            migrations=migrations,
            put_migration=_put_migration,
            holds="confirmation database",
            upgrade="Start the daemon to upgrade it",
        )
        # Its changes are short, so a writer that is silent for a third of the patience of others has been cut off.
        super().__init__(server, kind, Waits(patience, max(_SHORTEST_SILENCE, patience / 3), 0.0))
        self.anchor_path = server.anchor
        self._pipeline: psycopg.Pipeline | None = None  # of the write transaction

    def rows(self, query: str, values: Values | None = None) -> list[Any]:
        with self._asking():
            cursor = self._first(_QUERIES[query], _fit(values or {}))
            if query not in _ANSWERING:
                return []
            self._sync()
            return cursor.fetchall()

    def row(self, query: str, values: Values | None = None) -> Any:
        rows = self.rows(query, values)
        return rows[0] if rows else None

    def put_all(self, query: str, values: Sequence[Values]) -> None:
        with self._asking():
            self._ask_many(_QUERIES[query], [_fit(row) for row in values])

    @contextmanager
    def writing(self) -> Iterator[None]:
        with super().writing(), self._pipelining():
            yield
            self._sync()

    @contextmanager
    def part(self) -> Iterator[None]:
        with super().part():
            yield
            self._sync()

    @contextmanager
    def _pipelining(self) -> Iterator[None]:
        """Send statements without waiting for each answer, where the client library can."""
        if not psycopg.Pipeline.is_supported():
            yield
            return
        with self._connection().pipeline() as self._pipeline:
            try:
                yield
            finally:
                self._pipeline = None

    def _sync(self) -> None:
        """Wait for all statements sent so far, and raise the first error. A mere flush would leave the server waiting for
        more of the pipeline: its time limit for silent clients would not run."""
        if self._pipeline is not None:
            self._pipeline.sync()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._transaction("BEGIN", locked=True):
            yield

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ"):
            yield

    def version(self) -> int:
        """Return the newest sequence: every change has an audit entry."""
        head = self.row("head")
        return int(head[0]) if head else 0

    def stream(self, query: str) -> Iterator[Any]:
        with self._asking(), self._connection().cursor(name="stream") as cursor:
            cursor.itersize = _AT_ONCE
            cursor.execute(_QUERIES[query])
            yield from cursor

    def check_guards(self) -> list[str]:
        with self._asking():
            guards = {name: sql for _, name, sql in self._first(FIND_TRIGGERS).fetchall()}
        return compare_guards(wanted_guards(self._kind.migrations), guards)

    def restore_guards(self) -> None:
        with self._asking():
            restore_guards(self._connection(), self._kind.migrations)


def _fit(values: Values) -> dict[str, Any]:
    """Convert booleans to the integers of our columns, and replace NUL, which PostgreSQL's texts cannot hold."""
    fitting: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, bool):
            value = int(value)
        elif isinstance(value, str):
            value = value.replace("\0", "\ufffd")
        fitting[name] = value
    return fitting
