"""One arm of a comparison: its sums, and how far its variance is to be trusted.

A few sessions say little about a variance, and with rare, heavy-tailed errors what they say is mostly too small: the bad
session has not come yet. So an arm also keeps the third and fourth moments of its clusters (the shape of the distribution),
and a small arm borrows from the other one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

PRIOR = 100.0  # clusters' worth of trust in the pooled variance and skewness, where an arm's own are smaller


class Arm:
    """One arm's sums over sessions, and the third and fourth moments of its clusters."""

    __slots__ = (
        "_base", "_fourth", "_product", "_square", "_third", "_weight", "_weights_squared",
        "clusters", "denominator", "events", "n", "numerator", "start",
    )  # fmt: skip

    def __init__(self, start: int) -> None:
        self.start = start  # of its block in a cluster's sums
        self.n = 0
        self.clusters = 0  # that have anything to count in this arm
        self.events = 0
        self.numerator = self.denominator = 0.0
        self._weight = self._weights_squared = 0.0
        self._square = self._product = self._base = 0.0
        self._third = (0.0,) * 4
        self._fourth = (0.0,) * 5

    def add(self, numerator: float, denominator: float, weight: float, sums: Sequence[float]) -> None:
        """A session, already weighted; `sums` are its cluster's, without it."""
        self.n += 1
        self.events += numerator != 0
        self.numerator += numerator
        self.denominator += denominator
        self._weight += weight
        self._weights_squared += weight * weight
        self._square += numerator * numerator
        self._product += numerator * denominator
        self._base += denominator * denominator
        y, d = sums[self.start], sums[self.start + 1]
        if y or d:
            self._count(y, d, -1)
        elif numerator or denominator:
            self.clusters += 1
        self._count(y + numerator, d + denominator, 1)

    def _count(self, y: float, d: float, sign: int) -> None:
        yy, yd, dd = sign * y * y, sign * y * d, sign * d * d
        a, b, c, e = self._third
        self._third = (a + yy * y, b + yy * d, c + dd * y, e + dd * d)
        a, b, c, e, f = self._fourth
        self._fourth = (a + yy * y * y, b + yy * y * d, c + yy * d * d, e + yd * d * d, f + dd * d * d)

    def ratio(self) -> float | None:
        return self.numerator / self.denominator if self.denominator > 0 else None

    def size(self) -> float:
        """Sessions, or as many unweighted ones as the weighted are worth (Kish)."""
        return self._weight * self._weight / self._weights_squared

    def square_sessions(self, value: float) -> float:
        """Sum of squared residuals, session by session."""
        return max(0.0, self._square - 2 * value * self._product + value * value * self._base)

    def shape(self, value: float, between: float) -> tuple[float, float]:
        """Kurtosis and skewness of the clusters' residuals, kept to what is possible."""
        a, b, c, e, f = self._fourth
        fourth = a - 4 * value * b + 6 * value**2 * c - 4 * value**3 * e + value**4 * f
        a, b, c, e = self._third
        third = a - 3 * value * b + 3 * value**2 * c - value**3 * e
        kurtosis = min(max(self.clusters * fourth / between**2, 1.0), float(self.clusters))
        limit = math.sqrt(kurtosis - 1)
        skew = math.sqrt(self.clusters) * third / between**1.5
        return kurtosis, min(max(skew, -limit), limit)


class Spread(Struct, frozen=True):
    """How uncertain one arm's ratio is, and how much that is to be trusted."""

    size: float  # sessions, by weight
    clusters: float
    correction: float  # for the mean being estimated from the same clusters
    variance: float
    independent: float  # the variance if sessions were independent
    degrees: float  # Satterthwaite: 2 / relative variance of the variance
    skew: float  # of a cluster's contribution


def guard(own: Spread, other: Spread) -> Spread:
    """An arm whose variance or skewness is below the pooled one is drawn towards it, the less the more clusters it has."""
    total = own.size + other.size
    trust = PRIOR / (PRIOR + own.clusters)
    pooled = (own.independent * own.size**2 + other.independent * other.size**2) / total
    missing = max(0.0, pooled / own.size - own.independent) * trust
    typical = own if own.independent else other
    design = max(1.0, typical.variance / typical.independent) if typical.independent else 1.0
    skew = (own.skew * own.size + other.skew * other.size) / total
    return Spread(
        size=own.size,
        clusters=own.clusters,
        correction=own.correction,
        variance=own.variance + missing * design,
        independent=own.independent + missing,
        degrees=own.degrees,
        skew=own.skew + trust * (skew - own.skew) if abs(skew) > abs(own.skew) else own.skew,
    )


def pool_degrees(one: Spread, other: Spread) -> float:
    """Welch: the arm with the larger variance counts most."""
    total = one.variance + other.variance
    parts = one.variance**2 / one.degrees + other.variance**2 / other.degrees
    return total * total / parts if parts > 0 else 0.0


def combine_skews(one: Spread, other: Spread) -> float:
    """Skewness of the difference. The arms' tails cancel where the arms are of one size."""
    total = (one.variance + other.variance) ** 1.5
    third = one.skew * one.variance**1.5 / math.sqrt(one.clusters)
    third -= other.skew * other.variance**1.5 / math.sqrt(other.clusters)
    return third / total if total > 0 else 0.0
