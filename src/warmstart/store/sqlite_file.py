"""SQLite files: check the owner, open, upgrade, take turns. A `Kind` describes the files of one store."""

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
    """Return the statements of a file by their names (`-- name: x` begins one)."""
    _, *parts = path.read_text("utf-8").split("-- name: ")
    return {name.strip(): sql.strip() for name, _, sql in (part.partition("\n") for part in parts)}


class Migration(NamedTuple):
    """One step of a schema."""

    number: int  # from 1
    name: str
    sql: str


def load_migrations(folder: Path, names: Iterable[str]) -> list[Migration]:
    """Return the migrations of a folder, numbered in the order of `names`."""
    return [Migration(at, name, (folder / f"{name}.sql").read_text("utf-8")) for at, name in enumerate(names, 1)]


def explain(error: apsw.Error | OSError, path: Path, system_errno: int = 0) -> StoreError:
    """Turn an error of SQLite or the system into a StoreError. `Kind.explain` adds advice for damaged files."""
    if isinstance(error, OSError):
        system_errno = error.errno or 0
    elif not isinstance(error, apsw.IOError | apsw.CantOpenError):
        system_errno = 0  # left over from something else
    no_index = getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE  # the WAL's index did not fit
    if system_errno in FULL or no_index or isinstance(error, apsw.FullError):
        return StoreFull(f"{path}: no space left, so this change was not stored. Free some space and try again")
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreError(
                f"{path}: another process kept the database busy for too long. End that process or try again"
            )
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError() | OSError():
            reason = os.strerror(system_errno) if system_errno else str(error)
            return StoreError(
                f"{path}: cannot be opened for writing ({reason}). Check the permissions of the file and its folder"
            )
        case _:
            return StoreError(f"{path}: {error}")


class Kind(NamedTuple):
    """The properties of one store's files."""

    application_id: int  # identifies the owner in the file's header
    schema: int  # number of migrations that this one knows
    load_migrations: Callable[[], Iterable[Migration]]  # called only for files that lack some
    put_migration: str  # statement; may use :number, :name and :applied (milliseconds)
    settings: str  # pragmas for every connection
    when_damaged: str  # advice for a person

    def check_owner(self, path: Path, application: int, number: int) -> None:
        """Raise StoreError unless the file belongs to this store and its schema is known."""
        if application != self.application_id:
            raise StoreError(f"{path}: a database of another program; it was left untouched. Choose another path")
        if number > self.schema:
            raise StoreTooNew(
                f"{path}: written by a newer Warmstart (schema {number}, this one knows {self.schema}); "
                "it was left untouched. Upgrade Warmstart"
            )

    def explain(self, error: apsw.Error | OSError, path: Path, system_errno: int = 0) -> StoreError:
        """Turn an error into a StoreError, with advice for a damaged file."""
        if isinstance(error, apsw.CorruptError | apsw.NotADBError):
            return StoreError(f"{path}: damaged ({error}). {self.when_damaged}")
        return explain(error, path, system_errno)


class Waiting:
    """A busy handler: SQLite calls it while another process holds a lock; True means try again.

    SQLite's own handler sleeps longer the longer it has waited, so newcomers overtake, and among many writers with
    long transactions one runs out of time. This handler sleeps less the longer it has waited. In practice that is as
    fair as a queue, needs no second lock that a crash could leave behind, and the wait has an end.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.since = 0.0

    def __call__(self, attempts: int) -> bool:
        now = time.monotonic()
        if attempts == 0:
            self.since = now
        waited = now - self.since
        if waited > self.patience:
            return False
        time.sleep(0.001 if attempts < 5 else max(0.0003, 0.02 / (1 + waited / 4) ** 2))
        return True


def connect(path: Path, kind: Kind, patience: float) -> apsw.Connection:
    """Open a database that belongs to this store, and bring its schema up to date."""
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    except apsw.Error as error:
        raise kind.explain(error, path) from error
    ready = False
    try:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # a foreign database is closed without a trace
        db.set_busy_handler(Waiting(patience))
        if db.readonly("main"):
            raise apsw.ReadOnlyError("read-only")
        db.execute(kind.settings).fetchall()  # fetch: statements after one that answers run only then
        # Read in this order: one commit sets all three, perhaps right now in another process; the owner comes last.
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
    """Open an up-to-date database of this store without changing anything.

    If there is no WAL, nobody is writing, and the file is opened as immutable: a normal read creates a WAL, which needs
    a writable folder and may later lock the owner of the file out.
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
            raise StoreError(f"{path}: an empty file, not a database; it was left untouched")
        kind.check_owner(path, owner, number)
        if number < kind.schema:
            raise StoreError(
                f"{path}: written by an older Warmstart (schema {number}, this one knows {kind.schema}); "
                "it was left untouched. The next start upgrades it"
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
            f"{path}: cannot be read ({error}). If there is a {path.name}-wal beside it, copy both files to a writable "
            "folder and read them there"
        )
    return kind.explain(error, path, system_errno)


def migrate(db: apsw.Connection, kind: Kind, migrations: Iterable[Migration]) -> None:
    """Apply the migrations that the database lacks, each in its own transaction together with its record.

    Processes may race here, so each checks again inside the transaction.
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
    """Switch to WAL. That needs the database alone and does not call the busy handler, so retry here."""
    deadline = time.monotonic() + patience
    while db.pragma("journal_mode") != "wal":
        try:
            db.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)


class SqliteFile:
    """A connection whose users take turns. Use it as a context manager, or close() it."""

    def __init__(self, path: Path, kind: Kind, patience: float, *, to_read: bool = False) -> None:
        self.path = path
        self._kind = kind
        self._process = os.getpid()
        self._turn = threading.RLock()
        self._inside = False  # whether a transaction is open
        self._db = connect_to_read(path, kind, patience) if to_read else connect(path, kind, patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        with self._asking():
            self._db.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run a transaction: all of it is on the disk when this returns, or none of it after an error."""
        with self._transaction("BEGIN IMMEDIATE"):
            owner, number = self._db.pragma("application_id"), self._db.pragma("user_version")
            self._kind.check_owner(self.path, owner, number)  # it may have been upgraded since it was opened
            yield
            self._db.execute("COMMIT")

    @contextmanager
    def part(self) -> Iterator[None]:
        """Run a part of a transaction: an error undoes this part only."""
        with self._asking():
            if not self._db.in_transaction:  # outside one, a savepoint would commit only this part
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
        """Begin a transaction, and roll it back unless it was committed inside."""
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
        """Guard every use of SQLite: one thread at a time, errors explained."""
        if os.getpid() != self._process:
            raise StoreError(f"{self.path}: the store was opened before a fork; open it again in the new process")
        with self._turn:
            try:
                yield
            except apsw.ConnectionClosedError as error:
                raise StoreError(f"{self.path}: the store is closed") from error
            except apsw.Error as error:
                raise self._kind.explain(error, self.path, self._db.system_errno) from error

    def _fetch(self, cursor: apsw.Cursor) -> list[Any]:
        """Return all rows."""
        try:
            return cursor.fetchall()
        except UnicodeDecodeError as error:
            raise self._explain_text() from error

    def _stream(self, cursor: apsw.Cursor) -> Iterator[Any]:
        """Yield the rows one by one."""
        try:
            yield from cursor
        except UnicodeDecodeError as error:
            raise self._explain_text() from error

    def _explain_text(self) -> StoreError:
        return self._kind.explain(apsw.CorruptError("it holds text that is not UTF-8"), self.path)
