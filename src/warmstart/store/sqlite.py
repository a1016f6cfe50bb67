"""The store in one SQLite file.

Safe to share. Processes: each opens its own store; writers take turns, readers never wait for them (WAL). Threads:
one store may be shared, its calls take turns under a lock; who wants to read in parallel opens a store a thread.
Forks: open after forking. What a returned `with writing()` held is on the disk (synchronous=FULL).
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import apsw

from warmstart.errors import NotFound, Refused, StoreError, StoreFull, StoreTooNew
from warmstart.model import Verdict
from warmstart.store.rows import CallRow, Change, SessionRow, SourceRow, SpentRow, Totals

APPLICATION_ID = 0x57524D53  # "WRMS": says in the file's header whose it is
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
HERE = Path(__file__).parent  # read as files: importlib.resources alone costs 10 ms of every start

# Append only, never edit: what is recorded in someone's file does not run again.
MIGRATIONS = ("0001_sessions", "0002_templates", "0003_effect", "0004_review", "0005_paired")

SETTINGS = """
PRAGMA synchronous = FULL;
PRAGMA foreign_keys = ON;
PRAGMA secure_delete = ON;
PRAGMA cache_size = -16000;
"""


def load_queries(path: Path) -> dict[str, str]:
    """The statements of a file, by the names that begin them."""
    _, *parts = path.read_text("utf-8").split("-- name: ")
    return {name.strip(): sql.strip() for name, _, sql in (part.partition("\n") for part in parts)}


QUERIES = load_queries(HERE / "queries.sql")


class Migration(NamedTuple):
    number: int  # from 1
    name: str
    sql: str


def load_migrations() -> list[Migration]:
    folder = HERE / "migrations"
    return [Migration(at, name, (folder / f"{name}.sql").read_text("utf-8")) for at, name in enumerate(MIGRATIONS, 1)]


def explain(error: apsw.Error | OSError, path: Path, system_errno: int = 0) -> StoreError:
    """The one place where SQLite's and the system's errors become ours."""
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
        case apsw.CorruptError() | apsw.NotADBError():
            return StoreError(f"{path}: damaged ({error}). Move it away and ingest again; transcripts are untouched")
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError() | OSError():
            reason = os.strerror(system_errno) if system_errno else str(error)
            return StoreError(f"{path}: cannot be opened for writing ({reason}). Check the rights of file and folder")
        case _:
            return StoreError(f"{path}: {error}")


def check_owner(path: Path, application: int, number: int) -> None:
    if application != APPLICATION_ID:
        raise StoreError(f"{path}: a database of another program; it was left untouched")
    if number > len(MIGRATIONS):
        raise StoreTooNew(
            f"{path}: written by a newer Warmstart (schema {number}, this one knows {len(MIGRATIONS)}); "
            "it was left untouched. Upgrade Warmstart"
        )


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


def connect(path: Path, patience: float) -> apsw.Connection:
    """A connection to a database that is ours, its schema brought up to date."""
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    except apsw.Error as error:
        raise explain(error, path) from error
    ready = False
    try:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # should it turn out not to be ours, close leaves no trace
        db.set_busy_handler(Waiting(patience))
        if db.readonly("main"):
            raise apsw.ReadOnlyError("read-only")
        db.execute(SETTINGS)
        # In this order: all three are set by one commit, perhaps another process's just now, the owner is read last.
        tables = db.execute(QUERIES["count_tables"]).get
        number = db.pragma("user_version")
        owner = db.pragma("application_id")
        if tables or number or owner:
            check_owner(path, owner, number)
        enter_wal(db, patience)
        if number < len(MIGRATIONS):
            migrate(db, load_migrations())
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        ready = True
    except apsw.Error as error:
        raise explain(error, path, db.system_errno) from error
    finally:
        if not ready:
            db.close()
    return db


def migrate(db: apsw.Connection, migrations: Iterable[Migration]) -> None:
    """Run what the database has not had yet, each in a transaction of its own that also records it.

    Processes may race here: each looks again inside the transaction, where it is alone.
    """
    for number, name, sql in migrations:
        db.execute("BEGIN IMMEDIATE")
        try:
            if db.pragma("user_version") < number:
                db.execute(sql)
                db.execute(QUERIES["put_migration"], (number, name))
                db.pragma("application_id", APPLICATION_ID)
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


class SqliteStore:
    """See the module. `open_store` makes one; use it in a `with`, or close it."""

    def __init__(self, path: Path, *, patience: float = 60.0) -> None:
        self.path = path
        self._process = os.getpid()
        self._turn = threading.RLock()
        self._inside = False  # a transaction
        self._db = connect(path, patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._asking():
            self._db.close()

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
                raise explain(error, self.path, self._db.system_errno) from error

    def run(self, query: str, values: Sequence[Any] = ()) -> apsw.Cursor:
        try:
            return self._db.execute(QUERIES[query], values)
        except UnicodeEncodeError:  # half a surrogate pair, from a transcript cut in the middle of a character
            whole = [v.encode("utf-8", "replace").decode() if isinstance(v, str) else v for v in values]
            return self._db.execute(QUERIES[query], whole)

    def run_many(self, query: str, values: Sequence[Sequence[Any]]) -> None:
        try:
            with self._part():
                self._db.executemany(QUERIES[query], values)
        except UnicodeEncodeError:  # somewhere among them: one by one, each mended where needed
            for one in values:
                self.run(query, one)

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._asking():
            try:
                return self.run(query, values).fetchall()
            except UnicodeDecodeError as error:
                raise explain(apsw.CorruptError("text that is no UTF-8"), self.path) from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction: all of it is on the disk when this returns, or nothing of it after an error.

        Inside another one it is a part of that: an error undoes the part, and the whole if it is not caught.
        """
        with self._asking():
            if self._inside:
                if not self._db.in_transaction:
                    raise StoreError(f"{self.path}: an earlier error has already undone this transaction")
                with self._part():
                    yield
                return
            try:
                self._db.execute("BEGIN IMMEDIATE")
                self._inside, began = True, time.monotonic()
                check_owner(self.path, APPLICATION_ID, self._db.pragma("user_version"))  # upgraded since we opened?
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk may have ended it already
                    self._db.execute("ROLLBACK")
                raise
            finally:
                self._inside = False
        if (held := time.monotonic() - began) > 0.02:
            time.sleep(min(0.003, held / 20))  # back at once it would find the store free before those who wait ask

    @contextmanager
    def _part(self) -> Iterator[None]:
        """A savepoint. A full disk may have ended the whole transaction, and the savepoint with it."""
        self._db.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK TO part; RELEASE part")
            raise
        self._db.execute("RELEASE part")

    def put_session(self, row: SessionRow, calls: Sequence[CallRow], spent: Sequence[SpentRow] = ()) -> Change:
        """Remember a session. The same content again changes nothing; an older, shorter copy never wins."""
        if any(call.session_key != row.key for call in calls) or any(part.session_key != row.key for part in spent):
            raise ValueError("calls of another session")
        with self.writing():
            known = self.rows("known_session", (row.key,))
            if known:
                digest, source_uri, length = known[0]
                moved = source_uri != row.source_uri
                if digest == row.digest and moved:
                    self.run("move_session", (row.source_uri, row.key))
                if digest == row.digest or (moved and row.length < length):
                    return "same"
                self.run("delete_calls", (row.key,))
                self.run("delete_spent", (row.key,))
            self.run("put_session", row.to_columns())
            self.run_many("put_call", [call.to_columns() for call in calls])
            self.run_many("put_spent", [part.to_columns() for part in spent])
        return "updated" if known else "new"

    def delete_session(self, key: str) -> None:
        """Forget a session, its calls and what it cost. `erase` afterwards takes the last bytes out of the files."""
        with self.writing():
            forgotten = self.run("delete_session", (key,)).fetchall()
            if not forgotten:
                raise NotFound(f"no session {key}")
            self.run("delete_live", forgotten[0])

    def erase(self) -> None:
        """Rewrite the database without what was deleted, and empty the WAL, where older pages live on."""
        with self._asking():
            self._db.execute("VACUUM")
            blocked, _, _ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
        if blocked:
            raise StoreError(f"{self.path}: another process is reading; deleted, but its bytes stay until erased again")

    def put_source(self, row: SourceRow) -> None:
        """Remember how a source looked when it was read."""
        with self.writing():
            self.run("put_source", row.to_columns())

    def source(self, uri: str) -> SourceRow | None:
        rows = self.rows("source", (uri,))
        return SourceRow.from_columns(rows[0]) if rows else None

    def sources(self) -> list[SourceRow]:
        return [SourceRow.from_columns(row) for row in self.rows("sources")]

    def find_session(self, name: str) -> SessionRow:
        """By key or the agent's id, or by the beginning of either while it fits only one."""
        found = self.rows("session_by_key", (name,))
        if not found and name:
            fitting = self.rows("keys_by_id", (name,)) or self.rows("keys_by_prefix", (name,))
            if len(fitting) > 1:
                few = ", ".join(f"{key[:12]} ({agent} {own_id})" for key, own_id, agent in fitting[:5])
                raise Refused(f"{name} fits several sessions: {few}{', ...' if len(fitting) > 5 else ''}")
            found = self.rows("session_by_key", (fitting[0][0],)) if fitting else []
        if not found:
            raise NotFound(f"no session {name}")
        return SessionRow.from_columns(found[0])

    def list_sessions(
        self,
        limit: int | None = 50,
        offset: int = 0,
        *,
        agent: str | None = None,
        verdict: Verdict | None = None,
        project: str | None = None,
        since: float | None = None,
    ) -> list[SessionRow]:
        """The latest first; those that do not say when they started come last."""
        wanted = (agent, verdict, project, since, -1 if limit is None else limit, offset)
        return [SessionRow.from_columns(row) for row in self.rows("list_sessions", wanted)]

    def calls_of(self, key: str) -> list[CallRow]:
        return [CallRow.from_columns(row) for row in self.rows("calls_of", (key,))]

    def totals(self) -> Totals:
        return Totals.from_groups(self.rows("totals"))

    def health(self) -> dict[str, Any]:
        """For `doctor`. Reads the whole file to see that it is sound."""
        with self._asking():
            try:
                integrity = "; ".join(line for (line,) in self._db.execute("PRAGMA quick_check"))
                sessions, calls, sources = self.run("count_rows").fetchall()[0]
            except apsw.CorruptError as error:
                integrity, sessions, calls, sources = str(error), None, None, None
            files = (self.path, Path(f"{self.path}-wal"))
            return {
                "path": str(self.path),
                "bytes": sum(file.stat().st_size for file in files if file.exists()),
                "sqlite": apsw.sqlite_lib_version(),
                "schema": self._db.pragma("user_version"),
                "journal_mode": self._db.pragma("journal_mode"),
                "integrity": integrity,
                "sessions": sessions,
                "calls": calls,
                "sources": sources,
            }
