"""Find stored sessions by the words of their tasks, tools, commands, paths and errors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from warmstart.errors import Refused
from warmstart.model import Verdict
from warmstart.ports import Progress
from warmstart.store.protocol import Store
from warmstart.store.rows import SessionRow

COUNTED = 1_000  # sessions up to which those that pass a filter are counted
FEW = 5_000  # sessions of a project up to which they are gathered before the words are looked up
_BATCH = 200  # sessions indexed in one transaction
_WORD = re.compile(r"[^\W_]+")
_MOST_WORDS = 12


class SessionFilter(Struct, frozen=True, kw_only=True):
    """Which sessions are wanted; None: all."""

    agent: str | None = None
    verdict: Verdict | None = None
    project: str | None = None  # its identity
    since: float | None = None  # seconds since the epoch
    scope: str | None = None
    source: str | None = None  # the place an agent ran it for, such as telegram


class FoundSessions(Struct, frozen=True):
    """Sessions that have all words of a text."""

    total: int  # number of all sessions found; with a filter at most COUNTED, and then `is_more`
    sessions: tuple[SessionRow, ...]  # the first of them, newest first
    unsearched: int  # stored sessions whose words are not in the index yet
    is_more: bool = False  # there are more than `total`


class SessionWords:
    """The index of the sessions' words."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, text: str, wanted: SessionFilter, *, limit: int, offset: int) -> FoundSessions:
        """Return the sessions that have every word of a text, newest first. The last word may be the beginning of one.

        Raise Refused if the text has no word.
        """
        words = find_words(text)
        if not words:
            raise Refused(f"{text!r} has no word to search for; write letters or digits")
        match = self._store.make_match(words)
        filters = (wanted.agent, wanted.verdict, wanted.project, wanted.since, wanted.scope, wanted.source)
        is_more = False
        if all(value is None for value in filters):
            ((total,),) = self._store.rows("count_matches", (match,))
            keys = self._store.rows("worded_keys", (match, limit, offset))
        else:
            most = max(COUNTED, offset + limit)
            query = "project_worded_keys" if self._is_small(wanted.project) else "filtered_worded_keys"
            passing = self._store.rows(query, (match, *filters, most + 1))
            is_more = len(passing) > most
            total, keys = min(most, len(passing)), passing[offset : offset + limit]
        sessions = tuple(self._read(key for (key,) in keys))
        return FoundSessions(total, sessions, self.count_missing(), is_more)

    def _is_small(self, project: str | None) -> bool:
        if project is None:
            return False
        ((number,),) = self._store.rows("count_project", (project, FEW))
        return int(number) < FEW

    def _read(self, keys: Iterator[str]) -> Iterator[SessionRow]:
        for key in keys:
            yield from map(SessionRow.from_columns, self._store.rows("session_by_key", (key,)))

    def count_missing(self) -> int:
        """Return the number of stored sessions whose words are not in the index: an older Warmstart stored them."""
        ((missing,),) = self._store.rows("count_unworded")
        return int(missing)

    def complete(self, progress: Progress | None = None) -> int:
        """Index the sessions that are not yet. Other processes may write in between. Return how many were indexed."""
        done = 0
        while True:
            keys = [key for (key,) in self._store.rows("unworded_sessions", (_BATCH,))]
            if not keys:
                return done
            if progress:
                progress(done, done + self.count_missing(), keys[0])
            with self._store.writing():
                self._store.index_words(keys)
            done += len(keys)


def find_words(text: str) -> list[str]:
    """Return the words of a text to search for."""
    return _WORD.findall(text)[:_MOST_WORDS]
