"""The effect of shown notes: how many sessions met them before and since, and the turns that stopped calls cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from warmstart.notes.digest import Digest, decode_digest
from warmstart.notes.types import Note
from warmstart.notes.wording import STOPPED
from warmstart.scopes import SHARED
from warmstart.stats.rates import share_interval
from warmstart.store import Store
from warmstart.store.notes import NoteStore

MOST = 10  # notes in a report


class Recurrence(Struct, frozen=True, kw_only=True):
    """How many sessions met a note, of how many."""

    met: int = 0
    sessions: int = 0
    low: float | None = None  # 95 % interval of the share; None: fewer than two sessions
    high: float | None = None


class NoteEffect(Struct, frozen=True, kw_only=True):
    """A note that was shown, and the sessions that met it before it was first shown and since.

    It is no proof: the project changes too. The comparison with cold sessions is in the report of the experiment.
    """

    id: str
    project: str
    kind: str
    status: str
    text: str
    shown: int  # sessions
    first_shown: float  # seconds since the epoch
    before: Recurrence
    since: Recurrence


class StoppedCalls(Struct, frozen=True, kw_only=True):
    """Calls that our hooks stopped. They count as neither errors nor successes."""

    calls: int = 0
    sessions: int = 0
    turns: int = 0  # in which such a call was made


class NoteEffects(Struct, frozen=True, kw_only=True):
    """The effects of notes, for a report."""

    notes: tuple[NoteEffect, ...] = ()  # those that were shown most first
    more: int = 0  # left out
    stopped: StoppedCalls = StoppedCalls()


class EffectReader:
    """Counts in stored digests which sessions met a note. The digests of a project are read once."""

    def __init__(self, notes: NoteStore, rules: int) -> None:
        """`rules`: the version of the rules by which digests must have been made."""
        self._notes = notes
        self._rules = rules
        self._known: dict[tuple[str, str], list[Digest]] = {}

    def weigh(self, notes: Iterable[Note], most: int = MOST) -> NoteEffects:
        """Return the effects of those notes that were shown, the most shown first."""
        times: dict[str, dict[str, float]] = {}  # note -> session -> when it was first shown
        for showing in self._notes.showings():
            if showing.how != "wrong":
                times.setdefault(showing.note, {}).setdefault(showing.session, showing.at)
        shown = sorted((note for note in notes if note.id in times), key=lambda note: (-len(times[note.id]), note.id))
        effects = tuple(self._describe(note, times[note.id]) for note in shown[:most])
        stopped = count_stopped(self._notes.store)
        return NoteEffects(notes=effects, more=max(0, len(shown) - most), stopped=stopped)

    def count(self, note: Note, first: float | None) -> tuple[Recurrence, Recurrence]:
        """Return how many sessions met a note before it was first shown, and since."""
        return count_recurrence(self._read(note), note.key, first)

    def list_met(self, note: Note, most: int) -> tuple[str, ...]:
        """Return the root sessions that met a note, the latest first."""
        met = [digest for digest in self._read(note) if note.key in digest.causes]
        met.sort(key=lambda digest: -(digest.at or 0.0))
        return tuple(dict.fromkeys(digest.session for digest in met))[:most]

    def _describe(self, note: Note, times: Mapping[str, float]) -> NoteEffect:
        first = min(times.values())
        before, since = self.count(note, first)
        return NoteEffect(
            id=note.id,
            project=note.project,
            kind=note.kind,
            status=note.status,
            text=note.text,
            shown=len(times),
            first_shown=first,
            before=before,
            since=since,
        )

    def _read(self, note: Note) -> list[Digest]:
        """Return the digests of the sessions that could have met a note: its project's, or all of its agent."""
        digests: list[Digest] = []
        for project, scope, _count in self._notes.projects():
            own = note.project == project and note.scope in (scope, SHARED)
            if own or not (note.project or scope):
                digests += self._read_place(project, scope)
        return digests if note.project else [digest for digest in digests if digest.agent == note.agent]

    def _read_place(self, project: str, scope: str) -> list[Digest]:
        if (project, scope) not in self._known:
            bodies = self._notes.digests(project, scope, self._rules)
            read = (decode_digest(body) for _key, body in bodies)
            self._known[project, scope] = [digest for digest in read if digest is not None]
        return self._known[project, scope]


def count_recurrence(digests: Iterable[Digest], key: str, first: float | None) -> tuple[Recurrence, Recurrence]:
    """Return how many root sessions met a cause before a time and since. Without a time all are before it."""
    sides: tuple[dict[str, bool], dict[str, bool]] = ({}, {})
    for digest in digests:
        late = first is not None and digest.at is not None and digest.at >= first
        side = sides[late]
        side[digest.session] = side.get(digest.session, False) or key in digest.causes
    before, since = sides
    for session in before.keys() & since.keys():  # it ran while the note was first shown
        since[session] = since[session] or before.pop(session)
    return _summarise(before), _summarise(since)


def _summarise(sessions: dict[str, bool]) -> Recurrence:
    met = sum(sessions.values())
    low, high = share_interval(met, len(sessions)) or (None, None)
    return Recurrence(met=met, sessions=len(sessions), low=low, high=high)


def count_stopped(store: Store) -> StoppedCalls:
    """Return how many calls our hooks stopped, and the turns that this cost."""
    ((calls, sessions, turns),) = store.rows("stopped_calls", (STOPPED,))
    return StoppedCalls(calls=calls, sessions=sessions, turns=turns)
