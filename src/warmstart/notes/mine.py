"""Digests in, notes out: add up what a project's sessions met, choose each note's trigger, count what contradicts it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct, field, structs

from warmstart.notes.digest import BESIDE, Cause, Digest
from warmstart.notes.habits import Habits
from warmstart.notes.phrase import Details, phrase_note
from warmstart.notes.types import Note, NoteKind
from warmstart.store.notes import make_note_id

MIN_SUPPORT = 2  # root sessions; a single transcript can at most make a proposed note
RECENT = 30  # sessions over which the rate of a note is counted, weighted towards the latest
FIRST = 0.5  # of a sighting: the one that drew attention to a cause says less about how often it comes
_SPECIFIC = {"fresh": 4, "whole": 3, "path": 3, "run": 2, "with": 1, "arg": 1, "tool": 0}


class _Tally(Struct):
    """One cause, added up over sessions."""

    kind: NoteKind
    subject: str
    sessions: dict[str, int] = field(default_factory=dict)  # root session -> its position among the project's sessions
    people: set[str] = field(default_factory=set)
    agents: set[str] = field(default_factory=set)
    calls: int = 0
    marks: Counter[str] = field(default_factory=Counter)
    fixes: Counter[str] = field(default_factory=Counter)
    forms: Counter[str] = field(default_factory=Counter)
    quotes: Counter[str] = field(default_factory=Counter)
    files: Counter[str] = field(default_factory=Counter)
    first_seen: float | None = None
    last_seen: float | None = None


class ProjectHistory:
    """Adds up the digests of one project, in order of time."""

    def __init__(self, project: str, scope: str = "") -> None:
        self.project = project
        self.scope = scope
        self._tallies: dict[str, _Tally] = {}
        self._worked: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._last_worked: dict[str, int] = {}  # mark -> position of the last session in which it worked
        self._positions: dict[str, int] = {}
        self._habits = Habits()

    @property
    def sessions(self) -> int:
        """The number of root sessions so far."""
        return len(self._positions)

    def add(self, digest: Digest) -> None:
        """Add one session. Subagents and forks count for their root."""
        at = self._positions.setdefault(digest.session, len(self._positions))
        for mark, (worked, failed) in digest.marks.items():
            self._worked[mark] += worked
            self._failed[mark] += failed
            if worked:
                self._last_worked[mark] = at
        for key, cause in digest.causes.items():
            self._add_cause(key, cause, digest, at)
        self._habits.add(digest, at)

    def _add_cause(self, key: str, cause: Cause, digest: Digest, at: int) -> None:
        tally = self._tallies.setdefault(key, _Tally(cause.kind, cause.subject))
        tally.sessions[digest.session] = at
        tally.people.add(digest.person)
        tally.agents.add(digest.agent)
        tally.calls += cause.calls
        for mark, count in cause.marks.items():
            tally.marks[mark] += count
        tally.fixes.update(cause.fixes)
        tally.forms.update(cause.forms)
        tally.quotes.update((cause.quote,) if cause.quote else ())
        tally.files.update(cause.files)
        if digest.at is not None:
            tally.first_seen = digest.at if tally.first_seen is None else min(tally.first_seen, digest.at)
            tally.last_seen = digest.at if tally.last_seen is None else max(tally.last_seen, digest.at)

    def is_known(self, key: str) -> bool:
        """Return whether two root sessions have met this cause."""
        tally = self._tallies.get(key)
        return tally is not None and len(tally.sessions) >= MIN_SUPPORT

    def make_notes(self, min_support: int = MIN_SUPPORT) -> list[Note]:
        """Return the notes that the sessions support."""
        notes = [
            note
            for key, tally in self._tallies.items()
            if len(tally.sessions) >= min_support and (note := self._make_note(key, tally)) is not None
        ]
        for habit in self._habits.find(self.sessions):
            notes.append(structs.replace(habit, id=make_id(self.project, self.scope, habit.key), project=self.project))
        return [structs.replace(note, scope=self.scope) for note in notes]

    def _make_note(self, key: str, tally: _Tally) -> Note | None:
        trigger = self._choose_trigger(tally)
        fix = self._choose_fix(tally)
        latest = max(tally.sessions.values())
        if tally.kind == "path" and self._last_worked.get(f"path:{tally.subject}", -1) > latest:
            return None  # the path exists now
        note = Note(
            id=make_id(self.project, self.scope, key),
            project=self.project,
            scope=self.scope,
            kind=tally.kind,
            subject=tally.subject,
            key=key,
            trigger=trigger,
            text="",
            fix=fix,
            support=len(tally.sessions),
            against=self._worked[trigger] if trigger else 0,
            failures=self._failed[trigger] if trigger else 0,
            people=len(tally.people),
            first_seen=tally.first_seen,
            last_seen=tally.last_seen,
            rate=self._rate(tally),
            agent=next(iter(tally.agents)) if len(tally.agents) == 1 else "",
        )
        text = phrase_note(note, _describe(tally))
        return structs.replace(note, text=text) if text else None

    def _rate(self, tally: _Tally) -> float:
        """Return the share of recent sessions that met the cause; the latest count most."""
        total = len(self._positions)
        weights = [1.0 - age / (2 * RECENT) for age in range(min(total, RECENT))]
        hits = sum(weights[total - 1 - at] for at in set(tally.sessions.values()) if total - 1 - at < len(weights))
        return max(0.0, hits - FIRST) / (sum(weights) + 1)

    def _choose_trigger(self, tally: _Tally) -> str:
        """Return the mark that best separates calls with this cause from calls that work."""
        best, score = "", (0.0, False, 0, 0, -999)
        for mark, count in tally.marks.items():
            if count * 2 < tally.calls or not _is_about(mark, tally):
                continue
            failed, worked = self._failed[mark], self._worked[mark]
            share = round(failed / (failed + worked + 0.5), 1)
            names = tally.subject in mark.partition(":")[2].split()
            rank = (share, names, _SPECIFIC.get(mark.partition(":")[0], 0), count, -len(mark))
            if rank > score:
                best, score = mark, rank
        return best

    def _choose_fix(self, tally: _Tally) -> str:
        if not tally.fixes:
            return ""
        (fix, count), *_rest = tally.fixes.most_common(1)
        if tally.kind == "path":
            return fix if f"path:{fix}" in self._worked else ""
        return fix if count >= 2 or sum(tally.fixes.values()) == 1 else ""


def _describe(tally: _Tally) -> Details:
    return Details(
        form=_most_common(tally.forms),
        quote=_most_common(tally.quotes),
        files=[path for path, _count in tally.files.most_common(1)],
        tools=[mark[5:] for mark, _count in tally.marks.most_common() if mark.startswith("tool:")][:2],
    )


def _is_about(mark: str, tally: _Tally) -> bool:
    """Return whether a mark belongs to the cause: a missing path triggers by itself, not by the program that met it."""
    if tally.kind in ("path", "large"):
        return mark in (f"path:{tally.subject}", f"whole:{tally.subject}")
    words = mark.partition(":")[2].split()
    if tally.kind == "refusal":
        form = tally.subject.split()
        return mark.startswith("run:") and words == form[: len(words)] and len(words) >= min(2, len(form))
    if mark.startswith("tool:") and tally.kind != "tool":
        return False  # every call of a shell has it
    if words and words[0] in BESIDE and tally.subject not in words:
        return False  # a filter behind the command is not to blame
    if tally.kind in ("environment", "command"):
        return not mark.startswith(("path:", "tool:"))
    return True


def _most_common(counts: Mapping[str, int]) -> str:
    return max(counts, key=lambda name: (counts[name], name), default="")


def make_id(project: str, scope: str, key: str) -> str:
    """Return the id of the note about this cause: the same fact keeps its id."""
    return make_note_id(project, scope, key)


def add_up(project: str, digests: Iterable[Digest], scope: str = "") -> ProjectHistory:
    """Return the history of a project from its digests, in order of time."""
    history = ProjectHistory(project, scope)
    for digest in digests:
        history.add(digest)
    return history
