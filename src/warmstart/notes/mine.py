"""Digests in, notes out: add up what a project's sessions met, choose each note's trigger, count what contradicts it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import nlargest

from msgspec import structs

from warmstart.notes.counts import CauseTally, NoteCounts
from warmstart.notes.digest import BESIDE, Digest
from warmstart.notes.habits import find_habits
from warmstart.notes.phrase import Details, phrase_note
from warmstart.notes.types import Note
from warmstart.store.notes import make_note_id

MIN_SUPPORT = 2  # root sessions; a single transcript can at most make a proposed note
RECENT = 30  # sessions over which the rate of a note is counted, weighted towards the latest
FIRST = 0.5  # of a sighting: the one that drew attention to a cause says less about how often it comes
_SPECIFIC = {"fresh": 4, "whole": 3, "path": 3, "run": 2, "with": 1, "arg": 1, "tool": 0}


class ProjectHistory:
    """Decides about the notes of one project, from what its sessions met."""

    def __init__(self, project: str, scope: str = "", counts: NoteCounts | None = None) -> None:
        self.project = project
        self.scope = scope
        self.counts = counts if counts is not None else NoteCounts()

    @property
    def sessions(self) -> int:
        """The number of root sessions so far."""
        return len(self.counts.roots)

    def add(self, digest: Digest) -> None:
        """Add one session."""
        self.counts.add(digest)

    def is_known(self, key: str) -> bool:
        """Return whether two root sessions have met this cause."""
        tally = self.counts.causes.get(key)
        return tally is not None and tally.support >= MIN_SUPPORT

    def make_notes(self, min_support: int = MIN_SUPPORT) -> list[Note]:
        """Return the notes that the sessions support."""
        recent = self._rank_recent()
        notes = [
            note
            for key, tally in sorted(self.counts.causes.items())
            if tally.support >= min_support and (note := self._make_note(key, tally, recent)) is not None
        ]
        for habit in find_habits(self.counts.habits, self.sessions):
            notes.append(structs.replace(habit, id=make_id(self.project, self.scope, habit.key), project=self.project))
        return [structs.replace(note, scope=self.scope) for note in notes]

    def _make_note(self, key: str, tally: CauseTally, recent: Mapping[str, int]) -> Note | None:
        trigger = self._choose_trigger(tally)
        fix = self._choose_fix(tally)
        if tally.kind == "path" and self._exists_now(tally):
            return None
        worked, failed = self.counts.marks.get(trigger, (0, 0))
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
            support=tally.support,
            against=worked,
            failures=failed,
            people=len(tally.people),
            first_seen=tally.first_seen,
            last_seen=tally.last_seen,
            rate=self._rate(tally, recent),
            agent=min(tally.agents) if len(tally.agents) == 1 else "",
        )
        text = phrase_note(note, _describe(tally))
        return structs.replace(note, text=text) if text else None

    def _exists_now(self, tally: CauseTally) -> bool:
        """Return whether the path worked in a session after those that missed it."""
        last = self.counts.worked.get(f"path:{tally.subject}")
        roots = self.counts.roots
        return last is not None and roots[last[1]] > max(roots[root] for root in tally.sessions.values())

    def _rank_recent(self) -> dict[str, int]:
        """Return the latest root sessions, each with the number of later ones."""
        latest = nlargest(RECENT, self.counts.roots.items(), key=lambda item: item[1])
        return {root: age for age, (root, _moment) in enumerate(latest)}

    def _rate(self, tally: CauseTally, recent: Mapping[str, int]) -> float:
        """Return the share of recent sessions that met the cause; the latest count most."""
        weights = [1.0 - age / (2 * RECENT) for age in range(len(recent))]
        hits = sum(
            weights[age] for age in sorted(recent[root] for root in set(tally.sessions.values()) & recent.keys())
        )
        return max(0.0, hits - FIRST) / (sum(weights) + 1)

    def _choose_trigger(self, tally: CauseTally) -> str:
        """Return the mark that best separates calls with this cause from calls that work."""
        best, score = "", (0.0, False, 0, 0, -999)
        for mark, count in sorted(tally.marks.items()):
            if count * 2 < tally.calls or not _is_about(mark, tally):
                continue
            worked, failed = self.counts.marks.get(mark, (0, 0))
            share = round(failed / (failed + worked + 0.5), 1)
            names = tally.subject in mark.partition(":")[2].split()
            rank = (share, names, _SPECIFIC.get(mark.partition(":")[0], 0), count, -len(mark))
            if rank > score:
                best, score = mark, rank
        return best

    def _choose_fix(self, tally: CauseTally) -> str:
        if not tally.fixes:
            return ""
        fix, count = _sort_by_count(tally.fixes)[0]
        if tally.kind == "path":
            return fix if f"path:{fix}" in self.counts.marks else ""
        return fix if count >= 2 or sum(tally.fixes.values()) == 1 else ""


def _describe(tally: CauseTally) -> Details:
    return Details(
        form=_most_common(tally.forms),
        quote=_most_common(tally.quotes),
        files=[path for path, _count in _sort_by_count(tally.files)[:1]],
        tools=[mark[5:] for mark, _count in _sort_by_count(tally.marks) if mark.startswith("tool:")][:2],
    )


def _is_about(mark: str, tally: CauseTally) -> bool:
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


def _sort_by_count(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Sort by count, the most frequent first; ties alphabetically: sessions merge in any order."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def make_id(project: str, scope: str, key: str) -> str:
    """Return the id of the note about this cause: the same fact keeps its id."""
    return make_note_id(project, scope, key)


def add_up(project: str, digests: Iterable[Digest], scope: str = "") -> ProjectHistory:
    """Return the history of a project from its digests, in any order."""
    history = ProjectHistory(project, scope)
    for digest in digests:
        history.add(digest)
    return history
