"""The confirmation daemon's store in PostgreSQL, in a schema of its own. Needs psycopg 3.

Writers of all machines take turns by one advisory lock, as SQLite's do by the file's: the audit is one chain. The anchor
is a file under the home of whoever runs the daemon, away from the database: who administers that cannot reach it.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self

from warmstart.confirm.store.protocol import MIGRATIONS_FOLDER, QUERIES, ServerAddress, Values
from warmstart.confirm.store.triggers import compare_guards
from warmstart.errors import ConfigError, StoreError, StoreFull, StoreTooNew, StoreUnreachable
from warmstart.store.sqlite_file import Migration, load_migrations

try:
    import psycopg

    from warmstart.confirm.store.postgres_address import SCHEMA, Server, connect, read_address
    from warmstart.confirm.store.postgres_triggers import FIND_TRIGGERS, restore_guards, wanted_guards
except ImportError as error:
    raise ConfigError("PostgreSQL needs psycopg; install it with: pip install 'warmstart[postgres]'") from error

MIGRATIONS = ("0001_confirm_postgres",)  # append only, never edit
TURNSTILE = 0x57524D43  # the advisory lock that writers take
_AT_ONCE = 2_000  # rows of a stream
_QUERIES = {name: re.sub(r":([a-z_]+)", r"%(\1)s", sql) for name, sql in QUERIES.items()}


def open_server(
    address: ServerAddress, patience: float, migrations: Sequence[Migration] | None = None
) -> ConfirmPostgresStore:
    """Make the schema where there is none, upgrade it where it is older."""
    server = read_address(address)
    server.anchor.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    known = load_migrations(MIGRATIONS_FOLDER, MIGRATIONS) if migrations is None else migrations
    store = ConfirmPostgresStore(server, patience, known)
    try:
        store.migrate()
    except BaseException:
        store.close()
        raise
    return store


def open_server_to_read(address: ServerAddress, patience: float) -> ConfirmPostgresStore:
    """Only to look: a session can change nothing by itself, see `connect`."""
    store = ConfirmPostgresStore(read_address(address), patience, load_migrations(MIGRATIONS_FOLDER, MIGRATIONS))
    try:
        store.check_schema()
    except BaseException:
        store.close()
        raise
    return store


def has_schema(address: ServerAddress, patience: float = 30.0) -> bool:
    """Whether there is a confirmation database: to look is not to make one."""
    known = load_migrations(MIGRATIONS_FOLDER, MIGRATIONS)
    with ConfirmPostgresStore(read_address(address), patience, known) as store:
        return store.find_schema() is not None


class ConfirmPostgresStore:
    """See store.py. A connection that is lost is made anew at the next call; nothing that was under way is repeated."""

    def __init__(self, server: Server, patience: float, migrations: Sequence[Migration]) -> None:
        self.place = server.place
        self.anchor_path = server.anchor
        self._server = server
        self._patience = patience
        self._migrations = migrations
        self._turn = threading.RLock()
        self._closed = False
        self._db: psycopg.Connection[Any] | None = None
        self._inside = False  # a transaction
        self._pause = (0.0, "")  # until when nobody tries to connect again, and why

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._turn:
            self._closed = True
            if self._db is not None:
                with suppress(psycopg.Error):
                    self._db.close()

    def rows(self, query: str, values: Values | None = None) -> list[Any]:
        with self._asking():
            cursor = self._first(_QUERIES[query], _fit(values or {}))
            return cursor.fetchall() if cursor.description else []

    def row(self, query: str, values: Values | None = None) -> Any:
        found = self.rows(query, values)
        return found[0] if found else None

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self._transaction("BEGIN READ WRITE"):
            self._take_turn()
            self._check_version()  # upgraded since we opened?
            yield
            if self._connection().execute("COMMIT").statusmessage != "COMMIT":  # that of a failed one is a ROLLBACK
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
        """Every change has its entry in the audit."""
        found = self.row("head")
        return int(found[0]) if found else 0

    def stream(self, query: str) -> Iterator[Any]:
        with self._asking(), self._connection().cursor(name="stream") as cursor:
            cursor.itersize = _AT_ONCE
            cursor.execute(_QUERIES[query])
            yield from cursor

    def check_guards(self) -> list[str]:
        with self._asking():
            found = {name: sql for _, name, sql in self._first(FIND_TRIGGERS).fetchall()}
        return compare_guards(wanted_guards(self._migrations), found)

    def restore_guards(self) -> None:
        with self._asking():
            restore_guards(self._connection(), self._migrations)

    def check_schema(self) -> None:
        """Raises StoreError where there is none, or not the one that this program knows."""
        if (number := self.find_schema()) is None:
            raise StoreError(f"{self.place}: holds no confirmation database")
        if number < len(self._migrations):
            raise StoreError(
                f"{self.place}: written by an older Warmstart (schema {number}, this one knows {len(self._migrations)}); "
                "it was left untouched. A start upgrades it"
            )

    def find_schema(self) -> int | None:
        """How many migrations it has had; None where there is no schema."""
        with self._asking():
            found = self._first(
                "SELECT to_regnamespace(%s) IS NOT NULL, to_regclass('migrations') IS NOT NULL, "
                "EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace(%s))",
                (SCHEMA, SCHEMA),
            ).fetchone()
            there, ours, anything = found or (False, False, False)
            if anything and not ours:
                raise StoreError(f"{self.place}: the schema {SCHEMA} is another program's; it was left untouched")
            return self._check_version() if ours else 0 if there else None

    def migrate(self) -> None:
        """Run what the schema has not had yet: all of it, or nothing. Processes may race here: each looks again where it
        is alone."""
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
        found = self._first("SELECT coalesce(max(number), 0) FROM migrations").fetchone()
        number = int(found[0]) if found else 0
        if number > len(self._migrations):
            raise StoreTooNew(
                f"{self.place}: written by a newer Warmstart (schema {number}, this one knows {len(self._migrations)}); "
                "it was left untouched. Upgrade Warmstart"
            )
        return number

    def _take_turn(self) -> None:
        """Until the end of the transaction. The server ends it where we fall silent: see `connect`."""
        self._connection().execute("SELECT pg_advisory_xact_lock(%s)", (TURNSTILE,))

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        """What was not committed inside is undone."""
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
        """Run a statement. Where it begins a transaction or stands alone, a connection that broke while nobody used it is
        made anew: nothing was under way. (Alone, nothing can be changed: see `connect`.)"""
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
        if self._inside:  # on another connection the rest would stand alone
            raise StoreUnreachable(f"{self.place}: the connection was lost in the middle of a change")
        self._db = self._connect()
        return self._db

    def _connect(self) -> psycopg.Connection[Any]:
        """Who reads must not be held up by one try after the other: after one that took long there is as long a pause."""
        until, why = self._pause
        if time.monotonic() < until:
            raise StoreUnreachable(why)
        began = time.monotonic()
        try:
            return connect(self._server, self._patience)
        except psycopg.Error as error:
            why = f"{self.place}: cannot be reached: {self._server.tell(error)}"
            ended = time.monotonic()
            self._pause = (ended + (ended - began), why)
            raise StoreUnreachable(why) from None

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Errors of psycopg as ours, and without the chain: whoever prints it whole must find no password."""
        with self._turn:
            try:
                yield
            except psycopg.errors.DiskFull:
                raise StoreFull(f"{self.place}: no space left; nothing of this change was kept") from None
            except psycopg.errors.LockNotAvailable:
                raise StoreError(f"{self.place}: others have kept it busy for too long; try again") from None
            except psycopg.Error as error:
                told = self._server.tell(error)
                if self._db is None or self._db.closed:
                    raise StoreUnreachable(f"{self.place}: the connection was lost: {told}") from None
                raise StoreError(f"{self.place}: {told}") from None


def _fit(values: Values) -> dict[str, Any]:
    """Truth is a number in our columns, and PostgreSQL's texts hold no NUL: nothing that has one is ever found."""
    fitting: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, bool):
            value = int(value)
        elif isinstance(value, str):
            value = value.replace("\0", "\ufffd")
        fitting[name] = value
    return fitting
