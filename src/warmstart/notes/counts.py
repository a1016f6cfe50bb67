"""What the sessions of a project met, added up: counts that merge in any order, from which notes are decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct, field

from warmstart.calls.tools import PATCH, READ, SEARCH, WRITE, base_tool
from warmstart.insights.times import AT_END, Moment, make_moment
from warmstart.notes.digest import Cause, Digest
from warmstart.notes.types import NoteKind

_FILE_TOOLS = frozenset((READ, WRITE, PATCH, SEARCH))
_T = TypeVar("_T")


class CauseTally(Struct, omit_defaults=True):
    """One cause, added up over sessions."""

    kind: NoteKind
    subject: str
    first: Moment = AT_END  # the earliest session that met it, whose kind counts
    sessions: dict[str, str] = field(default_factory=dict)  # key of a session that met it -> its root session
    people: set[str] = field(default_factory=set)
    agents: set[str] = field(default_factory=set)
    calls: int = 0
    marks: dict[str, int] = field(default_factory=dict)
    fixes: dict[str, int] = field(default_factory=dict)
    forms: dict[str, int] = field(default_factory=dict)
    quotes: dict[str, int] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    first_seen: float | None = None
    last_seen: float | None = None

    @property
    def support(self) -> int:
        """The number of root sessions that met it."""
        return len(set(self.sessions.values()))

    def merge(self, other: CauseTally) -> None:
        """Add what other sessions met."""
        if other.first < self.first:
            self.first, self.kind = other.first, other.kind
        self.sessions.update(other.sessions)
        self.people |= other.people
        self.agents |= other.agents
        self.calls += other.calls
        for counts, others in (
            (self.marks, other.marks),
            (self.fixes, other.fixes),
            (self.forms, other.forms),
            (self.quotes, other.quotes),
            (self.files, other.files),
        ):
            add_counts(counts, others)
        self.first_seen = _join(self.first_seen, other.first_seen, min)
        self.last_seen = _join(self.last_seen, other.last_seen, max)


class Habit(Struct, omit_defaults=True):
    """The runs of one command, added up over sessions."""

    sessions: set[str] = field(default_factory=set)  # root sessions
    worked: int = 0
    failed: int = 0
    seconds: dict[float, int] = field(default_factory=dict)  # how long runs took -> how many
    first_seen: float | None = None
    last_seen: float | None = None

    def merge(self, other: Habit) -> None:
        """Add the runs of other sessions."""
        self.sessions |= other.sessions
        self.worked += other.worked
        self.failed += other.failed
        add_counts(self.seconds, other.seconds)
        self.first_seen = _join(self.first_seen, other.first_seen, min)
        self.last_seen = _join(self.last_seen, other.last_seen, max)


class NoteCounts(Struct, omit_defaults=True):
    """What one session met, or many: subagents and forks count for their root session."""

    roots: dict[str, Moment] = field(default_factory=dict)  # root session -> the earliest of its sessions
    marks: dict[str, tuple[int, int]] = field(default_factory=dict)  # mark -> calls that worked, calls that failed
    worked: dict[str, tuple[Moment, str]] = field(default_factory=dict)  # mark of a path -> when it worked last; root
    causes: dict[str, CauseTally] = field(default_factory=dict)
    rules: dict[str, CauseTally] = field(default_factory=dict)  # causes about the agent's own file tools, without paths
    habits: dict[str, Habit] = field(default_factory=dict)  # by form of the command

    def add(self, digest: Digest) -> None:
        """Add one session."""
        moment = make_moment(digest.started, digest.key)
        root = digest.session
        self.roots[root] = min(moment, self.roots.get(root, moment))
        for mark, (worked, failed) in digest.marks.items():
            known = self.marks.get(mark)
            self.marks[mark] = (worked, failed) if known is None else (known[0] + worked, known[1] + failed)
            if worked and mark.startswith("path:"):
                last = (moment, root)
                self.worked[mark] = max(last, self.worked.get(mark, last))
        for key, cause in digest.causes.items():
            _add_cause(self.causes, key, cause, digest, moment)
            if cause.kind == "tool" and _is_own_tool(cause):
                _add_cause(self.rules, key, _leave_paths_out(cause), digest, moment)
        for form, runs in digest.runs.items():
            habit = self.habits.get(form)
            if habit is None:
                habit = self.habits[form] = Habit()
            habit.sessions.add(root)
            habit.worked += runs.worked
            habit.failed += runs.failed
            for seconds in runs.seconds:
                habit.seconds[seconds] = habit.seconds.get(seconds, 0) + 1
            habit.first_seen = _join(habit.first_seen, digest.at, min)
            habit.last_seen = _join(habit.last_seen, digest.at, max)

    def merge(self, other: NoteCounts) -> None:
        """Add what other sessions met. Merging is associative and commutative."""
        for root, moment in other.roots.items():
            self.roots[root] = min(moment, self.roots.get(root, moment))
        for mark, (worked, failed) in other.marks.items():
            known = self.marks.get(mark)
            self.marks[mark] = (worked, failed) if known is None else (known[0] + worked, known[1] + failed)
        for mark, last in other.worked.items():
            self.worked[mark] = max(last, self.worked.get(mark, last))
        for own, others in ((self.causes, other.causes), (self.rules, other.rules)):
            for key, tally in others.items():
                own.setdefault(key, CauseTally(tally.kind, tally.subject)).merge(tally)
        for form, habit in other.habits.items():
            self.habits.setdefault(form, Habit()).merge(habit)


encode_note_counts = msgspec.msgpack.Encoder().encode
decode_note_counts = msgspec.msgpack.Decoder(NoteCounts).decode


def add_counts(counts: dict[_T, int], others: Mapping[_T, int]) -> None:
    """Add counts to counts of the same names."""
    for name, count in others.items():
        counts[name] = counts.get(name, 0) + count


def _add_cause(tallies: dict[str, CauseTally], key: str, cause: Cause, digest: Digest, moment: Moment) -> None:
    tally = tallies.get(key)
    if tally is None:
        tally = tallies[key] = CauseTally(cause.kind, cause.subject)
    if moment < tally.first:
        tally.first, tally.kind = moment, cause.kind
    tally.sessions[digest.key or digest.session] = digest.session
    tally.people.add(digest.person)
    tally.agents.add(digest.agent)
    tally.calls += cause.calls
    add_counts(tally.marks, cause.marks)
    add_counts(tally.fixes, cause.fixes)
    add_counts(tally.forms, cause.forms)
    if cause.quote:
        add_counts(tally.quotes, {cause.quote: 1})
    add_counts(tally.files, cause.files)
    tally.first_seen = _join(tally.first_seen, digest.at, min)
    tally.last_seen = _join(tally.last_seen, digest.at, max)


def _is_own_tool(cause: Cause) -> bool:
    """Return whether a cause is about the agent's own file tools, whose messages no project and no server writes."""
    tools_met = {mark[5:] for mark in cause.marks if mark.startswith("tool:")}
    return bool(tools_met) and all(base_tool(tool) in _FILE_TOOLS and "__" not in tool for tool in tools_met)


def _leave_paths_out(cause: Cause) -> Cause:
    marks = {mark: count for mark, count in cause.marks.items() if mark.startswith(("tool:", "fresh:"))}
    return msgspec.structs.replace(cause, marks=marks, files={})


def _join(one: float | None, other: float | None, choose: Callable[[float, float], float]) -> float | None:
    """Return the earlier or later of two times, of which either may be unknown."""
    if one is None or other is None:
        return other if one is None else one
    return choose(one, other)
