"""Gather insights from past sessions: repeated errors, rates, errors along the session, costs, advice.

Pure: sessions go in one at a time and none is kept; the same sessions in the same order give the same value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import structs

from warmstart.calls.origins import Origins
from warmstart.insights.advice import advise, explain_windows
from warmstart.insights.costs import CostMeter, TotalTally
from warmstart.insights.errors import ErrorTally, Failure, NoteFinder
from warmstart.insights.fixes import find_ending, has_passed, is_failing_check
from warmstart.insights.rates import RateTally, WindowTally
from warmstart.insights.times import count_weekly, find_earliest, find_latest
from warmstart.insights.types import Insights
from warmstart.insights.work import WorkTally
from warmstart.model import WINDOW, PastSession

TOP = 10
_LEFT_OUT = ("rejected", "denied", "cancelled", "unknown")


def gather_insights(
    sessions: Iterable[PastSession | None],
    *,
    top: int = TOP,
    show: int | None = None,
    find_notes: NoteFinder | None = None,
) -> Insights:
    """Gather insights from past sessions. None stands for an unreadable record; `top` limits each list.

    `show` is the row of a repeated error whose occurrences are listed too; `find_notes` finds notes about an error.
    """
    gathering = _Gathering(show, find_notes)
    for session in sessions:
        if session is None:
            gathering.unreadable += 1
        else:
            gathering.add(session)
    return gathering.freeze(top)


class _Gathering:
    """All counts while sessions pass by."""

    def __init__(self, show: int | None = None, find_notes: NoteFinder | None = None) -> None:
        self._show = show
        self._starts: list[float] = []  # of sessions that `experiment power` would count
        self.unreadable = 0
        self._sessions = 0
        self._calls = 0
        self._left_out: Counter[str] = Counter()
        self._first: float | None = None  # when the earliest session started
        self._last: float | None = None
        self._rates = RateTally()
        self._windows = WindowTally()
        self._work = WorkTally()
        self._errors = ErrorTally(Origins(), keep=show is not None, find_notes=find_notes)
        self._cost = TotalTally()

    def add(self, session: PastSession) -> None:
        self._sessions += 1
        self._calls += len(session.calls)
        self._first = find_earliest(self._first, session.started)
        self._last = find_latest(self._last, session.started)
        for call in session.calls:
            if not call.outcome.counts:
                status = call.outcome.status
                self._left_out[status if status in _LEFT_OUT else "unknown"] += 1
        self._rates.add(session)
        self._windows.add(session)
        self._work.add(session)
        if session.started is not None and counts_in_power(session):
            self._starts.append(session.started)
        meter = CostMeter(session)
        failures = find_failures(session)
        self._cost.add(meter, [failure.span for failure in failures])
        self._errors.add(session, failures, meter)

    def freeze(self, top: int) -> Insights:
        repeated, repeated_more, seen_once = self._errors.freeze(top)
        along = self._windows.freeze()
        insights = Insights(
            sessions=self._sessions,
            unreadable=self.unreadable,
            first=self._first,
            last=self._last,
            calls=self._calls,
            left_out={status: self._left_out[status] for status in _LEFT_OUT},
            overall=self._rates.overall(),
            repeated=repeated,
            repeated_more=repeated_more,
            seen_once=seen_once,
            by_tool=self._rates.breakdown("tool", top),
            by_model=self._rates.breakdown("model", top),
            by_agent=self._rates.breakdown("agent", top),
            by_project=self._rates.breakdown("project", top),
            by_work=self._work.freeze(),
            by_week=self._rates.weeks(),
            undated=self._rates.undated,
            along=structs.replace(along, meaning=explain_windows(along)),
            cost=self._cost.freeze(),
            weekly=count_weekly(self._starts),
        )
        if self._show is not None and (row := self._errors.show(self._show)) is not None:
            insights = structs.replace(insights, shown=row[0], occurrences=row[1])
        return structs.replace(insights, advice=advise(insights))


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
