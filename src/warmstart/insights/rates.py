"""Error rates of groups, weeks and windows of turns, with intervals that treat the calls of one session as a cluster.

Each group keeps only (errors, judged calls) per session, and equal pairs once with their number: a million calls fit in
little memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import date, timedelta

from warmstart.insights.times import find_week
from warmstart.insights.types import Along, Breakdown, Rate, Window
from warmstart.model import PastSession
from warmstart.stats.rates import rate_interval

WINDOWS = ((1, 10), (11, 20), (21, 30), (31, 50), (51, 100), (101, None))  # turns
FEW = 5  # sessions that a window needs to be shown
WEEKS = 52  # shown at most, back from the latest

Clusters = Counter[tuple[int, int]]  # (errors, judged calls) of a session -> number of such sessions


def make_rate(name: str | None, clusters: Clusters, sessions: int | None = None) -> Rate:
    """Return the error rate of some sessions; `sessions` is their number if some had no judged calls."""
    errors, judged = _add_up(clusters)
    pairs = sorted(clusters.elements())
    low, high = rate_interval(pairs) or (None, None)
    return Rate(
        name=name,
        errors=errors,
        judged=judged,
        sessions=len(pairs) if sessions is None else sessions,
        rate=errors / judged if judged else None,
        low=low,
        high=high,
    )


def _add_up(clusters: Clusters) -> tuple[int, int]:
    errors = sum(pair[0] * times for pair, times in clusters.items())
    return errors, sum(pair[1] * times for pair, times in clusters.items())


class RateTally:
    """Counts errors overall and by tool, model, agent, project and week."""

    def __init__(self) -> None:
        self._overall: Clusters = Counter()
        self._groups: dict[str, dict[str | None, Clusters]] = {
            facet: {} for facet in ("tool", "model", "agent", "project", "week")
        }
        self.undated = 0

    def add(self, session: PastSession) -> None:
        by_tool: dict[str | None, list[int]] = {}
        for call in session.calls:
            if call.outcome.counts:
                counted = by_tool.setdefault(call.tool, [0, 0])
                counted[0] += call.outcome.status == "error"
                counted[1] += 1
        if not by_tool:
            return
        for tool, (errors, judged) in by_tool.items():
            self._count("tool", tool, errors, judged)
        errors, judged = (sum(counted[at] for counted in by_tool.values()) for at in (0, 1))
        self._overall[errors, judged] += 1
        self._count("model", session.model or None, errors, judged)
        self._count("agent", session.agent or None, errors, judged)
        self._count("project", session.project or None, errors, judged)
        if week := find_week(session.started):
            self._count("week", week, errors, judged)
        else:
            self.undated += 1

    def _count(self, facet: str, name: str | None, errors: int, judged: int) -> None:
        self._groups[facet].setdefault(name, Counter())[errors, judged] += 1

    def overall(self) -> Rate:
        return make_rate("all", self._overall)

    def breakdown(self, facet: str, top: int) -> Breakdown:
        """Return the groups with the most errors first; ties by judged calls."""
        groups = self._groups[facet]
        sizes = {name: _add_up(clusters) for name, clusters in groups.items()}
        order = sorted(groups, key=lambda name: (-sizes[name][0], -sizes[name][1], name or ""))
        shown = tuple(make_rate(name, groups[name]) for name in order[:top])
        return Breakdown(rates=shown, more=len(order) - len(shown))

    def weeks(self) -> tuple[Rate, ...]:
        """Return the weeks of the last year that have sessions."""
        groups = self._groups["week"]
        names = sorted(week for week in groups if week)
        if not names:
            return ()
        earliest = (date.fromisoformat(names[-1]) - timedelta(weeks=WEEKS - 1)).isoformat()
        return tuple(make_rate(week, groups[week]) for week in names if week >= earliest)


class WindowTally:
    """Counts errors by windows of turns. A session counts in every window that it reached."""

    def __init__(self) -> None:
        self._cells: list[list[Clusters]] = [[Counter() for _ in WINDOWS] for _ in WINDOWS]  # [window][furthest]
        self._furthest: Counter[int] = Counter()  # the last window that sessions reached
        self._without_turns = 0

    def add(self, session: PastSession) -> None:
        judged = [call for call in session.calls if call.outcome.counts]
        if not judged:
            return
        if any(call.turn is None for call in judged):
            self._without_turns += 1
            return
        counted = [[0, 0] for _ in WINDOWS]
        for call in judged:
            cell = counted[_find_window(call.turn or 1)]
            cell[0] += call.outcome.status == "error"
            cell[1] += 1
        last = max(session.turns or 1, *(call.turn or 1 for call in judged))
        furthest = _find_window(last)
        self._furthest[furthest] += 1
        for window, (errors, calls) in enumerate(counted):
            if calls:
                self._cells[window][furthest][errors, calls] += 1

    def freeze(self) -> Along:
        reached = [sum(self._furthest[later] for later in range(at, len(WINDOWS))) for at in range(len(WINDOWS))]
        shown = max((at for at, count in enumerate(reached) if count >= FEW), default=None)
        end = shown if shown is not None else max((at for at, count in enumerate(reached) if count), default=-1)
        follow = shown if shown else None  # with the first window alone there is nothing to follow
        return Along(
            windows=tuple(self._window(at, follow, reached) for at in range(end + 1)),
            sessions=reached[0],
            followed_from=WINDOWS[follow][0] if follow is not None else None,
            followed_sessions=reached[follow] if follow is not None else 0,
            beyond=reached[end + 1] if 0 <= end < len(WINDOWS) - 1 else 0,
            without_turns=self._without_turns,
        )

    def _window(self, at: int, follow: int | None, reached: list[int]) -> Window:
        first, last = WINDOWS[at]
        name = f"{first}-{last}" if last else f"{first}+"
        everyone = make_rate(name, _join(self._cells[at]), reached[at])
        if follow is None:
            return Window(first=first, last=last, everyone=everyone)
        followed = make_rate(name, _join(self._cells[at][follow:]), reached[follow])
        return Window(first=first, last=last, everyone=everyone, followed=followed)


def _find_window(turn: int) -> int:
    return next(at for at, (_first, last) in enumerate(WINDOWS) if last is None or turn <= last)


def _join(cells: Iterable[Clusters]) -> Clusters:
    joined: Clusters = Counter()
    for cell in cells:
        joined.update(cell)
    return joined
