"""A connection to PostgreSQL whose users take turns: open, upgrade, write, and give up in time. Needs psycopg 3.

Writers of all machines take turns through one advisory lock, as SQLite's do through the file lock, so what a transaction
has read still holds when it writes. A lost connection is replaced at the next call; an interrupted change is never
repeated.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import psycopg

from warmstart.errors import StoreDenied, StoreError, StoreFull, StoreTooLong, StoreTooNew, StoreUnreachable
from warmstart.store.postgres_address import PostgresServer, Waits, connect
from warmstart.store.sqlite_file import Migration

_VERSION = "SELECT coalesce(max(number), 0) FROM migrations"
logging.getLogger("psycopg").addHandler(logging.NullHandler())  # it would print to a person's screen; we raise errors
_LOOK = 0.25  # seconds between two looks at a statement's deadline


class PostgresKind(NamedTuple):
    """The properties of one store's schema."""

    schema: str  # its name in the database
    lock: int  # id of the advisory lock that writers take
    migrations: Sequence[Migration]  # those that this program knows
    put_migration: Callable[[psycopg.Connection[Any], Migration], object]  # records one
    holds: str  # what it is, for messages
    upgrade: str  # advice where it is old
    options: Mapping[str, Any] = MappingProxyType({})  # psycopg's, for each connection

    @property
    def number(self) -> int:
        """The number of the newest schema that this program knows."""
        return self.migrations[-1].number


