"""Error rates for tables: ordinary 95 % intervals for one look, to read and not to decide on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from statistics import NormalDist

from warmstart.stats.sequence import ALPHA, widen

Clusters = Mapping[tuple[int, int], int] | Iterable[tuple[int, int]]


def rate_interval(sessions: Clusters, alpha: float = ALPHA) -> tuple[float, float] | None:
    """Return the interval of errors per call over sessions (errors, calls). None for fewer than two sessions with calls.

    Equal sessions may be given once, with their number.

    Wilson's interval with the calls discounted by the design effect (Korn and Graubard 1998): calls of one session are not
    independent, and a tool without an error so far must not show the interval 0 to 0.
    """
    clusters = sorted((pair, times) for pair, times in Counter(sessions).items() if pair[1])
    number = sum(times for _pair, times in clusters)
    if number < 2:
        return None
    calls = sum(calls * times for (_errors, calls), times in clusters)
    rate = sum(errors * times for (errors, _calls), times in clusters) / calls
    z = widen(NormalDist().inv_cdf(1 - alpha / 2), number - 1)
    variance = math.fsum(times * (y - rate * n) ** 2 for (y, n), times in clusters) / calls**2 * number / (number - 1)
    binomial = rate * (1 - rate) / calls
    effective = calls / max(1.0, variance / binomial) if binomial > 0 else float(calls)
    return _wilson(rate, effective, z)


def share_interval(hits: int, number: int, alpha: float = ALPHA) -> tuple[float, float] | None:
    """Return Wilson's interval of a share of independent cases. None for fewer than two."""
    return _wilson(hits / number, number, NormalDist().inv_cdf(1 - alpha / 2)) if number > 1 else None


def _wilson(rate: float, n: float, z: float) -> tuple[float, float]:
    """Return Wilson's interval, which stays inside 0 to 1; `n` may be an effective number."""
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return max(0.0, min(centre - reach, rate)), min(1.0, max(centre + reach, rate))
