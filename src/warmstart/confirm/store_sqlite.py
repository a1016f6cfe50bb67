"""The confirmation daemon's store in one SQLite file, apart from what Warmstart learns from."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import apsw

from warmstart.confirm.store import GUARDS, QUERIES, Values, load_migrations
from warmstart.errors import StoreError, StoreTooNew
from warmstart.store import check_library, create_file
from warmstart.store.sqlite import Migration, Waiting, enter_wal, explain

APPLICATION_ID = 0x57524D43  # "WRMC"
MIGRATIONS = ("0001_confirm",)  # append only, never edit: what is recorded in someone's file does not run again

SETTINGS = """
PRAGMA synchronous = FULL;
PRAGMA foreign_keys = ON;
PRAGMA recursive_triggers = ON;
PRAGMA cache_size = -8000;
"""


def open_file(path: Path, patience: float, migrations: Sequence[Migration] | None = None) -> SqliteStore:
    """Make the file where there is none, upgrade it where it is older."""
    path = path.expanduser().resolve()
    check_library(apsw.sqlite_lib_version())
    if path.exists() and not path.is_file():
        raise StoreError(f"{path}: not a file")
    create_file(path)
    return SqliteStore(path, patience, load_migrations(MIGRATIONS) if migrations is None else migrations)


class SqliteStore:
    """See store.py."""

    def __init__(self, path: Path, patience: float, migrations: Sequence[Migration]) -> None:
        self.path = path
        self.place = str(path)
        self.anchor_path = path.with_name(path.name + ".anchor")
        self._turn = threading.RLock()
        self._known = len(migrations)
        self._db = _connect(path, patience, migrations)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._turn:
            self._db.close()

    def rows(self, query: str, values: Values | None = None) -> list[Any]:
        """What a statement answers."""
        with self._asking():
            try:
                return self._db.execute(QUERIES[query], values or {}).fetchall()
            except UnicodeDecodeError as error:
                raise _explain(apsw.CorruptError("text that is no UTF-8"), self.path, self._db) from error

    def row(self, query: str, values: Values | None = None) -> Any:
        """The first row, or None."""
        found = self.rows(query, values)
        return found[0] if found else None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction: all of it is on the disk when this returns, or nothing of it after an error."""
        with self._asking():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                _check_owner(self.path, self._db, self._known)  # upgraded since we opened?
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk may have ended it already
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def part(self) -> Iterator[None]:
        """Of a transaction: an error undoes only this."""
        with self._asking():
            self._db.execute("SAVEPOINT part")
            try:
                yield
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK TO part; RELEASE part")
                raise
            self._db.execute("RELEASE part")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody writes meanwhile, in no process; nothing is written here either."""
        with self._asking():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Several reads of one moment, whatever others write meanwhile."""
        with self._asking():
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    def version(self) -> int:
        """Another number as soon as anyone else has written: cheap to ask often."""
        with self._asking():
            return int(self._db.pragma("data_version"))

    def missing_guards(self) -> list[str]:
        """Triggers of the audit that somebody took away."""
        with self._asking():
            found = {name for (name,) in self._db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")}
        return sorted(GUARDS - found)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        with self._turn:
            try:
                yield
            except apsw.ConnectionClosedError as error:
                raise StoreError(f"{self.path}: the store is closed") from error
            except apsw.Error as error:
                raise _explain(error, self.path, self._db) from error


def _connect(path: Path, patience: float, migrations: Sequence[Migration]) -> apsw.Connection:
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    except apsw.Error as error:
        raise explain(error, path) from error
    ready = False
    try:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # should it turn out not to be ours, close leaves no trace
        db.set_busy_handler(Waiting(patience))
        db.execute(SETTINGS).fetchall()
        if db.execute("SELECT count(*) FROM sqlite_schema").get or db.pragma("application_id"):
            _check_owner(path, db, len(migrations))
        enter_wal(db, patience)
        if db.pragma("user_version") < len(migrations):
            _migrate(db, migrations, time.time)
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        ready = True
    except apsw.Error as error:
        raise _explain(error, path, db) from error
    finally:
        if not ready:
            db.close()
    return db


def _migrate(db: apsw.Connection, migrations: Sequence[Migration], clock: Callable[[], float]) -> None:
    """Run what the database has not had yet. Processes may race here: each looks again where it is alone."""
    for number, name, sql in migrations:
        db.execute("BEGIN IMMEDIATE")
        try:
            if db.pragma("user_version") < number:
                db.execute(sql).fetchall()
                db.execute(QUERIES["put_migration"], {"number": number, "name": name, "applied": int(clock() * 1000)})
                db.pragma("application_id", APPLICATION_ID)
                db.pragma("user_version", number)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise


def _check_owner(path: Path, db: apsw.Connection, known: int) -> None:
    if db.pragma("application_id") != APPLICATION_ID:
        raise StoreError(f"{path}: a database of another program; it was left untouched")
    number = db.pragma("user_version")
    if number > known:
        raise StoreTooNew(
            f"{path}: written by a newer Warmstart (schema {number}, this one knows {known}); "
            "it was left untouched. Upgrade Warmstart"
        )


def _explain(error: apsw.Error, path: Path, db: apsw.Connection) -> StoreError:
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return StoreError(f"{path}: damaged ({error}). Stop the daemon, keep a copy of the file, bring back a backup")
    return explain(error, path, db.system_errno)
