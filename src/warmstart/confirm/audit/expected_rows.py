"""Notes on what the tables must say. They lie in a database of their own that SQLite moves to the disk when it grows:
an audit may be larger than the memory.

What an entry holds may be anything: somebody may have written it by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import apsw
import msgspec

from warmstart.confirm.model import AuditEntry

Told = dict[str, Any]  # an entry's details
Facts = dict[str, Any]  # column -> what it must hold; `born`: the entry that tells of the row's beginning


class ReplayState:
    """Use it in a `with`."""

    def __init__(self) -> None:
        self._db = apsw.Connection("")
        self._db.execute(
            """
            PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -64000;
            CREATE TABLE notes (kind TEXT, id TEXT, facts BLOB, PRIMARY KEY (kind, id)) WITHOUT ROWID;
            BEGIN;
            """
        ).fetchall()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def get(self, kind: str, id: str) -> Facts:
        """Empty where nothing is noted."""
        return _read(self._db.execute("SELECT facts FROM notes WHERE kind = ? AND id = ?", (kind, id)).get)

    def note(self, kind: str, id: str, facts: Facts) -> None:
        self._db.execute("INSERT OR REPLACE INTO notes VALUES (?, ?, ?)", (kind, id, msgspec.msgpack.encode(facts)))

    def take(self, kind: str, id: str) -> Facts:
        """What is noted; it is crossed out."""
        return _read(self._db.execute("DELETE FROM notes WHERE kind = ? AND id = ? RETURNING facts", (kind, id)).get)

    def rest(self, kind: str) -> Iterator[tuple[str, Facts]]:
        """What is not crossed out."""
        for id, facts in self._db.execute("SELECT id, facts FROM notes WHERE kind = ? ORDER BY id", (kind,)):
            yield id, _read(facts)


def _read(facts: bytes | None) -> Facts:
    return {} if facts is None else msgspec.msgpack.decode(facts, type=Facts)


def read_details(entry: AuditEntry) -> Told:
    """Empty where they cannot be read: then the tables differ from what they tell, or the hash does."""
    try:
        return msgspec.json.decode(entry.details, type=Told)
    except msgspec.DecodeError:
        return {}


def pick(told: Told, *names: str) -> Facts:
    """What is told of these; older entries tell less."""
    return {name: plain(told[name]) for name in names if name in told}


def plain(value: Any) -> Any:
    """As it is, where a column could hold it."""
    fits = value is None or isinstance(value, str) or (isinstance(value, int) and abs(value) < 1 << 63)
    return value if fits else repr(value)[:200]
