"""The rows that the tables must hold, as a replay of the audit expects them.

They lie in a temporary SQLite database that spills to disk, because an audit may be larger than memory. The details of
an entry may hold any JSON: an attacker may have written the entry by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import apsw
import msgspec

from warmstart.confirm.model import AuditEntry

Details = dict[str, Any]  # of an entry
ExpectedRow = dict[str, Any]  # column -> value; FIRST_ENTRY -> sequence of the entry that created the row
FIRST_ENTRY = "first_entry"


class ReplayState:
    """The expected rows, by kind and id. Use it in a `with`."""

    def __init__(self) -> None:
        self._db = apsw.Connection("")
        self._db.execute(
            """
            PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -64000;
            CREATE TABLE expected (kind TEXT, id TEXT, columns BLOB, PRIMARY KEY (kind, id)) WITHOUT ROWID;
            BEGIN;
            """
        ).fetchall()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def get(self, kind: str, id: str) -> ExpectedRow:
        """Return the expected row, empty if none is expected."""
        return _decode(self._db.execute("SELECT columns FROM expected WHERE kind = ? AND id = ?", (kind, id)).get)

    def put(self, kind: str, id: str, row: ExpectedRow) -> None:
        self._db.execute("INSERT OR REPLACE INTO expected VALUES (?, ?, ?)", (kind, id, msgspec.msgpack.encode(row)))

    def pop(self, kind: str, id: str) -> ExpectedRow:
        """Remove and return the expected row, empty if none is expected."""
        sql = "DELETE FROM expected WHERE kind = ? AND id = ? RETURNING columns"
        return _decode(self._db.execute(sql, (kind, id)).get)

    def list_rest(self, kind: str) -> Iterator[tuple[str, ExpectedRow]]:
        """Yield `(id, row)` for every row that was not popped."""
        for id, columns in self._db.execute("SELECT id, columns FROM expected WHERE kind = ? ORDER BY id", (kind,)):
            yield id, _decode(columns)


Replay = Callable[[ReplayState, AuditEntry, Details], Iterable[str]]  # yields what is wrong with the entry


def _decode(columns: bytes | None) -> ExpectedRow:
    return {} if columns is None else msgspec.msgpack.decode(columns, type=ExpectedRow)


def read_details(entry: AuditEntry) -> Details:
    """Return the details, empty if they cannot be parsed: the tables or the entry's hash then differ anyway."""
    try:
        return msgspec.json.decode(entry.details, type=Details)
    except msgspec.DecodeError:
        return {}


def pick(details: Details, *names: str) -> ExpectedRow:
    """Return those of the named details that the entry holds."""
    return {name: make_plain(details[name]) for name in names if name in details}


def make_plain(value: Any) -> Any:
    """Return a value that a column could hold as it is, any other as a text."""
    fits = value is None or isinstance(value, str) or (isinstance(value, int) and abs(value) < 1 << 63)
    return value if fits else repr(value)[:200]
