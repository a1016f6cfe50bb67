"""OpenCode: the SQLite database `~/.local/share/opencode/opencode.db`, even while OpenCode is writing to it.

The database is opened read-only and no file beside it is created or changed. Sessions of subagents name the session
that started them. A damaged database is read up to the damage.
"""

from __future__ import annotations

from collections.abc import Iterator

import apsw
import msgspec

from warmstart.formats.opencode import Info, Messages, StoredPart
from warmstart.formats.source import Source, SourceHead
from warmstart.formats.sqlite_file import TROUBLE, has_columns, list_columns, reading
from warmstart.model import Session
from warmstart.ports import Judge

NAME = "opencode"

_NEEDED = {
    "session": frozenset(("id", "directory")),
    "message": frozenset(("id", "session_id", "data")),
    "part": frozenset(("id", "message_id", "data")),
}
_BATCH = 500
_ALL = "SELECT rowid, {fields} FROM session WHERE rowid > ? ORDER BY rowid LIMIT ?"
_ONE = """
    WITH RECURSIVE own(id) AS (
        SELECT id FROM session WHERE id = ?3 UNION SELECT session.id FROM session JOIN own ON session.parent_id = own.id
    )
    SELECT rowid, {fields} FROM session WHERE id IN own AND rowid > ?1 ORDER BY rowid LIMIT ?2
"""
_MESSAGES = "SELECT id, CAST(data AS BLOB) FROM message WHERE session_id = ? ORDER BY {order}id"
_UNSORTED = "SELECT id, CAST(data AS BLOB) FROM message NOT INDEXED WHERE session_id = ? ORDER BY rowid"
_PARTS = "SELECT CAST(data AS BLOB) FROM part WHERE message_id = ? ORDER BY id"

_info = msgspec.json.Decoder(Info)
_part = msgspec.json.Decoder(StoredPart)


def sniff(head: SourceHead) -> bool:
    return head.sqlite and has_columns(head.path, _NEEDED)


def read(source: Source, judge: Judge) -> Iterator[Session]:
    with reading(source) as database:
        yield from _Reader(source, judge, database).sessions()


class _Row(msgspec.Struct, gc=False):
    id: str
    directory: str | None
    parent: str | None
    created: int | None


class _Reader:
    def __init__(self, source: Source, judge: Judge, database: apsw.Connection) -> None:
        self._source, self._judge, self._database = source, judge, database
        columns = list_columns(database, "session")
        names = ("id", "directory", "parent_id", "time_created")
        self._fields = ", ".join(name if name in columns else "NULL" for name in names)
        self._has_parents = "parent_id" in columns
        self._order = "time_created, " if "time_created" in list_columns(database, "message") else ""

    def sessions(self) -> Iterator[Session]:
        for row in self._rows():
            messages = Messages(self._source, self._judge, NAME)
            messages.describe(row.id, row.directory, row.parent, {"created": row.created})
            messages.draft.fragment = row.id
            try:
                self._take_messages(row.id, messages)
            except apsw.BusyError:
                raise
            except TROUBLE as error:
                self._source.report(f"session {row.id} is damaged from here on: {error}")
            if not messages.draft.empty:
                yield messages.draft.close()

    def _rows(self) -> Iterator[_Row]:
        """Yield the sessions, read in batches so that no read transaction stays open while a session is processed."""
        last, only = -1, self._source.only
        query = (_ONE if only and self._has_parents else _ALL).format(fields=self._fields)
        while True:
            batch: list[_Row] = []
            damage: Exception | None = None
            try:
                bindings = (last, _BATCH, only) if "?3" in query else (last, _BATCH)
                for number, name, *rest in self._database.execute(query, bindings):
                    last = int(str(number))
                    batch.append(_make_row(name, *rest))
            except apsw.BusyError:
                raise
            except TROUBLE as error:
                damage = error
            yield from batch
            if damage is not None:
                self._source.report(f"the list of sessions is damaged and was read up to there: {damage}")
            if damage is not None or len(batch) < _BATCH:
                return

    def _take_messages(self, session: str, messages: Messages) -> None:
        for number, data in self._rows_of_messages(session):
            info = self._source.decode(_as_bytes(data), _info)
            parts: list[StoredPart] = []
            try:
                for (raw,) in self._database.execute(_PARTS, (number,)):
                    if (part := self._source.decode(_as_bytes(raw), _part)) is not None:
                        parts.append(part)
            finally:  # parts before a damage count
                messages.take(info or Info(), parts)

    def _rows_of_messages(self, session: str) -> Iterator[tuple[str, object]]:
        """Yield the ids and data of messages. Where the index is damaged, the table itself may still be whole."""
        seen: set[str] = set()
        try:
            for number, data in self._database.execute(_MESSAGES.format(order=self._order), (session,)):
                seen.add(str(number))
                yield str(number), data
        except apsw.BusyError:
            raise
        except TROUBLE:
            for number, data in self._database.execute(_UNSORTED, (session,)):
                if str(number) not in seen:
                    yield str(number), data
            raise


def _make_row(name: object, directory: object, parent: object, created: object) -> _Row:
    """Return a row whose values have the expected types; SQLite stores any value in any column."""
    return _Row(
        str(name),
        directory if isinstance(directory, str) else None,
        parent if isinstance(parent, str) else None,
        created if isinstance(created, int) else None,
    )


def _as_bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else b"null"
