"""A SQLite file of ours: whose it is, opened, upgraded, used in turns. Each store has a kind of its own."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import apsw

from warmstart.errors import StoreError, StoreFull, StoreTooNew

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def load_queries(path: Path) -> dict[str, str]:
    """The statements of a file, by the names that begin them."""
    _, *parts = path.read_text("utf-8").split("-- name: ")
    return {name.strip(): sql.strip() for name, _, sql in (part.partition("\n") for part in parts)}


class Migration(NamedTuple):
    number: int  # from 1
    name: str
    sql: str


def load_migrations(folder: Path, names: Iterable[str]) -> list[Migration]:
    return [Migration(at, name, (folder / f"{name}.sql").read_text("utf-8")) for at, name in enumerate(names, 1)]


def explain(error: apsw.Error | OSError, path: Path, system_errno: int = 0) -> StoreError:
    """The one place where SQLite's and the system's errors become ours; `Kind.explain` has advice for a damaged file."""
    if isinstance(error, OSError):
        system_errno = error.errno or 0
    elif not isinstance(error, apsw.IOError | apsw.CantOpenError):
        system_errno = 0  # left over from something else
    no_index = getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE  # the WAL's index did not fit
    if system_errno in FULL or no_index or isinstance(error, apsw.FullError):
        return StoreFull(f"{path}: no space left; nothing of this change was kept. Free some space and try again")
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreError(f"{path}: another process has kept it busy for too long; end that process or try again")
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError() | OSError():
            reason = os.strerror(system_errno) if system_errno else str(error)
            return StoreError(f"{path}: cannot be opened for writing ({reason}). Check the rights of file and folder")
        case _:
            return StoreError(f"{path}: {error}")


class Kind(NamedTuple):
    """What sets the files of a store apart."""

    application_id: int  # says in the file's header whose it is
    schema: int  # how many migrations this program knows
    load_migrations: Callable[[], Iterable[Migration]]  # read only where a file lacks some
    put_migration: str  # a statement; may use :number, :name and :applied (milliseconds)
    settings: str  # pragmas of each connection
    when_damaged: str  # what a person should do then

    def check_owner(self, path: Path, application: int, number: int) -> None:
        if application != self.application_id:
            raise StoreError(f"{path}: a database of another program; it was left untouched")
        if number > self.schema:
            raise StoreTooNew(
                f"{path}: written by a newer Warmstart (schema {number}, this one knows {self.schema}); "
                "it was left untouched. Upgrade Warmstart"
            )

    def explain(self, error: apsw.Error | OSError, path: Path, system_errno: int = 0) -> StoreError:
        if isinstance(error, apsw.CorruptError | apsw.NotADBError):
            return StoreError(f"{path}: damaged ({error}). {self.when_damaged}")
        return explain(error, path, system_errno)


class Waiting:
    """What SQLite asks while another process holds a lock: True means ask again.

    SQLite's own timeout sleeps longer the longer one has waited, so that newcomers overtake and, among many writers
    with long transactions, someone runs out of time. Here the longer one has waited the more often one asks: as fair
    as a queue for practical purposes, without a second lock that could be left behind, and with an end to the wait.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.since = 0.0

    def __call__(self, asked: int) -> bool:
        now = time.monotonic()
        if asked == 0:
            self.since = now
        waited = now - self.since
        if waited > self.patience:
            return False
        time.sleep(0.001 if asked < 5 else max(0.0003, 0.02 / (1 + waited / 4) ** 2))
        return True


def connect(path: Path, kind: Kind, patience: float) -> apsw.Connection:
    """A connection to a database that is ours, its schema brought up to date."""
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    except apsw.Error as error:
        raise kind.explain(error, path) from error
    ready = False
    try:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # should it turn out not to be ours, close leaves no trace
        db.set_busy_handler(Waiting(patience))
        if db.readonly("main"):
            raise apsw.ReadOnlyError("read-only")
        db.execute(kind.settings).fetchall()  # some answer, and what stands behind an answer runs only once it is read
        # In this order: all three are set by one commit, perhaps another process's just now, the owner is read last.
        tables = db.execute("SELECT count(*) FROM sqlite_schema").get
        number = db.pragma("user_version")
        owner = db.pragma("application_id")
        if tables or number or owner:
            kind.check_owner(path, owner, number)
        enter_wal(db, patience)
        if number < kind.schema:
            migrate(db, kind, kind.load_migrations())
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        ready = True
    except apsw.Error as error:
        raise kind.explain(error, path, db.system_errno) from error
    finally:
        if not ready:
            db.close()
    return db


