"""Partial pooling: estimates of a group (notes, projects) pulled towards their common mean, as far as they are alike.

Effects are assumed normal around an unknown mean with an unknown spread. The spread is averaged over its posterior
(half-Cauchy prior, Gelman 2006) instead of estimated as one number, which for a few members would often be 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

_NODES = 200  # points of the numeric integral


class Pooled(Struct, frozen=True, kw_only=True):
    """The common mean, and each member pulled towards it: estimate and standard error."""

    mean: float
    se: float
    spread: float  # between members
    members: dict[str, tuple[float, float]]


def pool_partially(estimates: Mapping[str, tuple[float, float]]) -> Pooled | None:
    """Pool `(estimate, standard error)` by member; None without any."""
    if any(not math.isfinite(value) or not 0 < se < math.inf for value, se in estimates.values()):
        raise ValueError("estimates must be finite and standard errors positive")
    if not estimates:
        return None
    values = list(estimates.values())
    scale = sorted(se for _value, se in values)[len(values) // 2]
    spreads = [scale * math.tan(math.pi / 2 * (node + 0.5) / _NODES) for node in range(_NODES)]
    means = [_find_mean(values, spread) for spread in spreads]
    logs = [_log_fit(values, spread, *mean) for spread, mean in zip(spreads, means, strict=True)]
    top = max(logs)
    total = math.fsum(math.exp(log - top) for log in logs)
    weights = [math.exp(log - top) / total for log in logs]
    mean, se = _average(weights, means)
    members = {
        name: _average(weights, [_pull(value, own, spread, *m) for spread, m in zip(spreads, means, strict=True)])
        for name, (value, own) in estimates.items()
    }
    middle = math.fsum(weight * min(spread, 1e3 * scale) for weight, spread in zip(weights, spreads, strict=True))
    return Pooled(mean=mean, se=se, spread=middle, members=members)


def _find_mean(values: Sequence[tuple[float, float]], spread: float) -> tuple[float, float]:
    """Return the mean for one spread, and its variance."""
    weights = [1 / (se * se + spread * spread) for _value, se in values]
    total = math.fsum(weights)
    return math.fsum(weight * value for weight, (value, _se) in zip(weights, values, strict=True)) / total, 1 / total


def _log_fit(values: Sequence[tuple[float, float]], spread: float, mean: float, variance: float) -> float:
    """Return the log-likelihood of one spread, with the mean integrated out."""
    parts = ((value - mean, se * se + spread * spread) for value, se in values)
    return math.log(variance) / 2 - math.fsum(gap * gap / total + math.log(total) for gap, total in parts) / 2


def _pull(value: float, se: float, spread: float, mean: float, variance: float) -> tuple[float, float]:
    """Return a member's estimate for one spread, and its variance."""
    own = spread * spread / (spread * spread + se * se)
    return own * value + (1 - own) * mean, own * se * se + (1 - own) ** 2 * variance


def _average(weights: Sequence[float], parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the mean and the standard error of a mixture."""
    mean = math.fsum(weight * value for weight, (value, _variance) in zip(weights, parts, strict=True))
    square = math.fsum(
        w * (variance + (value - mean) ** 2) for w, (value, variance) in zip(weights, parts, strict=True)
    )
    return mean, math.sqrt(square)
