"""Hermes: the SQLite database `$HERMES_HOME/state.db`, even while Hermes is writing to it.

The database is opened read-only and no file beside it is created or changed. Columns are looked up one by one, because
old and new versions of Hermes lack some of them. A damaged database is read up to the damage.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from warmstart.formats.fields import string_of
from warmstart.formats.hermes_rows import (
    HermesMessage,
    HermesSession,
    ModelRow,
    Rows,
    describe,
    find_owner,
    inherit_owner,
    spend_by_model,
)
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Session, SessionOwner
from warmstart.ports import Judge

NAME = "hermes"

_NEEDED = {
    "sessions": frozenset(("id",)),
    "messages": frozenset(("id", "session_id", "role", "content", "tool_calls", "tool_call_id")),
}
_PATIENCE = 2_000  # milliseconds to wait for a lock
_MAX_TEXT = 64 << 20
_BATCH = 500
_GENERATIONS = 50  # of sessions that continue or start each other
_WAL_MODE = 2  # the value of byte 18 of the file
_AS_TEXT = frozenset(("content", "tool_calls"))  # read as bytes: invalid UTF-8 in them must not stop the reading
_TROUBLE = (apsw.Error, UnicodeDecodeError)


def sniff(head: SourceHead) -> bool:
    if not head.sqlite:
        return False
    try:
        with closing(_open(head.path, "immutable=1")) as database:  # ignores locks and an unmerged log
            if _is_hermes(database):
                return True
    except _TROUBLE:
        pass
    if not _beside(head.path, "-wal").exists():
        return False
    try:
        with _connected(head.path) as database:
            return _is_hermes(database)
    except (*_TROUBLE, OSError):
        return False


def _is_hermes(database: apsw.Connection) -> bool:
    return all(needed <= _columns(database, table) for table, needed in _NEEDED.items())


def read(source: Source, judge: Judge) -> Iterator[Session]:
    try:
        with _connected(source.path) as database:
            yield from _Reader(source, judge, database).sessions()
    except apsw.BusyError:
        source.report("the database is locked by another program; try again when that has finished")
    except (*_TROUBLE, OSError) as error:
        source.report(f"the database cannot be read: {error}")


@contextmanager
def _connected(path: Path) -> Iterator[apsw.Connection]:
    """Open the database read-only, and so that SQLite does not write the index that WAL mode needs beside it."""
    log, index = _beside(path, "-wal").exists(), _beside(path, "-shm").exists()
    with path.open("rb") as file:
        merged = file.read(19)[18:] == bytes((_WAL_MODE,)) and not log
    if log and not index:  # nobody is writing, and SQLite needs an index to read the log: read a copy
        with tempfile.TemporaryDirectory(prefix="warmstart-") as folder:
            copy = Path(folder) / path.name
            shutil.copyfile(path, copy)
            shutil.copyfile(_beside(path, "-wal"), _beside(copy, "-wal"))
            with closing(_open(copy, "mode=ro")) as database:
                yield database
        return
    with closing(_open(path, "immutable=1" if merged else "mode=ro&readonly_shm=1")) as database:
        yield database


def _open(path: Path, how: str) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    database = apsw.Connection(f"{path.absolute().as_uri()}?{how}", flags=flags)
    database.set_busy_timeout(_PATIENCE)
    database.limit(apsw.SQLITE_LIMIT_LENGTH, _MAX_TEXT)
    database.execute("PRAGMA writable_schema = ON")  # writes nothing, but lets a file without its end be opened
    return database


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _columns(database: apsw.Connection, table: str) -> frozenset[str]:
    return frozenset(str(name) for (name,) in database.execute("SELECT name FROM pragma_table_info(?)", (table,)))


class _Reader:
    def __init__(self, source: Source, judge: Judge, database: apsw.Connection) -> None:
        self._source = source
        self._judge = judge
        self._database = database
        self._session_fields = _select(HermesSession.__struct_fields__, _columns(database, "sessions"))
        self._row_fields = _select(HermesMessage.__struct_fields__, _columns(database, "messages"))
        self._models = _select_models(_columns(database, "session_model_usage"))

    def sessions(self) -> Iterator[Session]:
        for row in self._session_rows():
            rows = Rows(self._source, self._judge, NAME)
            describe(rows.draft, row, self._source)
            rows.draft.fragment = rows.draft.id
            try:
                rows.draft.owner = inherit_owner(row, rows.draft.owner, self._find_owner)
                self._take_models(row, rows)
                self._take_messages(row, rows)
            except apsw.BusyError:
                raise
            except _TROUBLE as error:
                self._source.report(f"session {rows.draft.id} is damaged from here on: {error}")
            if not rows.draft.empty:
                yield rows.draft.close()

    def _session_rows(self) -> Iterator[HermesSession]:
        """Yield the sessions, read in batches so that no read transaction stays open while a session is processed."""
        last = -1
        query = f"SELECT rowid, {self._session_fields} FROM sessions WHERE rowid > ? ORDER BY rowid LIMIT {_BATCH}"
        while True:
            batch: list[HermesSession] = []
            damage: Exception | None = None
            try:
                for number, *values in self._database.execute(query, (last,)):
                    last = int(str(number))
                    batch.append(HermesSession(*values))
            except apsw.BusyError:
                raise
            except _TROUBLE as error:
                damage = error
            yield from batch
            if damage is not None:
                self._source.report(f"the list of sessions is damaged and was read up to there: {damage}")
            if damage is not None or len(batch) < _BATCH:
                return

    def _find_owner(self, session: str) -> SessionOwner | None:
        """Return the owner of a session, which may have it from its own parent."""
        owner, home = None, self._source.path.absolute().parent
        query = f"SELECT {self._session_fields} FROM sessions WHERE id = ?"
        for _generation in range(_GENERATIONS):
            row = next((HermesSession(*values) for values in self._database.execute(query, (session,))), None)
            if row is None:
                return owner
            owner = find_owner(row, home)
            if owner.chat or owner.user or not (session := string_of(row.parent_session_id)):
                return owner
        return owner

    def _take_models(self, session: HermesSession, rows: Rows) -> None:
        if not self._models or rows.draft.usage is None:
            return
        try:
            models = [ModelRow(*row) for row in self._database.execute(self._models, (session.id,))]
        except apsw.BusyError:
            raise
        except _TROUBLE as error:
            self._source.report(f"session {rows.draft.id}: the tokens of its models cannot be read: {error}")
        else:
            spend_by_model(rows.draft, models)

    def _take_messages(self, session: HermesSession, rows: Rows) -> None:
        query = f"SELECT {self._row_fields} FROM messages WHERE session_id = ? ORDER BY id"
        for role, content, calls, *rest in self._database.execute(query, (session.id,)):
            rows.take(HermesMessage(role, _as_text(content), _as_text(calls), *rest))


def _select(fields: tuple[str, ...], present: frozenset[str]) -> str:
    return ", ".join(_expression(field) if field in present else f"NULL AS {field}" for field in fields)


def _select_models(present: frozenset[str]) -> str:
    """Return the query for the main loop's tokens by model; "" where this version of Hermes does not keep them.

    Other tasks (titles, compression, vision) are not in the session's totals.
    """
    if not {"session_id", "model", "input_tokens"} <= present:
        return ""
    fields = _select(ModelRow.__struct_fields__, present)
    main_loop = " AND task = ''" if "task" in present else ""
    return f"SELECT {fields} FROM session_model_usage WHERE session_id = ?{main_loop}"


def _expression(field: str) -> str:
    return f"CAST({field} AS BLOB)" if field in _AS_TEXT else field


def _as_text(value: object) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None
