"""The confirmation store in PostgreSQL, in a schema of its own. Needs psycopg 3.

The audit is one chain, so the writers of all machines take turns through one advisory lock, as SQLite's do through the
file lock. The anchor is a file under the home of the user who runs the daemon, out of the database administrator's
reach.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self

from warmstart.confirm.store.protocol import QUERIES, ServerAddress, Values, find_migrations
from warmstart.confirm.store.triggers import compare_guards
from warmstart.errors import ConfigError, StoreError, StoreFull, StoreTooNew, StoreUnreachable
from warmstart.store.sqlite_file import Migration

try:
    import psycopg

    from warmstart.confirm.store.postgres_address import SCHEMA, Server, connect, read_address
    from warmstart.confirm.store.postgres_triggers import FIND_TRIGGERS, restore_guards, wanted_guards
except ImportError as error:
    raise ConfigError("PostgreSQL needs psycopg; install it with: pip install 'warmstart[postgres]'") from error

MIGRATIONS = find_migrations(postgres=True)
WRITE_LOCK = 0x57524D43  # id of the advisory lock that writers take
_AT_ONCE = 2_000  # rows fetched at a time from a stream
_QUERIES = {name: re.sub(r":([a-z_]+)", r"%(\1)s", sql) for name, sql in QUERIES.items()}


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


class ConfirmPostgresStore:
    """The ConfirmStore of protocol.py. A lost connection is replaced at the next call; an interrupted change is never
    repeated."""

    def __init__(self, server: Server, patience: float, migrations: Sequence[Migration] = MIGRATIONS) -> None:
        self.place = server.place
        self.anchor_path = server.anchor
        self._server = server
        self._patience = patience
        self._migrations = migrations
        self._lock = threading.RLock()
        self._closed = False
        self._db: psycopg.Connection[Any] | None = None
        self._inside = False  # a transaction
        self._pause = (0.0, "")  # no new connection attempt until this time, and why

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._db is not None:
                with suppress(psycopg.Error):
                    self._db.close()

    def rows(self, query: str, values: Values | None = None) -> list[Any]:
        with self._asking():
            cursor = self._first(_QUERIES[query], _fit(values or {}))
            return cursor.fetchall() if cursor.description else []

    def row(self, query: str, values: Values | None = None) -> Any:
        rows = self.rows(query, values)
        return rows[0] if rows else None

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self._transaction("BEGIN READ WRITE"):
            self._take_turn()
            self._check_version()  # upgraded since we opened?
            yield
            if self._connection().execute("COMMIT").statusmessage != "COMMIT":  # a failed transaction answers ROLLBACK
                raise StoreError(f"{self.place}: a statement failed; nothing of this change was kept")

    @contextmanager
    def part(self) -> Iterator[None]:
        with self._asking():
            self._connection().execute("SAVEPOINT part")
            try:
                yield
            except BaseException:
                if self._db is not None and not self._db.closed:
                    self._db.execute("ROLLBACK TO SAVEPOINT part; RELEASE SAVEPOINT part")
                raise
            self._connection().execute("RELEASE SAVEPOINT part")

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._transaction("BEGIN"):
            self._take_turn()
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
        return compare_guards(wanted_guards(self._migrations), guards)

    def restore_guards(self) -> None:
        with self._asking():
            restore_guards(self._connection(), self._migrations)

    def check_schema(self) -> None:
        """Raise StoreError unless there is a schema of the version that this program knows."""
        if (number := self.find_schema()) is None:
            raise StoreError(f"{self.place}: holds no confirmation database")
        if number < len(self._migrations):
            raise StoreError(
                f"{self.place}: written by an older Warmstart (schema {number}, this one knows {len(self._migrations)}); "
                "it was left untouched. Start the daemon to upgrade it"
            )

    def find_schema(self) -> int | None:
        """Return how many migrations the schema has had, or None if there is no schema."""
        with self._asking():
            row = self._first(
                "SELECT to_regnamespace(%s) IS NOT NULL, to_regclass('migrations') IS NOT NULL, "
                "EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace(%s))",
                (SCHEMA, SCHEMA),
            ).fetchone()
            exists, ours, anything = row or (False, False, False)
            if anything and not ours:
                raise StoreError(f"{self.place}: the schema {SCHEMA} is another program's; it was left untouched")
            return self._check_version() if ours else 0 if exists else None

    def migrate(self) -> None:
        """Run all missing migrations in one transaction. Processes may race here, so each looks again under the lock."""
        if self.find_schema() == len(self._migrations):
            return
        with self._transaction("BEGIN READ WRITE"):
            self._take_turn()
            done, db = self.find_schema(), self._connection()
            if done is None:
                db.execute(f"CREATE SCHEMA {SCHEMA}")
            for number, name, sql in self._migrations[done or 0 :]:
                db.execute(sql)
                applied = int(time.time() * 1000)
                db.execute(_QUERIES["put_migration"], {"number": number, "name": name, "applied": applied})
            db.execute("COMMIT")

    def _check_version(self) -> int:
        row = self._first("SELECT coalesce(max(number), 0) FROM migrations").fetchone()
        number = int(row[0]) if row else 0
        if number > len(self._migrations):
            raise StoreTooNew(
                f"{self.place}: written by a newer Warmstart (schema {number}, this one knows {len(self._migrations)}); "
                "it was left untouched. Upgrade Warmstart"
            )
        return number

    def _take_turn(self) -> None:
        """Take the write lock until the transaction ends. The server ends it if this client falls silent: see `connect`."""
        self._connection().execute("SELECT pg_advisory_xact_lock(%s)", (WRITE_LOCK,))

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        """Run a transaction and roll back what the body did not commit."""
        with self._asking():
            assert not self._inside, "a transaction inside another"
            self._first(begin)
            self._inside = True
            try:
                yield
            finally:
                self._inside = False
                db = self._db
                if db and not db.closed and db.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                    db.execute("ROLLBACK")

    def _first(self, sql: str, values: Any = None) -> psycopg.Cursor[Any]:
        """Run a statement that begins a transaction or stands alone. A connection that broke while idle is replaced,
        because nothing was in progress. (A lone statement can change nothing: see `connect`.)"""
        db = self._connection()
        try:
            return db.execute(sql, values)
        except psycopg.Error:
            if self._inside or not db.closed:
                raise
            return self._connection().execute(sql, values)

    def _connection(self) -> psycopg.Connection[Any]:
        if self._closed:
            raise StoreError(f"{self.place}: the store is closed")
        if self._db is not None and not self._db.closed:
            return self._db
        if self._inside:  # on another connection, the rest of the change would be applied alone
            raise StoreUnreachable(f"{self.place}: the connection was lost in the middle of a change")
        self._db = self._connect()
        return self._db

    def _connect(self) -> psycopg.Connection[Any]:
        """Connect. After a failed attempt, refuse at once for as long as that attempt took, so that readers are not held
        up by one attempt after the other."""
        until, why = self._pause
        if time.monotonic() < until:
            raise StoreUnreachable(why)
        began = time.monotonic()
        try:
            return connect(self._server, self._patience)
        except psycopg.Error as error:
            why = f"{self.place}: cannot be reached: {self._server.describe_error(error)}"
            ended = time.monotonic()
            self._pause = (ended + (ended - began), why)
            raise StoreUnreachable(why) from None

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Raise psycopg's errors as ours, without the cause: a printed traceback must not show the password."""
        with self._lock:
            try:
                yield
            except psycopg.errors.DiskFull:
                raise StoreFull(f"{self.place}: no space left; nothing of this change was kept") from None
            except psycopg.errors.LockNotAvailable:
                raise StoreError(f"{self.place}: other writers kept it busy for too long; try again") from None
            except psycopg.Error as error:
                message = self._server.describe_error(error)
                if self._db is None or self._db.closed:
                    raise StoreUnreachable(f"{self.place}: the connection was lost: {message}") from None
                raise StoreError(f"{self.place}: {message}") from None


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
