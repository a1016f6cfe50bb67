"""Error rates for tables: ordinary 95 % intervals for one look, to read and not to decide on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from warmstart.stats.sequence import ALPHA, widen


def rate_interval(sessions: Sequence[tuple[int, int]], alpha: float = ALPHA) -> tuple[float, float] | None:
    """Return the interval of errors per call over sessions (errors, calls). None for fewer than two sessions with calls.

    Wilson's interval with the calls discounted by the design effect (Korn and Graubard 1998): calls of one session are not
    independent, and a tool without an error so far must not show the interval 0 to 0.
    """
    clusters = [(errors, calls) for errors, calls in sessions if calls]
    if len(clusters) < 2:
        return None
    calls = sum(calls for _errors, calls in clusters)
    rate = sum(errors for errors, _calls in clusters) / calls
    z = widen(NormalDist().inv_cdf(1 - alpha / 2), len(clusters) - 1)
    variance = math.fsum((y - rate * n) ** 2 for y, n in clusters) / calls**2 * len(clusters) / (len(clusters) - 1)
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