def connect_to_read(path: Path, kind: Kind, patience: float) -> apsw.Connection:
    """A connection that changes nothing: to a database that is ours and up to date, wherever it lies.

    Without a WAL nobody is writing; the file is then read as it is, because even a mere look by way of the WAL makes one,
    which needs a folder that can be written and may later keep the file's owner out.
    """
    quiet = not path.with_name(path.name + "-wal").exists()
    try:
        db = apsw.Connection(
            f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if quiet else ''}",
            flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
        )
    except apsw.Error as error:
        raise _explain_reading(kind, error, path) from error
    ready = False
    try:
        db.set_busy_handler(Waiting(patience))
        tables = db.execute("SELECT count(*) FROM sqlite_schema").get
        number, owner = db.pragma("user_version"), db.pragma("application_id")
        if not (tables or number or owner):
            raise StoreError(f"{path}: an empty file, no database; it was left untouched")
        kind.check_owner(path, owner, number)
        if number < kind.schema:
            raise StoreError(
                f"{path}: written by an older Warmstart (schema {number}, this one knows {kind.schema}); "
                "it was left untouched. A start upgrades it"
            )
        ready = True
    except apsw.Error as error:
        raise _explain_reading(kind, error, path, db.system_errno) from error
    finally:
        if not ready:
            db.close()
    return db


def _explain_reading(kind: Kind, error: apsw.Error, path: Path, system_errno: int = 0) -> StoreError:
    if isinstance(error, apsw.CantOpenError | apsw.ReadOnlyError | apsw.PermissionsError):
        return StoreError(
            f"{path}: cannot be read ({error}). With a {path.name}-wal beside it, both must lie in a folder that can be "
            "written: copy them to one"
        )
    return kind.explain(error, path, system_errno)


def migrate(db: apsw.Connection, kind: Kind, migrations: Iterable[Migration]) -> None:
    """Run what the database has not had yet, each in a transaction of its own that also records it.

    Processes may race here: each looks again inside the transaction, where it is alone.
    """
    for number, name, sql in migrations:
        db.execute("BEGIN IMMEDIATE")
        try:
            if db.pragma("user_version") < number:
                db.execute(sql).fetchall()
                applied = int(time.time() * 1000)
                db.execute(kind.put_migration, {"number": number, "name": name, "applied": applied})
                db.pragma("application_id", kind.application_id)
                db.pragma("user_version", number)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise


def enter_wal(db: apsw.Connection, patience: float) -> None:
    """Changing the journal mode needs the database alone and does not ask the busy handler: so ask again here."""
    deadline = time.monotonic() + patience
    while db.pragma("journal_mode") != "wal":
        try:
            db.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)


class SqliteFile:
    """A connection whose users take turns. Use it in a `with`, or close it."""

    def __init__(self, path: Path, kind: Kind, patience: float, *, to_read: bool = False) -> None:
        self.path = path
        self._kind = kind
        self._process = os.getpid()
        self._turn = threading.RLock()
        self._inside = False  # a transaction
        self._db = connect_to_read(path, kind, patience) if to_read else connect(path, kind, patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._asking():
            self._db.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction: all of it is on the disk when this returns, or nothing of it after an error."""
        with self._transaction("BEGIN IMMEDIATE"):
            owner, number = self._db.pragma("application_id"), self._db.pragma("user_version")
            self._kind.check_owner(self.path, owner, number)  # upgraded since we opened?
            yield
            self._db.execute("COMMIT")

    @contextmanager
    def part(self) -> Iterator[None]:
        """Of a transaction: an error undoes only this."""
        with self._asking():
            if not self._db.in_transaction:  # a savepoint would begin one, and keep the part without the rest
                raise StoreError(f"{self.path}: an earlier error has already undone this transaction")
            self._db.execute("SAVEPOINT part")
            try:
                yield
            except BaseException:
                if self._db.in_transaction:  # a full disk may have ended it, and the savepoint with it
                    self._db.execute("ROLLBACK TO part; RELEASE part")
                raise
            self._db.execute("RELEASE part")

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        """What was not committed inside is undone."""
        with self._asking():
            if self._inside:
                raise StoreError(f"{self.path}: a transaction inside another")
            try:
                self._db.execute(begin)
                self._inside = True
                yield
            finally:
                self._inside = False
                if self._db.in_transaction:  # a full disk may have ended it already
                    self._db.execute("ROLLBACK")

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Around everything that talks to SQLite: one thread at a time, errors explained."""
        if os.getpid() != self._process:
            raise StoreError(f"{self.path}: opened before a fork; open it again in the new process")
        with self._turn:
            try:
                yield
            except apsw.ConnectionClosedError as error:
                raise StoreError(f"{self.path}: the store is closed") from error
            except apsw.Error as error:
                raise self._kind.explain(error, self.path, self._db.system_errno) from error

    def _fetch(self, cursor: apsw.Cursor) -> list[Any]:
        try:
            return cursor.fetchall()
        except UnicodeDecodeError as error:
            raise self._explain_text() from error

    def _stream(self, cursor: apsw.Cursor) -> Iterator[Any]:
        """The same, row by row."""
        try:
            yield from cursor
        except UnicodeDecodeError as error:
            raise self._explain_text() from error

    def _explain_text(self) -> StoreError:
        return self._kind.explain(apsw.CorruptError("text that is no UTF-8"), self.path)
