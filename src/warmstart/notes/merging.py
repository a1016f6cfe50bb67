"""The counts of stored sessions, merged: made once per session, and kept for every 64 sessions and every 64 times 64.

A new session costs its own digest; what is asked then is merged from few stored parts. A part holds sessions of one project,
scope and agent in the order in which they were first stored, and is made anew when the content of one of them has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

import msgspec

from warmstart.errors import StoreError
from warmstart.insights.errors import Key
from warmstart.insights.gather import InsightCounts, decode_counts, encode_counts, find_occurrences, read_counts
from warmstart.insights.types import Occurrence
from warmstart.model import PastSession
from warmstart.notes.counts import NoteCounts, decode_note_counts, encode_note_counts
from warmstart.notes.digest import decode_digest, digest_both
from warmstart.notes.register import RULES, encode
from warmstart.ports import Progress
from warmstart.scopes import Border
from warmstart.store import Store
from warmstart.store.history import decode_session
from warmstart.store.notes import DigestedSession, MergedPlace, NoteStore
from warmstart.store.rows import SessionRow

SHARE = 64  # sessions, or parts, that make one part
LEVELS = 2
_BATCH = 256  # digests per transaction


class Mergeable(Protocol):
    """Counts to which other counts can be added, in any order."""

    def merge(self, other: Self) -> None: ...


_C = TypeVar("_C", bound=Mergeable)


class CountedPlace(NamedTuple):
    """The sessions whose counts are merged with each other."""

    project: str
    scope: str
    agent: str


class WantedSessions(NamedTuple):
    """Which sessions to merge. None does not filter."""

    agent: str | None = None
    project: str | None = None
    since: float | None = None
    border: Border | None = None

    def admits(self, session: DigestedSession) -> bool:
        """Return whether a session is wanted."""
        if self.since is not None and (session.started is None or session.started < self.since):
            return False
        return self.border is None or self.border.admits(session.scope, session.project)


class _Kind(NamedTuple, Generic[_C]):
    """One kind of counts, and how they are read."""

    name: str
    make: Callable[[], _C]
    read: Callable[[NoteStore, str], _C | None]  # the counts of one session
    encode: Callable[[_C], bytes]
    decode: Callable[[bytes], _C]


def _read_figures(notes: NoteStore, key: str) -> InsightCounts | None:
    figures = notes.digest_figures(key)
    return read_counts(figures) if figures else None


def _read_notes(notes: NoteStore, key: str) -> NoteCounts | None:
    digest = decode_digest(notes.digest_body(key))
    if digest is None:
        return None
    counts = NoteCounts()
    counts.add(digest)
    return counts


_INSIGHTS = _Kind("insights", InsightCounts, _read_figures, lambda counts: encode_counts(counts.prune()), decode_counts)
_NOTES = _Kind("notes", NoteCounts, _read_notes, encode_note_counts, decode_note_counts)


class MergedDigests:
    """Merges the counts of a store's sessions, and makes those that are missing."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._notes = NoteStore(store)

    def count_insights(self, wanted: WantedSessions, progress: Progress | None = None) -> InsightCounts:
        """Return the counts of the wanted sessions for insights."""
        total = InsightCounts()
        for place, sessions in self._list(wanted, progress).items():
            for part in _Parts(self._notes, _INSIGHTS, place, wanted).merge(sessions):
                total.merge(part)
        return total

    def find_occurrences(self, wanted: WantedSessions, row: int, counts: InsightCounts) -> list[Occurrence]:
        """Return the occurrences of the repeated error in a row of the counts. Only sessions that met it are read."""
        key = counts.find_row(row)
        if key is None:
            return []
        found = []
        for place, sessions in self._list(wanted).items():
            parts = _Parts(self._notes, _INSIGHTS, place, wanted)
            for session in parts.find(sessions, lambda part: key in part.errors.groups):
                found += [one for past in self._decode(session) for one in find_occurrences(past, key)]
        return found

    def find_sessions(self, wanted: WantedSessions, key: Key) -> list[str]:
        """Return the keys of the wanted sessions that met an error."""
        return [
            session
            for place, sessions in self._list(wanted).items()
            for session in _Parts(self._notes, _INSIGHTS, place, wanted).find(
                sessions, lambda part: key in part.errors.groups
            )
        ]

    def count_notes(
        self, project: str | None = None, progress: Progress | None = None
    ) -> dict[tuple[str, str], dict[str, NoteCounts]]:
        """Return the counts of every project and scope, or of one project's, by agent."""
        wanted = WantedSessions(project=project)
        merged: dict[tuple[str, str], dict[str, NoteCounts]] = {}
        for place, sessions in sorted(self._list(wanted, progress).items()):
            if place.project:
                counts = merged.setdefault((place.project, place.scope), {}).setdefault(place.agent, NoteCounts())
                for part in _Parts(self._notes, _NOTES, place, wanted).merge(sessions):
                    counts.merge(part)
        return merged

    def _list(
        self, wanted: WantedSessions, progress: Progress | None = None
    ) -> dict[CountedPlace, list[DigestedSession]]:
        """Return the sessions of every place, after making the digests that are missing."""
        listed = self._notes.digested(RULES, wanted.project, wanted.agent)
        missing = [session for session in listed if not session.is_digested and wanted.admits(session)]
        roots: dict[str, Sequence[str]] = {}
        for start in range(0, len(missing), _BATCH):
            with self._store.writing():
                for done, session in enumerate(missing[start : start + _BATCH], start):
                    if progress:
                        progress(done, len(missing), session.key)
                    if session.project not in roots:
                        roots[session.project] = self._notes.roots(session.project)
                    self._make(session.key, roots[session.project])
        places: dict[CountedPlace, list[DigestedSession]] = {}
        for session in listed:
            places.setdefault(CountedPlace(session.project, session.scope, session.agent), []).append(session)
        return places

    def _make(self, key: str, roots: Sequence[str]) -> None:
        """Make the digest of a session and store it. A session that cannot be read is counted as such."""
        for columns in self._store.rows("session_by_key", (key,)):  # none if another process just deleted the session
            row = SessionRow.from_columns(columns)
            session = decode_session(row, self._store.calls_of(key))
            if session is None:
                counts = InsightCounts()
                counts.add(None)
                body = ""
            else:
                digest, counts = digest_both(session, roots=roots, skip=self._notes.copied_calls(key))
                body = encode(digest).decode()
            self._notes.put_digest(key, RULES, row.digest, body, encode_counts(counts))

    def _decode(self, key: str) -> Iterator[PastSession]:
        for columns in self._store.rows("session_by_key", (key,)):
            past = decode_session(SessionRow.from_columns(columns), self._store.calls_of(key))
            if past is not None:
                yield past


