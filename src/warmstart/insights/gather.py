"""Gather insights from past sessions: repeated errors, rates, errors along the session, costs, advice.

Pure: sessions go in one at a time and none is kept; the same sessions in the same order give the same value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import structs

from warmstart.insights.advice import advise, explain_windows
from warmstart.insights.costs import CostMeter, TotalTally
from warmstart.insights.errors import ErrorTally, Failure
from warmstart.insights.fixes import find_ending
from warmstart.insights.rates import RateTally, WindowTally
from warmstart.insights.times import find_earliest, find_latest
from warmstart.insights.types import Insights
from warmstart.model import PastSession

TOP = 10
_LEFT_OUT = ("rejected", "denied", "cancelled", "unknown")


def gather_insights(sessions: Iterable[PastSession | None], *, top: int = TOP) -> Insights:
    """Gather insights from past sessions. None stands for an unreadable record; `top` limits each list."""
    gathering = _Gathering()
    for session in sessions:
        if session is None:
            gathering.unreadable += 1
        else:
            gathering.add(session)
    return gathering.freeze(top)


class _Gathering:
    """All counts while sessions pass by."""

    def __init__(self) -> None:
        self.unreadable = 0
        self._sessions = 0
        self._calls = 0
        self._left_out: Counter[str] = Counter()
        self._first: float | None = None  # when the earliest session started
        self._last: float | None = None
        self._rates = RateTally()
        self._windows = WindowTally()
        self._errors = ErrorTally()
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
        meter = CostMeter(session)
        failures = find_failures(session)
        self._cost.add(meter, [failure.span for failure in failures])
        if failures:
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
            by_week=self._rates.weeks(),
            undated=self._rates.undated,
            along=structs.replace(along, meaning=explain_windows(along)),
            cost=self._cost.freeze(),
        )
        return structs.replace(insights, advice=advise(insights))


def find_failures(session: PastSession) -> list[Failure]:
    """Return the failed calls of a session, each with the call that fixed it."""
    return [
        Failure(index, find_ending(session.calls, index))
        for index, call in enumerate(session.calls)
        if call.outcome.status == "error"
    ]
