"""Gather insights from past sessions: repeated errors, rates, errors along the session, costs, advice.

Pure: each session becomes counts, counts merge in any order, and what is reported is decided from the merged counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct, field, structs

from warmstart.insights.advice import advise, explain_windows
from warmstart.insights.costs import CostMeter, TotalTally
from warmstart.insights.errors import Causes, ErrorTally, Failure, Key, NoteFinder, list_occurrences
from warmstart.insights.fixes import find_ending, has_passed, is_failing_check
from warmstart.insights.rates import RateTally, WindowTally
from warmstart.insights.times import count_weekly, find_day, find_earliest, find_latest, keep_recent
from warmstart.insights.types import Insights, Occurrence
from warmstart.insights.work import WorkTally
from warmstart.model import WINDOW, PastSession

TOP = 10
_LEFT_OUT = ("rejected", "denied", "cancelled", "unknown")


def gather_insights(sessions: Iterable[PastSession | None], *, top: int = TOP, show: int | None = None) -> Insights:
    """Gather insights from past sessions. None stands for an unreadable record; `top` limits each list.

    `show` is the row of a repeated error whose occurrences are listed too.
    """
    counts = InsightCounts()
    kept: list[PastSession] = []
    for session in sessions:
        counts.add(session)
        if show is not None and session is not None:
            kept.append(session)
    key = counts.find_row(show) if show is not None else None
    occurrences = [one for session in kept for one in find_occurrences(session, key)] if key else []
    return counts.freeze(top, show=show, occurrences=occurrences)


class InsightCounts(Struct, omit_defaults=True):
    """What insights need to know of one session, or of many: counts that merge."""

    sessions: int = 0
    unreadable: int = 0
    calls: int = 0
    left_out: dict[str, int] = field(default_factory=dict)  # by status
    first: float | None = None  # when the earliest session started
    last: float | None = None
    starts: dict[float, int] = field(
        default_factory=dict
    )  # of sessions that `experiment power` would count, recent ones
    earliest: float | None = None  # of those
    rates: RateTally = field(default_factory=RateTally)
    windows: WindowTally = field(default_factory=WindowTally)
    work: WorkTally = field(default_factory=WorkTally)
    errors: ErrorTally = field(default_factory=ErrorTally)
    cost: TotalTally = field(default_factory=TotalTally)

    def add(self, session: PastSession | None, causes: Causes | None = None) -> None:
        """Add a session; None is one whose record cannot be read. `causes`: of its failed calls, by which notes are found."""
        if session is None:
            self.unreadable += 1
            return
        self.sessions += 1
        self.calls += len(session.calls)
        self.first = find_earliest(self.first, session.started)
        self.last = find_latest(self.last, session.started)
        for call in session.calls:
            if not call.outcome.counts:
                status = call.outcome.status if call.outcome.status in _LEFT_OUT else "unknown"
                self.left_out[status] = self.left_out.get(status, 0) + 1
        self.rates.add(session)
        self.windows.add(session)
        self.work.add(session)
        if session.started is not None and find_day(session.started) and counts_in_power(session):
            self._add_starts({session.started: 1}, session.started)
        meter = CostMeter(session)
        failures = find_failures(session)
        self.cost.add(meter, [failure.span for failure in failures])
        self.errors.add(session, failures, meter, causes or {})

    def merge(self, other: InsightCounts) -> None:
        """Add the counts of other sessions. Merging is associative and commutative."""
        self.sessions += other.sessions
        self.unreadable += other.unreadable
        self.calls += other.calls
        for status, count in other.left_out.items():
            self.left_out[status] = self.left_out.get(status, 0) + count
        self.first = find_earliest(self.first, other.first)
        self.last = find_latest(self.last, other.last)
        if other.earliest is not None:
            self._add_starts(other.starts, other.earliest)
        self.rates.merge(other.rates)
        self.windows.merge(other.windows)
        self.work.merge(other.work)
        self.errors.merge(other.errors)
        self.cost.merge(other.cost)

    def _add_starts(self, starts: Mapping[float, int], earliest: float) -> None:
        self.earliest = earliest if self.earliest is None else min(self.earliest, earliest)
        for at, count in starts.items():
            self.starts[at] = self.starts.get(at, 0) + count

    def prune(self) -> InsightCounts:
        """Drop the starts that no pace will count, because the latest one only moves on. Return these counts."""
        if self.starts:
            recent = keep_recent(self.starts, max(self.starts))
            self.starts = {at: self.starts[at] for at in recent}
        return self

    def find_row(self, number: int) -> Key | None:
        """Return the repeated error in a row; None if there is no such row."""
        order = self.errors.sort()
        return order[number - 1] if 0 < number <= len(order) else None

    def freeze(
        self,
        top: int = TOP,
        *,
        find_note: NoteFinder | None = None,
        show: int | None = None,
        occurrences: Iterable[Occurrence] = (),
    ) -> Insights:
        """Decide what to report. `find_note` finds the note about a cause; `occurrences` are those of the row `show`."""
        repeated, repeated_more, seen_once = self.errors.freeze(top, find_note)
        along = self.windows.freeze()
        insights = Insights(
            sessions=self.sessions,
            unreadable=self.unreadable,
            first=self.first,
            last=self.last,
            calls=self.calls,
            left_out={status: self.left_out.get(status, 0) for status in _LEFT_OUT},
            overall=self.rates.overall(),
            repeated=repeated,
            repeated_more=repeated_more,
            seen_once=seen_once,
            by_tool=self.rates.breakdown("tool", top),
            by_model=self.rates.breakdown("model", top),
            by_agent=self.rates.breakdown("agent", top),
            by_project=self.rates.breakdown("project", top),
            by_work=self.work.freeze(),
            by_week=self.rates.weeks(),
            undated=self.rates.undated,
            along=structs.replace(along, meaning=explain_windows(along)),
            cost=self.cost.freeze(),
            weekly=count_weekly(
                [at for at, count in self.starts.items() for _ in range(count)], earliest=self.earliest
            ),
        )
        if show is not None and (key := self.find_row(show)) is not None:
            row = self.errors.freeze_one(show, key, find_note)
            ordered = sorted(occurrences, key=lambda one: (-(one.at or 0.0), one.session, one.call))
            insights = structs.replace(insights, shown=row, occurrences=tuple(ordered))
        return structs.replace(insights, advice=advise(insights))


encode_counts = msgspec.msgpack.Encoder().encode
decode_counts = msgspec.msgpack.Decoder(InsightCounts).decode


def read_counts(body: bytes) -> InsightCounts:
    """Return the stored counts of one session; counts that cannot be read count as one unreadable session."""
    try:
        return decode_counts(body)
    except (msgspec.DecodeError, RecursionError):
        return InsightCounts(unreadable=1)


def find_occurrences(session: PastSession, key: Key) -> list[Occurrence]:
    """Return the occurrences of an error in a session."""
    return list_occurrences(session, find_failures(session), key)


def find_failures(session: PastSession) -> list[Failure]:
    """Return the failed calls of a session, each with the call that fixed it."""
    return [_find_failure(session, index) for index, call in enumerate(session.calls) if call.outcome.status == "error"]


def counts_in_power(session: PastSession) -> bool:
    """Return whether `experiment power` counts a session: no subagent, with judged calls in its first turns."""
    early = (call for call in session.calls if call.turn is not None and call.turn <= WINDOW)
    return not session.parent and session.turns is not None and any(call.outcome.counts for call in early)


def _find_failure(session: PastSession, index: int) -> Failure:
    ending = find_ending(session.calls, index, session.root or session.folder or session.project)
    is_check = ending is None and is_failing_check(session.calls[index])
    return Failure(index, ending, has_passed(session.calls, index) if is_check else None)
