"""The power of the always-valid test when it is looked at after every session.

It is computed before an experiment, so that nobody waits a month for what a month cannot show. The standardised difference
is a Brownian motion with drift; the chance that it has crossed the boundary by a given session solves Fortet's integral
equation, on a grid (Park and Schuurmann 1976). The boundary comes from the code that decides later, guards included.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import NormalDist, median

from msgspec import Struct

from warmstart.stats.arm import Shape, Spread, combine_shapes, count_degrees, guard
from warmstart.stats.compare import MIN_EVENTS, MIN_SESSIONS
from warmstart.stats.sequence import ALPHA, find_boundary, stretch, widen

_GRID = 160  # times at which the integral equation is solved
_SMALLEST_SAMPLE = 25
_FIRST = 6.0  # sessions at which the grid starts; no crossing happens so early
_DISCRETE = 0.583  # Siegmund (1985): a look after each session detects a little less than continuous looking
_MOST = 100_000_000
_NORMAL = NormalDist()


class Tail(Struct, frozen=True):
    """The shape of a sample of this many units. A smaller sample shows less of a heavy tail."""

    units: int
    kurtosis: float
    skew: float


class Baseline(Struct, frozen=True, kw_only=True):
    """Sessions without a seed, as `measure_baseline` finds them in the history."""

    rate: float  # errors per call
    calls: float  # mean calls of a session
    variance: float  # of (errors - rate * calls) / mean calls, session by session
    tails: tuple[Tail, ...] = ()  # of the units that are assigned to arms, fewest units first; empty: normal
    design_effect: float = 1.0  # of the rate
    cluster_size: float = 1.0  # sessions in a cluster
    sessions: int = 0  # sessions behind the last two; among fewer, clusters are smaller. 0: clusters never grow
    by_cluster: bool = False  # whole clusters (users, say) are assigned to an arm, not single sessions
    eventful: float = 1.0  # share of sessions with an error


def measure_baseline(rows: Iterable[tuple[float, float, Hashable]], *, by_cluster: bool = False) -> Baseline | None:
    """Measure a baseline from sessions (errors, calls, cluster). None if they show no variance."""
    sessions = list(rows)
    if not all(math.isfinite(errors) and math.isfinite(calls) for errors, calls, _ in sessions):
        raise ValueError("errors and calls must be finite numbers")
    total = math.fsum(calls for _, calls, _ in sessions)
    if total <= 0:
        return None
    rate = math.fsum(errors for errors, _, _ in sessions) / total
    singles = [errors - rate * calls for errors, calls, _ in sessions]
    clusters: dict[Hashable, float] = {}
    for residual, (_, _, cluster) in zip(singles, sessions, strict=True):
        clusters[cluster] = clusters.get(cluster, 0.0) + residual
    apart, together = (math.fsum(value * value for value in values) for values in (singles, clusters.values()))
    if len(clusters) < 2 or apart <= 0:
        return None
    calls = total / len(sessions)
    return Baseline(
        rate=rate,
        calls=calls,
        variance=apart / (len(sessions) - 1) / calls**2,
        tails=tuple(measure_tails(list(clusters.values()) if by_cluster else singles)),
        design_effect=max(1.0, together / apart),
        cluster_size=len(sessions) / len(clusters),
        sessions=len(sessions),
        by_cluster=by_cluster,
        eventful=sum(errors != 0 for errors, _, _ in sessions) / len(sessions),
    )


def measure_tails(residuals: Sequence[float]) -> Iterator[Tail]:
    """Yield median kurtosis and skewness over samples of growing size, the last one being all residuals."""
    parts = 1
    while len(residuals) // (parts * 4) >= _SMALLEST_SAMPLE:
        parts *= 4
    while parts:
        shapes = [shape for part in range(parts) if (shape := _find_shape(residuals[part::parts]))]
        if shapes:
            kurtosis, skew = (median(values) for values in zip(*shapes, strict=True))
            yield Tail(len(residuals) // parts, kurtosis, skew)
        parts //= 4


def _find_shape(residuals: Sequence[float]) -> tuple[float, float] | None:
    mean = math.fsum(residuals) / len(residuals)
    square, third, fourth = (math.fsum((value - mean) ** power for value in residuals) for power in (2, 3, 4))
    n = len(residuals)
    return (n * fourth / square**2, math.sqrt(n) * third / square**1.5) if square > 0 else None


def find_power(
    baseline: Baseline, drop: float, sessions: int, *, share_cold: float = 0.5, alpha: float = ALPHA
) -> float:
    """Return the chance to detect a relative `drop` of the rate (negative: a rise) at some look.

    `sessions` counts both arms together.
    """
    path = _Path(baseline, drop, share_cold, alpha)
    return path.find_chances(float(sessions))[-1][1] if path.slope and sessions >= path.start else 0.0


def sessions_needed(
    baseline: Baseline, drop: float, *, power: float = 0.8, share_cold: float = 0.5, alpha: float = ALPHA
) -> int | None:
    """Return the sessions of both arms together until a relative `drop` is detected with this chance. None: too many."""
    path = _Path(baseline, drop, share_cold, alpha)
    if not path.slope:
        return None
    reach = 8 + _NORMAL.inv_cdf(power)
    last = max(4 * path.start, (reach / path.slope) ** 2 * baseline.design_effect)
    if last > _MOST:
        return None
    points = path.find_chances(last)
    for (before, low), (time, high) in pairwise(points):
        if high >= power:
            return max(math.ceil(path.start), math.ceil(before + (time - before) * (power - low) / (high - low)))
    return None


def detectable_drop(
    baseline: Baseline, sessions: int, *, power: float = 0.8, share_cold: float = 0.5, alpha: float = ALPHA
) -> float | None:
    """Return the smallest relative drop that this many sessions detect with this chance. None: not even a drop to 0."""
    low, high = 0.0, 1.0
    if find_power(baseline, high, sessions, share_cold=share_cold, alpha=alpha) < power:
        return None
    while high - low > 0.002:
        middle = (low + high) / 2
        enough = find_power(baseline, middle, sessions, share_cold=share_cold, alpha=alpha) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


class _Path:
    """The standardised difference as a Brownian motion with a slope, and its boundary, as functions of sessions.

    Its time is the information: sessions / the design effect of the difference at that many sessions.
    """

    def __init__(self, baseline: Baseline, drop: float, share_cold: float, alpha: float) -> None:
        if not 0 < share_cold < 1 or not drop <= 1 or not baseline.rate > 0 or not baseline.variance > 0:
            raise ValueError("a share must lie between 0 and 1, a drop be at most 1, a rate and its variance positive")
        self._baseline, self._drop, self._alpha = baseline, drop, alpha
        self._cold, self._warm = share_cold, 1 - share_cold
        events = baseline.eventful * max(self._cold, self._warm * (1 - drop))
        self.start = max(MIN_SESSIONS / min(self._cold, self._warm), MIN_EVENTS / events)
        self._variances = treat_variance(baseline, drop), baseline.variance
        self.slope = (
            abs(drop) * baseline.rate / math.sqrt(self._variances[0] / self._warm + self._variances[1] / self._cold)
        )

    def find_chances(self, last: float) -> list[tuple[float, float]]:
        """Return (sessions, chance to have crossed by then) up to `last` sessions, by the integral equation.

        A path above the boundary now has crossed it at some earlier time and moved from there to its place above.
        """
        grid = [_FIRST * (last / _FIRST) ** (at / (2 * _GRID)) for at in range(1, 2 * _GRID + 1)]
        times, heights = zip(*(self._place(sessions) for sessions in grid), strict=True)
        points, steps, crossed = [(_FIRST, 0.0)], list[float](), 0.0
        for at in range(1, 2 * _GRID, 2):  # crossings lie between the looks, at the even places
            time, height = times[at], heights[at]
            above = _chance_above(height, time) - sum(
                step * _chance_above(height - heights[2 * n], time - times[2 * n]) for n, step in enumerate(steps)
            )
            fresh = _chance_above(height - heights[at - 1], time - times[at - 1])
            steps.append(min(max(0.0, above / fresh), 1 - crossed) if fresh > 1e-9 else 0.0)
            crossed += steps[-1]
            points.append((grid[at], crossed))
        return points

    def _place(self, sessions: float) -> tuple[float, float]:
        """Return the motion's time at this many sessions, and how far above its slope the boundary is."""
        base = self._baseline
        grown = min(1.0, sessions / base.sessions) if base.sessions else 1.0
        clusters = sessions / (1 + (base.cluster_size - 1) * grown)
        design = self._find_design(1 + (base.design_effect - 1) * grown)
        warm = self._expect(sessions, clusters, design, treated=True)
        cold = self._expect(sessions, clusters, design, treated=False)
        guarded = guard(warm, cold, design), guard(cold, warm, design)
        shape = combine_shapes(*guarded)
        degrees = min(shape.degrees, max(clusters - 1, 0.5))
        reach = widen(find_boundary(sessions * self._warm * self._cold, self._alpha), degrees)
        reach = stretch(reach, shape.skew if self._drop > 0 else -shape.skew)
        inflation = (guarded[0].variance + guarded[1].variance) / (warm.variance + cold.variance)
        time = sessions / design
        return time, reach * math.sqrt(inflation * time) + _DISCRETE - self.slope * time

    def _find_design(self, of_rate: float) -> float:
        """Return the design effect of the difference.

        If single sessions are assigned, a cluster's level is in both arms and cancels, except for the drop: it is larger in
        clusters with more errors.
        """
        if self._baseline.by_cluster:
            return of_rate
        difference = self._variances[0] / self._warm + self._variances[1] / self._cold
        return 1 + self._drop**2 * (of_rate - 1) * self._baseline.variance / difference

    def _expect(self, sessions: float, clusters: float, design: float, *, treated: bool) -> Spread:
        """Return the expected uncertainty of an arm. Rarer errors are more skewed."""
        share, variance = (self._warm, self._variances[0]) if treated else (self._cold, self._variances[1])
        own = sessions * share
        units = max((clusters * share if self._baseline.by_cluster else own), 1.5)
        kurtosis, skew = self._find_tail(units)
        left = max(1 - self._drop, 0.05) if treated else 1.0
        kurtosis = min(3 + (kurtosis - 3) / left, units)
        shape = Shape(count_degrees(units, kurtosis), skew / math.sqrt(left * units))
        return Spread(own, min(own, clusters), variance * design / own, variance / own, shape)

    def _find_tail(self, units: float) -> tuple[float, float]:
        """Return kurtosis and skewness for this many units, interpolated on the logarithm of units."""
        tails = self._baseline.tails or (Tail(1, 3.0, 0.0),)
        for fewer, more in pairwise(tails):
            if units < more.units:
                place = max(0.0, math.log(units / fewer.units) / math.log(more.units / fewer.units))
                kurtosis = fewer.kurtosis + place * (more.kurtosis - fewer.kurtosis)
                return kurtosis, fewer.skew + place * (more.skew - fewer.skew)
        return tails[-1].kurtosis, tails[-1].skew


def treat_variance(baseline: Baseline, drop: float) -> float:
    """Return a session's variance after the drop.

    The chance variation of calls scales with the rate, the differences between sessions with its square.
    """
    rate, left = baseline.rate, 1 - drop
    luck = min(baseline.variance, max(0.0, rate * (1 - rate) / baseline.calls))
    after = max(0.0, rate * left * (1 - rate * left) / baseline.calls) if luck else 0.0
    return after + (baseline.variance - luck) * left * left


def _chance_above(distance: float, time: float) -> float:
    return math.erfc(distance / math.sqrt(2 * time)) / 2
