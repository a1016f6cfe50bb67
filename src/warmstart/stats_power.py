"""What can this much traffic show? The power of the always-valid test, looked at after every session.

Said before an experiment, so that nobody waits a month for what a month cannot show. The standardised difference is a
Brownian motion with drift; the chance that it has crossed the boundary by a given session solves Fortet's integral
equation, on a grid (Park and Schuurmann 1976). The boundary comes from the code that decides later, guards included.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from itertools import pairwise
from statistics import NormalDist

from msgspec import Struct

from warmstart.stats import MIN_SESSIONS
from warmstart.stats_sequence import ALPHA, find_boundary, stretch, widen
from warmstart.stats_spread import Spread, combine_skews, guard, pool_degrees

_GRID = 160  # times at which the integral equation is solved
_FIRST = 6.0  # sessions: where the grid starts; nothing crosses so early
_DISCRETE = 0.583  # Siegmund (1985): looking once a session sees a little less than looking all the time
_MOST = 100_000_000
_NORMAL = NormalDist()


class Baseline(Struct, frozen=True, kw_only=True):
    """Sessions as they are without a seed. By default each is on its own; `measure_baseline` takes it from history."""

    rate: float  # errors per call
    calls: float  # mean calls of a session
    variance: float  # of (errors - rate * calls) / mean calls, session by session
    kurtosis: float = 3.0  # of the same, cluster by cluster
    skew: float = 0.0
    design_effect: float = 1.0
    cluster_size: float = 1.0  # sessions in a cluster


def measure_baseline(sessions: Iterable[tuple[float, float, Hashable]], *, by_cluster: bool = False) -> Baseline | None:
    """From (errors, calls, cluster). None where there is no variance to go by.

    `by_cluster`: whole clusters (users, say) are assigned to an arm. Where sessions are assigned one by one, a cluster's own
    level is in both arms and cancels, so its design effect is none of the difference's.
    """
    rows = [(errors, calls, cluster if by_cluster else at) for at, (errors, calls, cluster) in enumerate(sessions)]
    total = math.fsum(calls for _, calls, _ in rows)
    if total <= 0 or len(rows) < 2:
        return None
    rate = math.fsum(errors for errors, _, _ in rows) / total
    residuals: dict[Hashable, float] = {}
    for errors, calls, cluster in rows:
        residuals[cluster] = residuals.get(cluster, 0.0) + errors - rate * calls
    apart = math.fsum((errors - rate * calls) ** 2 for errors, calls, _ in rows)
    square, third, fourth = (math.fsum(value**power for value in residuals.values()) for power in (2, 3, 4))
    if apart <= 0 or square <= 0 or len(residuals) < 2:
        return None
    calls = total / len(rows)
    return Baseline(
        rate=rate,
        calls=calls,
        variance=apart / (len(rows) - 1) / calls**2,
        kurtosis=max(1.0, len(residuals) * fourth / square**2),
        skew=math.sqrt(len(residuals)) * third / square**1.5,
        design_effect=max(1.0, square / apart),
        cluster_size=len(rows) / len(residuals),
    )


def find_power(
    baseline: Baseline, drop: float, sessions: int, *, share_cold: float = 0.5, alpha: float = ALPHA
) -> float:
    """The chance to have found a relative `drop` of the rate (negative: a rise) at any look up to this many sessions of
    both arms together."""
    path = _Path(baseline, drop, share_cold, alpha)
    return path.find_chances(float(sessions))[-1][1] if path.slope and sessions >= path.start else 0.0


def sessions_needed(
    baseline: Baseline, drop: float, *, power: float = 0.8, share_cold: float = 0.5, alpha: float = ALPHA
) -> int | None:
    """Sessions of both arms together until a relative `drop` is found with this chance. None: not within reason."""
    path = _Path(baseline, drop, share_cold, alpha)
    if not path.slope:
        return None
    reach = 8 + _NORMAL.inv_cdf(power)
    last = max(4 * path.start, (reach / path.slope) ** 2)
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
    """The smallest relative drop found with this chance within so many sessions. None: not even the end of all errors."""
    low, high = 0.0, 1.0
    if find_power(baseline, high, sessions, share_cold=share_cold, alpha=alpha) < power:
        return None
    while high - low > 0.002:
        middle = (low + high) / 2
        enough = find_power(baseline, middle, sessions, share_cold=share_cold, alpha=alpha) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


class _Path:
    """The standardised difference, times the square root of sessions: a Brownian motion with a slope, and its boundary."""

    def __init__(self, baseline: Baseline, drop: float, share_cold: float, alpha: float) -> None:
        if not 0 < share_cold < 1 or not drop <= 1 or not baseline.rate > 0 or not baseline.variance > 0:
            raise ValueError("a share is between 0 and 1, a drop at most 1, a rate and its variance positive")
        self._baseline, self._drop, self._alpha = baseline, drop, alpha
        self._cold, self._warm = share_cold, 1 - share_cold
        self.start = MIN_SESSIONS / min(self._cold, self._warm)
        self._variances = treat_variance(baseline, drop), baseline.variance
        spread = self._variances[0] / self._warm + self._variances[1] / self._cold
        self.slope = abs(drop) * baseline.rate / math.sqrt(spread * baseline.design_effect)

    def find_boundary(self, sessions: float) -> float:
        left = max(1 - self._drop, 0.05)
        warm = self._expect(sessions * self._warm, self._variances[0], left)
        cold = self._expect(sessions * self._cold, self._variances[1], 1.0)
        guarded = guard(warm, cold), guard(cold, warm)
        skew = combine_skews(*guarded) * math.copysign(1.0, self._drop)
        reach = widen(find_boundary(sessions * self._warm * self._cold, self._alpha), pool_degrees(*guarded))
        inflation = (guarded[0].variance + guarded[1].variance) / (warm.variance + cold.variance)
        return stretch(reach, skew) * math.sqrt(inflation * sessions) + _DISCRETE

    def _expect(self, sessions: float, variance: float, left: float) -> Spread:
        """What an arm's sessions will look like. Rarer errors are more lopsided ones."""
        base = self._baseline
        clusters = max(sessions / base.cluster_size, 1.5)
        kurtosis = min(3 + (base.kurtosis - 3) / left, clusters)
        degrees = clusters - 1
        return Spread(
            size=sessions,
            clusters=clusters,
            correction=1.0,
            variance=variance * base.design_effect / sessions,
            independent=variance / sessions,
            degrees=min(degrees, 2 * clusters / (kurtosis - 1)) if kurtosis > 1 else degrees,
            skew=base.skew / math.sqrt(left),
        )

    def find_chances(self, last: float) -> list[tuple[float, float]]:
        """(sessions, chance to have crossed by then), by the integral equation: who is above the boundary now crossed it
        at some time before and is now above it with the chance of a motion that started on it then."""
        times = [_FIRST * (last / _FIRST) ** (at / _GRID) for at in range(_GRID + 1)]
        middles = [math.sqrt(before * time) for before, time in pairwise(times)]
        heights = [self.find_boundary(time) - self.slope * time for time in times[1:]]
        starts = [self.find_boundary(time) - self.slope * time for time in middles]
        points, steps, crossed = [(times[0], 0.0)], list[float](), 0.0
        for at, (time, height) in enumerate(zip(times[1:], heights, strict=True)):
            above = _chance_above(height, time)
            above -= sum(
                step * _chance_above(height - start, time - middle)
                for step, start, middle in zip(steps, starts, middles, strict=False)
            )
            fresh = _chance_above(height - starts[at], time - middles[at])
            steps.append(min(max(0.0, above / fresh), 1 - crossed) if fresh > 1e-9 else 0.0)
            crossed += steps[-1]
            points.append((time, crossed))
        return points


def treat_variance(baseline: Baseline, drop: float) -> float:
    """A session's variance after the drop: the luck of the calls goes with the rate, the differences between sessions with
    its square."""
    rate, left = baseline.rate, 1 - drop
    luck = min(baseline.variance, max(0.0, rate * (1 - rate) / baseline.calls))
    after = max(0.0, rate * left * (1 - rate * left) / baseline.calls) if luck else 0.0
    return after + (baseline.variance - luck) * left * left


def _chance_above(distance: float, time: float) -> float:
    return math.erfc(distance / math.sqrt(2 * time)) / 2
