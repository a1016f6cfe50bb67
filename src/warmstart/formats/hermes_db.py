"""Hermes: the SQLite database `$HERMES_HOME/state.db`, even while Hermes is writing to it.

The database is opened read-only and no file beside it is created or changed. Columns are looked up one by one, because
old and new versions of Hermes lack some of them. A damaged database is read up to the damage.
"""

from __future__ import annotations

from collections.abc import Iterator

import apsw

from warmstart.formats.hermes_rows import (
    HermesMessage,
    HermesSession,
    ModelRow,
    Rows,
    describe,
    inherit_owner,
    spend_by_model,
    trace_owner,
)
from warmstart.formats.source import Source, SourceHead
from warmstart.formats.sqlite_file import TROUBLE, has_columns, list_columns, reading
from warmstart.model import Session, SessionOwner
from warmstart.ports import Judge

NAME = "hermes"

_NEEDED = {
    "sessions": frozenset(("id",)),
    "messages": frozenset(("id", "session_id", "role", "content", "tool_calls", "tool_call_id")),
}
_BATCH = 500
_AS_TEXT = frozenset(("content", "tool_calls"))  # read as bytes: invalid UTF-8 in them must not stop the reading


def sniff(head: SourceHead) -> bool:
    return head.sqlite and has_columns(head.path, _NEEDED)


def read(source: Source, judge: Judge) -> Iterator[Session]:
    with reading(source) as database:
        yield from _Reader(source, judge, database).sessions()


class _Reader:
    def __init__(self, source: Source, judge: Judge, database: apsw.Connection) -> None:
        self._source = source
        self._judge = judge
        self._database = database
        self._session_fields = _select(HermesSession.__struct_fields__, list_columns(database, "sessions"))
        self._row_fields = _select(HermesMessage.__struct_fields__, list_columns(database, "messages"))
        self._models = _select_models(list_columns(database, "session_model_usage"))

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
            except TROUBLE as error:
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
            except TROUBLE as error:
                damage = error
            yield from batch
            if damage is not None:
                self._source.report(f"the list of sessions is damaged and was read up to there: {damage}")
            if damage is not None or len(batch) < _BATCH:
                return

    def _find_owner(self, session: str) -> SessionOwner | None:
        return trace_owner(session, self._find_row, self._source.path.absolute().parent)

    def _find_row(self, session: str) -> HermesSession | None:
        query = f"SELECT {self._session_fields} FROM sessions WHERE id = ?"
        return next((HermesSession(*values) for values in self._database.execute(query, (session,))), None)

    def _take_models(self, session: HermesSession, rows: Rows) -> None:
        if not self._models or rows.draft.usage is None:
            return
        try:
            models = [ModelRow(*row) for row in self._database.execute(self._models, (session.id,))]
        except apsw.BusyError:
            raise
        except TROUBLE as error:
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