class PostgresConnection:
    """A connection whose users take turns. Use it as a context manager, or close() it."""

    def __init__(self, server: PostgresServer, kind: PostgresKind, waits: Waits) -> None:
        self.place = server.place
        self._server = server
        self._kind = kind
        self._waits = waits
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._closed = False
        self._db: psycopg.Connection[Any] | None = None
        self._inside = False  # a transaction
        self._pause = (0.0, "")  # no new connection attempt until this time, and why
        self._watch = _Watch(waits.answer + waits.spare) if waits.answer else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._closed = True
            if self._watch is not None:
                self._watch.stop()
            if self._db is not None and self._process == os.getpid():
                with suppress(psycopg.Error):
                    self._db.close()

    # Transactions

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run a transaction: all of it is on the disk when this returns, or none of it after an error."""
        with self._transaction("BEGIN READ WRITE", locked=True, then=_VERSION) as cursor:
            self._check_version(cursor)  # upgraded since we opened?
            yield
            self._commit()

    @contextmanager
    def part(self) -> Iterator[None]:
        """Run a part of a transaction: an error undoes this part only."""
        with self._asking():
            if not self._inside:
                raise StoreError(f"{self.place}: no transaction has begun, or an earlier error has already undone it")
            self._ask("SAVEPOINT part")
            try:
                yield
            except BaseException:
                if self._db is not None and not self._db.closed:
                    self._ask("ROLLBACK TO SAVEPOINT part")  # one by one: a pipeline takes single statements
                    self._ask("RELEASE SAVEPOINT part")
                raise
            self._ask("RELEASE SAVEPOINT part")

    @contextmanager
    def _transaction(self, begin: str, *, locked: bool = False, then: str = "") -> Iterator[psycopg.Cursor[Any]]:
        """Run a transaction and roll back what the body did not commit. `locked`: no other writer runs meanwhile.

        Yield the answer of `then`, which goes to the server with the beginning: others wait as long as we hold the lock.
        """
        with self._asking():
            if self._inside:
                raise StoreError(f"{self.place}: a transaction inside another")
            lock = f"SELECT pg_advisory_xact_lock({self._kind.lock})" if locked else ""
            try:  # the server ends the transaction if this client falls silent: see `connect`
                cursor = self._first("; ".join(filter(None, (begin, lock, then))))
                self._inside = True
                while cursor.nextset():
                    pass
                yield cursor
            finally:
                self._inside = False
                db = self._db
                if db and not db.closed and db.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                    self._ask("ROLLBACK")

    def _commit(self) -> None:
        if self._ask("COMMIT").statusmessage != "COMMIT":  # a failed transaction answers ROLLBACK
            raise StoreError(f"{self.place}: a statement failed; nothing of this change was kept")

    # The schema

    def check_schema(self) -> None:
        """Raise StoreError unless there is a schema of the version that this program knows."""
        if (number := self.find_schema()) is None:
            raise StoreError(f"{self.place}: holds no {self._kind.holds}")
        if number < self._kind.number:
            raise StoreError(
                f"{self.place}: written by an older Warmstart (schema {number}, this one knows {self._kind.number}); "
                f"it was left untouched. {self._kind.upgrade}"
            )

    def find_schema(self) -> int | None:
        """Return the number of the schema, 0 if it is empty, or None if there is none."""
        with self._asking():
            name = self._kind.schema
            row = self._first(
                f"SELECT to_regnamespace('{name}') IS NOT NULL, to_regclass('{name}.migrations') IS NOT NULL, "
                f"EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace('{name}'))"
            ).fetchone()
            exists, ours, anything = row or (False, False, False)
            if anything and not ours:
                raise StoreError(f"{self.place}: the schema {name} is another program's; it was left untouched")
            return self._check_version() if ours else 0 if exists else None

    def migrate(self) -> None:
        """Run all missing migrations in one transaction. Processes may race here, so each looks again under the lock."""
        if self.find_schema() == self._kind.number:
            return
        with self._transaction("BEGIN READ WRITE", locked=True):
            done = self.find_schema()
            if done is None:
                self._ask(f"CREATE SCHEMA {self._kind.schema}")
            for migration in self._kind.migrations:
                if migration.number > (done or 0):
                    self._ask(migration.sql)
                    self._kind.put_migration(self._connection(), migration)
            self._commit()

    def _check_version(self, cursor: psycopg.Cursor[Any] | None = None) -> int:
        row = (cursor or self._first(_VERSION)).fetchone()
        number = int(row[0]) if row else 0
        if number > self._kind.number:
            raise StoreTooNew(
                f"{self.place}: written by a newer Warmstart (schema {number}, this one knows {self._kind.number}); "
                "it was left untouched. Upgrade Warmstart"
            )
        return number

    # Statements

    def _first(self, sql: str, values: Any = None) -> psycopg.Cursor[Any]:
        """Run a statement that begins a transaction or stands alone. A connection that broke while idle is replaced,
        because nothing was in progress. (A lone statement can change nothing: see `connect`.)"""
        db = self._connection()
        try:
            return self._ask(sql, values)
        except psycopg.Error:
            if self._inside or not db.closed or (self._watch is not None and self._watch.has_cut):
                raise
            return self._ask(sql, values)

    def _ask(self, sql: str, values: Any = None) -> psycopg.Cursor[Any]:
        """Run a statement, and give the connection up if no answer comes in time."""
        db = self._connection()
        if self._watch is None:
            return db.execute(sql, values)
        with self._watch.over(db):
            return db.execute(sql, values)

    def _ask_many(self, sql: str, rows: Sequence[Any]) -> None:
        """Run a statement once per row as a part of a transaction, without waiting for each answer."""
        if not self._inside:
            raise StoreError(f"{self.place}: no transaction has begun, or an earlier error has already undone it")
        db = self._connection()
        try:
            with self._watch.over(db) if self._watch else nullcontext(), db.pipeline(), db.cursor() as cursor:
                db.execute("SAVEPOINT part")
                cursor.executemany(sql, rows)
                db.execute("RELEASE SAVEPOINT part")
        except psycopg.Error:
            if not db.closed:
                self._ask("ROLLBACK TO SAVEPOINT part; RELEASE SAVEPOINT part")
            raise

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
            return connect(self._server, self._kind.schema, self._waits, **self._kind.options)
        except psycopg.Error as error:
            why = f"{self.place}: cannot be reached: {self._server.describe_error(error)}"
            ended = time.monotonic()
            self._pause = (ended + (ended - began), why)
            raise StoreUnreachable(why) from None

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Raise psycopg's errors as ours, without the cause: a printed traceback must not show the password."""
        if os.getpid() != self._process:
            raise StoreError(f"{self.place}: the store was opened before a fork; open it again in the new process")
        with self._lock:
            try:
                yield
            except psycopg.errors.DiskFull:
                raise StoreFull(f"{self.place}: no space left; nothing of this change was kept") from None
            except psycopg.errors.ProgramLimitExceeded:
                raise StoreTooLong(
                    f"{self.place}: an id, name or path is too long for its index (about 2,700 bytes); nothing of it was kept"
                ) from None
            except psycopg.errors.LockNotAvailable:
                raise StoreError(f"{self.place}: other writers kept it busy for too long; try again") from None
            except psycopg.errors.QueryCanceled:
                raise StoreError(
                    f"{self.place}: the server took longer than {self._waits.answer:.0f} s, so nothing was kept; try again"
                ) from None
            except psycopg.errors.InsufficientPrivilege as error:
                raise StoreDenied(
                    f"{self.place}: your role may not do that: {self._server.describe_error(error)}"
                ) from None
            except psycopg.Error as error:
                raise self._explain(error) from None

    def _explain(self, error: psycopg.Error) -> StoreError:
        message = self._server.describe_error(error)
        if self._db is not None and not self._db.closed:
            return StoreError(f"{self.place}: {message}")
        if self._watch is not None and self._watch.has_cut:
            message = f"no answer within {self._waits.answer + self._waits.spare:.0f} s"
        return StoreUnreachable(f"{self.place}: the connection was lost: {message}")


class _Watch:
    """Cuts a connection whose statement is not answered in time.

    A stalled network or a stopped server still acknowledges bytes, so that neither keep-alives nor timeouts of the
    server notice it. One thread looks at the deadline now and then, which costs a statement next to nothing.
    """

    def __init__(self, limit: float) -> None:
        self.has_cut = False  # whether the last statement was cut off
        self._limit = limit
        self._lock = threading.Lock()
        self._until = 0.0  # 0: no statement is under way
        self._socket = -1
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def over(self, db: psycopg.Connection[Any]) -> Iterator[None]:
        """Watch one statement."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._look, name="warmstart store watch", daemon=True)
            self._thread.start()
        with self._lock:
            self.has_cut = False
            self._socket = db.fileno()
            self._until = time.monotonic() + self._limit
        try:
            yield
        finally:
            with self._lock:
                self._until = 0.0

    def stop(self) -> None:
        self._stopped.set()

    def _look(self) -> None:
        while not self._stopped.wait(_LOOK):
            with self._lock:
                if self._until and time.monotonic() > self._until:
                    self._until, self.has_cut = 0.0, True
                    with suppress(OSError), socket.socket(fileno=os.dup(self._socket)) as copy:
                        copy.shutdown(socket.SHUT_RDWR)
