"""One arm of a comparison: its sums, and how far its variance can be trusted.

A few sessions say little about a variance, and with rare, heavy-tailed errors a small sample mostly underestimates it: the
bad session has not come yet. So an arm also keeps third and fourth moments (the shape of the distribution), and a small
arm borrows from the other one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

PRIOR = 200.0  # weight, in clusters, of the pooled variance and skewness where an arm's own are smaller
TAIL_SEEN = 0.7  # samples understate the kurtosis of a heavy tail: degrees of freedom are cut to this share
SKEW_UNSEEN = 1.5  # samples understate the skewness too, by this factor
TINY = 1e-100  # sums of squares below this count as 0: their fourth power underflows


class Shape(Struct, frozen=True, gc=False):
    """How far from normal an arm's ratio is."""

    degrees: float  # degrees of freedom of its variance
    skew: float  # of the ratio, not of a session: it falls with the square root of the number of sessions


class Spread(Struct, frozen=True, gc=False):
    """How uncertain an arm's ratio is."""

    size: float  # effective number of sessions
    clusters: float
    variance: float
    independent: float  # the variance if sessions were independent
    shape: Shape


class Moments:
    """Third and fourth moments of pairs (y, d); those of y - value * d follow from them for any value."""

    __slots__ = ("_fourth", "_third")

    def __init__(self) -> None:
        self._third = (0.0, 0.0, 0.0, 0.0)
        self._fourth = (0.0, 0.0, 0.0, 0.0, 0.0)

    def add(self, y: float, d: float, sign: int = 1) -> None:
        """Add a pair, or remove it with sign -1."""
        yy, yd, dd = y * y, y * d, d * d
        sy, sd = sign * y, sign * d
        a, b, c, e = self._third
        self._third = (a + yy * sy, b + yy * sd, c + dd * sy, e + dd * sd)
        a, b, c, e, f = self._fourth
        self._fourth = (a + yy * y * sy, b + yy * yd * sign, c + yy * dd * sign, e + dd * yd * sign, f + dd * d * sd)

    def find_shape(self, value: float, square: float, count: int) -> Shape:
        """Return the shape of the sum of `count` residuals whose squares sum to `square`, clipped to possible values."""
        a, b, c, e, f = self._fourth
        fourth = a - value * (4 * b - value * (6 * c - value * (4 * e - value * f)))
        a, b, c, e = self._third
        third = a - value * (3 * b - value * (3 * c - value * e))
        kurtosis = min(max(count * fourth / square**2, 1.0), float(count))
        limit = math.sqrt((kurtosis - 1) / count)
        return Shape(count_degrees(count, kurtosis), min(max(third / square**1.5, -limit), limit))