class _Parts(Generic[_C]):
    """The counts of one place, as parts of 64 and 64 times 64 sessions."""

    def __init__(self, notes: NoteStore, kind: _Kind[_C], place: CountedPlace, wanted: WantedSessions) -> None:
        self._notes = notes
        self._kind = kind
        self._place = place
        self._wanted = wanted
        self._made: list[tuple[MergedPlace, str, bytes]] = []

    def merge(self, sessions: Sequence[DigestedSession]) -> Iterator[_C]:
        """Yield counts that together cover the wanted sessions once."""
        for part in _split(sessions, SHARE**LEVELS):
            yield from self._read(part, LEVELS)
        self._keep()

    def find(self, sessions: Sequence[DigestedSession], holds: Callable[[_C], bool]) -> Iterator[str]:
        """Yield the keys of the wanted sessions whose counts hold something, by looking into parts first."""
        for part in _split(sessions, SHARE**LEVELS):
            yield from self._find(part, LEVELS, holds)

    def _read(self, part: _Part, level: int) -> Iterator[_C]:
        if not level:
            for session in part.sessions:
                if self._wanted.admits(session) and (counts := self._kind.read(self._notes, session.key)) is not None:
                    yield counts
            return
        smaller = _split(part.sessions, SHARE ** (level - 1), part.start)
        if len(part.sessions) < SHARE**level or not all(map(self._wanted.admits, part.sessions)):
            for inner in smaller:
                yield from self._read(inner, level - 1)
            return
        counts = self._load(part, level)
        if counts is None:
            counts = self._kind.make()
            for inner in smaller:
                for one in self._read(inner, level - 1):
                    counts.merge(one)
            self._made.append((self._name(part, level), part.fingerprint, self._kind.encode(counts)))
        yield counts

    def _find(self, part: _Part, level: int, holds: Callable[[_C], bool]) -> Iterator[str]:
        if level and len(part.sessions) == SHARE**level:
            counts = self._load(part, level)
            if counts is not None and not holds(counts):
                return
        if level:
            for inner in _split(part.sessions, SHARE ** (level - 1), part.start):
                yield from self._find(inner, level - 1, holds)
            return
        for session in part.sessions:
            if self._wanted.admits(session):
                one = self._kind.read(self._notes, session.key)
                if one is not None and holds(one):
                    yield session.key

    def _name(self, part: _Part, level: int) -> MergedPlace:
        return MergedPlace(self._kind.name, *self._place, level, part.start // SHARE**level)

    def _load(self, part: _Part, level: int) -> _C | None:
        """Return stored counts of exactly these sessions; None if they must be made."""
        stored = self._notes.merged(self._name(part, level))
        if stored is None or stored[0] != part.fingerprint:
            return None
        try:
            return self._kind.decode(stored[1])
        except (msgspec.DecodeError, RecursionError):
            return None

    def _keep(self) -> None:
        """Store what was made, for the next time. Without it the next time only takes longer."""
        if not self._made:
            return
        try:
            with self._notes.store.writing():
                for place, fingerprint, body in self._made:
                    self._notes.put_merged(place, fingerprint, body)
        except StoreError:
            return


class _Part(NamedTuple):
    start: int  # position of the first session in its place
    sessions: Sequence[DigestedSession]

    @property
    def fingerprint(self) -> str:
        """A sum over the contents of the sessions: each is a hash already."""
        total = sum(int(session.content[:16] or "0", 16) for session in self.sessions)
        return f"{RULES}:{len(self.sessions)}:{total & (1 << 64) - 1:x}"


def _split(sessions: Sequence[DigestedSession], size: int, start: int = 0) -> Iterable[_Part]:
    return [_Part(start + at, sessions[at : at + size]) for at in range(0, len(sessions), size)]
