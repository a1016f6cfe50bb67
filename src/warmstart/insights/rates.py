"""Error rates of groups, weeks and windows of turns, with intervals that treat the calls of one session as a cluster.

Each group keeps only (errors, judged calls) per session, and equal pairs once with their number: a million calls fit in
little memory. Tallies of different sessions merge by adding up their counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta

from msgspec import Struct, field

from warmstart.insights.times import find_week
from warmstart.insights.types import Along, Breakdown, Rate, Window
from warmstart.model import PastSession
from warmstart.stats.rates import rate_interval

WINDOWS = ((1, 10), (11, 20), (21, 30), (31, 50), (51, 100), (101, None))  # turns
FEW = 5  # sessions that a window needs to be shown
WEEKS = 52  # shown at most, back from the latest

Clusters = dict[tuple[int, int], int]  # (errors, judged calls) of a session -> number of such sessions


def add_cluster(clusters: Clusters, errors: int, judged: int) -> None:
    """Count one session."""
    clusters[errors, judged] = clusters.get((errors, judged), 0) + 1


def add_clusters(clusters: Clusters, others: Mapping[tuple[int, int], int]) -> None:
    """Count the sessions of others too."""
    for pair, times in others.items():
        clusters[pair] = clusters.get(pair, 0) + times


def make_rate(name: str | None, clusters: Clusters, sessions: int | None = None) -> Rate:
    """Return the error rate of some sessions; `sessions` is their number if some had no judged calls."""
    errors, judged = _add_up(clusters)
    low, high = rate_interval(clusters) or (None, None)
    return Rate(
        name=name,
        errors=errors,
        judged=judged,
        sessions=sum(clusters.values()) if sessions is None else sessions,
        rate=errors / judged if judged else None,
        low=low,
        high=high,
    )


def _add_up(clusters: Clusters) -> tuple[int, int]:
    errors = sum(pair[0] * times for pair, times in clusters.items())
    return errors, sum(pair[1] * times for pair, times in clusters.items())


class RateTally(Struct, omit_defaults=True):
    """Counts errors overall and by tool, model, agent, project and week."""

    all: Clusters = field(default_factory=dict)
    groups: dict[str, dict[str | None, Clusters]] = field(default_factory=dict)  # by facet and name
    undated: int = 0

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
        add_cluster(self.all, errors, judged)
        self._count("model", session.model or None, errors, judged)
        self._count("agent", session.agent or None, errors, judged)
        self._count("project", session.project or None, errors, judged)
        if week := find_week(session.started):
            self._count("week", week, errors, judged)
        else:
            self.undated += 1

    def _count(self, facet: str, name: str | None, errors: int, judged: int) -> None:
        add_cluster(self.groups.setdefault(facet, {}).setdefault(name, {}), errors, judged)

    def merge(self, other: RateTally) -> None:
        """Add the sessions of another tally."""
        add_clusters(self.all, other.all)
        for facet, groups in other.groups.items():
            own = self.groups.setdefault(facet, {})
            for name, clusters in groups.items():
                add_clusters(own.setdefault(name, {}), clusters)
        self.undated += other.undated

    def overall(self) -> Rate:
        return make_rate("all", self.all)

    def breakdown(self, facet: str, top: int) -> Breakdown:
        """Return the groups with the most errors first; ties by judged calls."""
        groups = self.groups.get(facet, {})
        sizes = {name: _add_up(clusters) for name, clusters in groups.items()}
        order = sorted(groups, key=lambda name: (-sizes[name][0], -sizes[name][1], name or ""))
        shown = tuple(make_rate(name, groups[name]) for name in order[:top])
        return Breakdown(rates=shown, more=len(order) - len(shown))

    def weeks(self) -> tuple[Rate, ...]:
        """Return the weeks of the last year that have sessions."""
        groups = self.groups.get("week", {})
        names = sorted(week for week in groups if week)
        if not names:
            return ()
        earliest = (date.fromisoformat(names[-1]) - timedelta(weeks=WEEKS - 1)).isoformat()
        return tuple(make_rate(week, groups[week]) for week in names if week >= earliest)


class WindowTally(Struct, omit_defaults=True):
    """Counts errors by windows of turns. A session counts in every window that it reached."""

    cells: dict[tuple[int, int], Clusters] = field(default_factory=dict)  # (window, the last one that sessions reached)
    furthest: dict[int, int] = field(default_factory=dict)  # the last window that sessions reached -> their number
    without_turns: int = 0

    def add(self, session: PastSession) -> None:
        judged = [call for call in session.calls if call.outcome.counts]
        if not judged:
            return
        if any(call.turn is None for call in judged):
            self.without_turns += 1
            return
        counted = [[0, 0] for _ in WINDOWS]
        for call in judged:
            cell = counted[_find_window(call.turn or 1)]
            cell[0] += call.outcome.status == "error"
            cell[1] += 1
        last = max(session.turns or 1, *(call.turn or 1 for call in judged))
        furthest = _find_window(last)
        self.furthest[furthest] = self.furthest.get(furthest, 0) + 1
        for window, (errors, calls) in enumerate(counted):
            if calls:
                add_cluster(self.cells.setdefault((window, furthest), {}), errors, calls)

    def merge(self, other: WindowTally) -> None:
        """Add the sessions of another tally."""
        for cell, clusters in other.cells.items():
            add_clusters(self.cells.setdefault(cell, {}), clusters)
        for window, sessions in other.furthest.items():
            self.furthest[window] = self.furthest.get(window, 0) + sessions
        self.without_turns += other.without_turns

    def freeze(self) -> Along:
        reached = [sum(self.furthest.get(later, 0) for later in range(at, len(WINDOWS))) for at in range(len(WINDOWS))]
        shown = max((at for at, count in enumerate(reached) if count >= FEW), default=None)
        end = shown if shown is not None else max((at for at, count in enumerate(reached) if count), default=-1)
        follow = shown if shown else None  # with the first window alone there is nothing to follow
        return Along(
            windows=tuple(self._window(at, follow, reached) for at in range(end + 1)),
            sessions=reached[0],
            followed_from=WINDOWS[follow][0] if follow is not None else None,
            followed_sessions=reached[follow] if follow is not None else 0,
            beyond=reached[end + 1] if 0 <= end < len(WINDOWS) - 1 else 0,
            without_turns=self.without_turns,
        )

    def _window(self, at: int, follow: int | None, reached: list[int]) -> Window:
        first, last = WINDOWS[at]
        name = f"{first}-{last}" if last else f"{first}+"
        everyone = make_rate(name, self._join(at, 0), reached[at])
        if follow is None:
            return Window(first=first, last=last, everyone=everyone)
        followed = make_rate(name, self._join(at, follow), reached[follow])
        return Window(first=first, last=last, everyone=everyone, followed=followed)

    def _join(self, window: int, follow: int) -> Clusters:
        """Return a window's counts of the sessions that reached the window `follow`."""
        joined: Clusters = {}
        for (at, furthest), clusters in self.cells.items():
            if at == window and furthest >= follow:
                add_clusters(joined, clusters)
        return joined


def _find_window(turn: int) -> int:
    return next(at for at, (_first, last) in enumerate(WINDOWS) if last is None or turn <= last)
