"""Rates to read, not to decide on: ordinary 95 % intervals for one look. Where none is defined there is none."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from statistics import NormalDist

from msgspec import Struct

from warmstart.stats.sequence import ALPHA, widen


class RateInterval(Struct, frozen=True):
    """A ratio and its interval."""

    value: float
    low: float | None  # None together with `high`: one cluster says nothing about others
    high: float | None
    n: int
    clusters: int


def proportion_interval(successes: float, n: float, alpha: float = ALPHA) -> tuple[float, float] | None:
    """Wilson's interval: stays inside 0 to 1 and says something sensible at 0 of 20. `n` may be an effective number."""
    if not 0 <= successes <= n or not math.isfinite(n):
        raise ValueError("successes are between 0 and n")
    if n == 0:
        return None
    z = NormalDist().inv_cdf(1 - alpha / 2)
    return _wilson(successes / n, n, z)


def ratio_interval(rows: Iterable[tuple[float, float, Hashable]], alpha: float = ALPHA) -> RateInterval | None:
    """Errors per call over sessions (numerator, denominator, cluster), for a table. None without any denominator.

    A proportion gets Wilson's interval with the calls discounted by the design effect (Korn and Graubard 1998), so that a
    tool without an error so far does not show the interval 0 to 0; any other ratio the cluster-robust normal one.
    """
    sums, n, is_proportion = _sum_clusters(rows)
    over, under = sum(y for y, _ in sums), sum(d for _, d in sums)
    if under <= 0:
        return None
    value, clusters = over / under, len(sums)
    if clusters < 2:
        return RateInterval(value, None, None, n, clusters)
    z = widen(NormalDist().inv_cdf(1 - alpha / 2), clusters - 1)
    variance = sum((y - value * d) ** 2 for y, d in sums) / under**2 * clusters / (clusters - 1)
    if not is_proportion:
        reach = z * math.sqrt(variance)
        return (
            RateInterval(value, value - reach, value + reach, n, clusters)
            if variance > 0
            else RateInterval(value, None, None, n, clusters)
        )
    binomial = value * (1 - value) / under
    effective = under / max(1.0, variance / binomial) if binomial > 0 else under
    low, high = _wilson(value, effective, z)
    return RateInterval(value, low, high, n, clusters)


def _sum_clusters(rows: Iterable[tuple[float, float, Hashable]]) -> tuple[Sequence[list[float]], int, bool]:
    sums: dict[Hashable, list[float]] = {}
    n, is_proportion = 0, True
    for numerator, denominator, cluster in rows:
        if not (math.isfinite(numerator) and math.isfinite(denominator)) or denominator < 0:
            raise ValueError("numerators and denominators are finite, denominators not negative")
        n += 1
        is_proportion = is_proportion and 0 <= numerator <= denominator
        if denominator or numerator:
            both = sums.setdefault(cluster, [0.0, 0.0])
            both[0] += numerator
            both[1] += denominator
    return list(sums.values()), n, is_proportion


def _wilson(share: float, n: float, z: float) -> tuple[float, float]:
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, min(centre - reach, share)), min(1.0, max(centre + reach, share))