class Arm:
    """The sums of one arm over sessions and clusters."""

    __slots__ = (
        "_base",
        "_by_cluster",
        "_by_session",
        "_product",
        "_square",
        "_weight",
        "_weights_squared",
        "clusters",
        "denominator",
        "events",
        "n",
        "numerator",
        "start",
    )

    def __init__(self, start: int) -> None:
        self.start = start  # where the arm's block begins in a cluster's sums
        self.n = 0
        self.clusters = 0  # clusters that contribute to this arm
        self.events = 0
        self.numerator = self.denominator = 0.0
        self._weight = self._weights_squared = 0.0
        self._square = self._product = self._base = 0.0
        self._by_session, self._by_cluster = Moments(), Moments()

    def add(self, numerator: float, denominator: float, weight: float, sums: Sequence[float]) -> None:
        """Add a session, already weighted; `sums` are those of its cluster before it."""
        self.n += 1
        self.events += numerator != 0
        self.numerator += numerator
        self.denominator += denominator
        self._weight += weight
        self._weights_squared += weight * weight
        self._square += numerator * numerator
        self._product += numerator * denominator
        self._base += denominator * denominator
        self._by_session.add(numerator, denominator)
        y, d = sums[self.start], sums[self.start + 1]
        if y or d:
            self._by_cluster.add(y, d, -1)
        elif numerator or denominator:
            self.clusters += 1
        self._by_cluster.add(y + numerator, d + denominator)

    def ratio(self) -> float | None:
        return self.numerator / self.denominator if self.denominator > 0 else None

    def size(self) -> float:
        """Return the effective number of sessions (Kish): as many as unweighted ones would be."""
        return self._weight * self._weight / self._weights_squared

    def correction(self) -> float:
        """Return the small-sample correction for estimating the ratio from the same clusters."""
        return self.clusters / (self.clusters - 1) if self.clusters > 1 else 1.0

    def find_excess(self, value: float, between: float) -> float:
        """Return the part of the ratio's variance that exists only because sessions of a cluster are alike."""
        return (between - self._within(value)) * self.correction() / self.denominator**2

    def spread(self, value: float, between: float, whole: float) -> Spread:
        """Return the arm's uncertainty, from the clusters' squared residuals `between`.

        `whole` says how far clusters (1), and not sessions (0), are the units.
        """
        if not between:
            return Spread(self.size(), self.clusters, 0.0, 0.0, Shape(max(self.clusters - 1.0, 0.5), 0.0))
        scale = self.correction() / self.denominator**2
        within = self._within(value)
        shape = self._by_cluster.find_shape(value, between, self.clusters)
        if within and whole < 1:
            shape = mix_shapes(self._by_session.find_shape(value, within, self.n), shape, whole)
        return Spread(self.size(), self.clusters, between * scale, within * scale, shape)

    def _within(self, value: float) -> float:
        total = self._square - 2 * value * self._product + value * value * self._base
        return total if total > TINY else 0.0


def mix_shapes(first: Shape, second: Shape, share: float) -> Shape:
    """Return a shape between two, `share` of the way to the second."""
    inverse = (1 - share) / first.degrees + share / second.degrees
    return Shape(1 / inverse, (1 - share) * first.skew + share * second.skew)


def count_degrees(units: float, kurtosis: float) -> float:
    """Return the degrees of freedom of a variance: 2 / its relative variance (Satterthwaite). Heavy tails lower them."""
    most = max(units - 1, 0.5)
    return min(most, TAIL_SEEN * 2 * units / (kurtosis - 1)) if kurtosis > 1 else most


def guard(own: Spread, other: Spread, design: float) -> Spread:
    """Pull an arm's variance and skewness up towards the pooled ones, the less the more clusters it has.

    `design` is the design effect of the difference: a lack in the sessions' variance counts that many times in the clusters'.
    """
    total = own.size + other.size
    trust = PRIOR / (PRIOR + own.clusters)
    pooled = (own.independent * own.size**2 + other.independent * other.size**2) / total
    missing = max(0.0, pooled / own.size - own.independent) * trust
    skew = (own.shape.skew * own.size**1.5 + other.shape.skew * other.size**1.5) / (total * math.sqrt(own.size))
    if abs(skew) > abs(own.shape.skew):
        skew = own.shape.skew + trust * (skew - own.shape.skew)
    else:
        skew = own.shape.skew
    return Spread(
        size=own.size,
        clusters=own.clusters,
        variance=own.variance + missing * max(1.0, design),
        independent=own.independent + missing,
        shape=Shape(own.shape.degrees, skew),
    )


def combine_shapes(treatment: Spread, control: Spread) -> Shape:
    """Return the shape of the difference: Welch's degrees of freedom, and a skewness that cancels between like arms."""
    total = treatment.variance + control.variance
    if total <= 0:
        return Shape(0.0, 0.0)
    parts = treatment.variance**2 / treatment.shape.degrees + control.variance**2 / control.shape.degrees
    third = treatment.shape.skew * treatment.variance**1.5 - control.shape.skew * control.variance**1.5
    return Shape(total * total / parts, SKEW_UNSEEN * third / total**1.5)
