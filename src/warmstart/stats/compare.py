"""Compare two arms session by session, with an interval that is valid at every look.

`Comparison` takes one session at a time and `estimate` answers at any moment, so the report and the benchmark that looks
after every single session run the same code.

The estimate is the difference of two ratios, treatment minus control, each the sum of numerators over the sum of
denominators (errors per judged call; a mean has denominator 1). A ratio's variance is that of its linearised sessions
(delta method), summed within clusters first, because sessions of one task or user are not independent. A cluster with
sessions in both arms contributes its covariance too, which makes a comparison within tasks sharp.

The interval is always valid (see `sequence`). That theory assumes many sessions, while tool errors are rare, skewed and
heavy-tailed. Four guards, chosen by simulation (bench/stats.py), make it hold from the first answer on; all fade with time:
1. no interval at all with too few sessions, clusters, or sessions with an event;
2. while an arm is small, its variance and skewness stay near the pooled ones: a cold arm of 30 sessions that has not met
   its bad session yet must not look certain;
3. Student's t instead of the normal, with the degrees of freedom that the clusters' kurtosis leaves to the variance;
4. Hall's transformation for the skewness of the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Literal

from msgspec import Struct

from warmstart.stats.arm import TINY, Arm, Spread, combine_shapes, guard
from warmstart.stats.sequence import ALPHA, MeasuredDifference, look

MIN_SESSIONS = 20  # in each arm
MIN_CLUSTERS = 10  # in each arm
MIN_EVENTS = 30  # sessions with an event, in the arm with more of them
MIN_DEGREES = 5.0  # below this, one or two sessions carry the whole variance
CLUSTERS_PER_COVARIATE = 20  # in the smaller arm; below this the adjustment would fit noise

Decision = Literal["better", "worse", "inconclusive", "too_few"]

_ROUNDING = 1e-12  # a variance below this share of the terms it was computed from is a rounding error
_COLLINEAR = 1e-8  # share of a covariate's variance that earlier covariates must leave unexplained


class Estimate(Struct, frozen=True, kw_only=True, gc=False):
    """Treatment minus control. Undefined values are None; an e-value of 1 is no evidence."""

    n_treatment: int
    n_control: int
    clusters: int
    value_treatment: float | None
    value_control: float | None
    difference: float | None  # adjusted for covariates if `adjusted`
    relative: float | None  # difference over the control's value
    se: float | None  # with the guards for small arms; the interval uses this one
    plain_se: float | None  # without them
    low: float | None  # always-valid interval; None, like `high`, while there are too few sessions
    high: float | None
    e_value: float  # against "no difference"; valid at every look
    e_below: float  # against "treatment is not below control"
    e_above: float  # against "treatment is not above control"
    adjusted: bool
    variance_reduction: float | None  # share of the variance that the covariates removed
    design_effect: float | None  # variance with clusters / variance if sessions were independent


def decide(estimate: Estimate, *, lower_is_better: bool = True) -> Decision:
    """Return the verdict of the always-valid interval."""
    if estimate.low is None or estimate.high is None:
        return "too_few"
    if estimate.low <= 0 <= estimate.high:
        return "inconclusive"
    return "better" if (estimate.high < 0) == lower_is_better else "worse"


def plain_interval(estimate: Estimate) -> tuple[float, float] | None:
    """Return the ordinary 95 % interval, which is valid for one look only.

    No verdict rests on it; the benchmark shows what peeking at it does.
    """
    if estimate.difference is None or estimate.plain_se is None:
        return None
    reach = 1.959964 * estimate.plain_se
    return estimate.difference - reach, estimate.difference + reach


class Comparison:
    """One treatment arm against one control, fed session by session. Each step takes constant time.

    Each cluster keeps its sums z of (numerator, denominator, weight, covariates...) for both arms; over clusters the second
    moments M = sum of z z' are kept. Every cluster-robust (co)variance of linearised ratios is a quadratic form in M.
    """

    def __init__(self, covariates: int = 0) -> None:
        self._covariates = covariates
        self._width = 3 + covariates if covariates else 2
        self._arms = (Arm(0), Arm(self._width))  # treatment and control
        self._half = [[0.0] * (2 * self._width) for _ in range(2 * self._width)]  # M = half + its transpose
        self._sums = [0.0] * (2 * self._width)
        self._clusters: dict[Hashable, list[float]] = {}
        self._origin: list[float] | None = None

    def add(
        self,
        treated: bool,
        numerator: float,
        denominator: float = 1.0,
        *,
        cluster: Hashable,
        weight: float = 1.0,
        covariates: Sequence[float] = (),
    ) -> None:
        """Add one session.

        `weight` is 1 / propensity, for arms whose shares changed on the way. `covariates` must be known before the session
        (a predicted error rate, dummies of strata): anything later would absorb part of the effect.
        """
        if not (math.isfinite(numerator) and math.isfinite(denominator) and math.isfinite(weight)):
            raise ValueError("a session's numerator, denominator and weight must be finite numbers")
        if denominator < 0 or weight <= 0:
            raise ValueError("a denominator must not be negative, and a weight must be positive")
        if len(covariates) != self._covariates:
            raise ValueError(f"{len(covariates)} covariates given, {self._covariates} expected")
        step = [weight * numerator, weight * denominator]
        if covariates:
            step.append(weight)
            step.extend([weight * x for x in self._centre(covariates)])
        sums = self._clusters.get(cluster)
        if sums is None:
            sums = self._clusters[cluster] = [0.0] * (2 * self._width)
        arm = self._arms[0 if treated else 1]
        arm.add(step[0], step[1], weight, sums)
        self._grow(arm.start, step, sums)

    def _centre(self, covariates: Sequence[float]) -> list[float]:
        """Subtract the first session's values: only differences matter, and squares of large numbers would swallow them."""
        if not all(map(math.isfinite, covariates)):
            raise ValueError("covariates must be finite numbers")
        if self._origin is None:
            self._origin = list(covariates)
        return [x - origin for x, origin in zip(covariates, self._origin, strict=True)]

    def _grow(self, start: int, step: list[float], sums: list[float]) -> None:
        """Update M for z + u: it gains u z' + z u' + u u'. Only one half of M is stored."""
        middle = sums[:]
        for at, value in enumerate(step, start):
            middle[at] += value / 2
            sums[at] += value
            self._sums[at] += value
        half = self._half
        for at, value in enumerate(step, start):
            half[at] = [kept + value * other for kept, other in zip(half[at], middle, strict=True)]

    def estimate(self, alpha: float = ALPHA) -> Estimate:
        """Return the current estimate. Looking after every session, and acting on it, is allowed."""
        treatment, control = self._arms
        value_t, value_c = treatment.ratio(), control.ratio()
        measured = None if value_t is None or value_c is None else self._measure(value_t, value_c)
        evidence = measured.evidence if measured else None
        seen = look(evidence, alpha) if evidence and self._is_enough(evidence) else None
        difference = evidence.difference if evidence else None
        return Estimate(
            n_treatment=treatment.n,
            n_control=control.n,
            clusters=len(self._clusters),
            value_treatment=value_t,
            value_control=value_c,
            difference=difference,
            relative=difference / value_c if difference is not None and value_c else None,
            se=evidence.se or None if evidence else None,
            plain_se=measured.plain_se or None if measured else None,
            low=seen.low if seen else None,
            high=seen.high if seen else None,
            e_value=seen.e_value if seen else 1.0,
            e_below=seen.e_below if seen else 1.0,
            e_above=seen.e_above if seen else 1.0,
            adjusted=measured is not None and measured.variance_reduction is not None,
            variance_reduction=measured.variance_reduction if measured else None,
            design_effect=measured.design_effect if measured else None,
        )

    def _is_enough(self, evidence: MeasuredDifference) -> bool:
        treatment, control = self._arms
        return (
            min(treatment.n, control.n) >= MIN_SESSIONS
            and min(treatment.clusters, control.clusters) >= MIN_CLUSTERS
            and max(treatment.events, control.events) >= MIN_EVENTS
            and evidence.se > 0
            and evidence.degrees >= MIN_DEGREES
        )

    def _measure(self, value_t: float, value_c: float) -> _Measured:
        treatment, control = self._arms
        shared = 2 * self._covary(value_t, value_c)
        spreads = self._spread(value_t, value_c, shared)
        both = spreads[0].variance + spreads[1].variance
        plain = both - shared if both - shared > _ROUNDING * both else 0.0
        apart = spreads[0].independent + spreads[1].independent
        design = plain / apart if apart > 0 else 1.0
        guarded = guard(spreads[0], spreads[1], design), guard(spreads[1], spreads[0], design)
        variance = plain + sum(after.variance - before.variance for after, before in zip(guarded, spreads, strict=True))
        variance = variance if variance > _ROUNDING * both else 0.0
        shape = combine_shapes(*guarded)
        shift, kept = self._adjust(value_t, value_c, plain) if self._can_adjust() and plain > 0 else (0.0, None)
        evidence = MeasuredDifference(
            difference=value_t - value_c - shift,
            se=math.sqrt(variance * (1.0 if kept is None else kept)),
            information=1 / (1 / treatment.size() + 1 / control.size()),
            degrees=max(min(shape.degrees, self._count_clusters() - 1), 0.5),
            skew=shape.skew,
        )
        return _Measured(
            evidence=evidence,
            plain_se=math.sqrt(plain * (1.0 if kept is None else kept)),
            variance_reduction=None if kept is None else 1 - kept,
            design_effect=design if apart > 0 else None,
        )

    def _moment(self, row: int, column: int) -> float:
        return self._half[row][column] + self._half[column][row]

    def _spread(self, value_t: float, value_c: float, shared: float) -> tuple[Spread, Spread]:
        """Return both arms' uncertainty. Where cluster levels cancel between the arms, single sessions are the units."""
        treatment, control = self._arms
        squares = self._square(treatment, value_t), self._square(control, value_c)
        whole = 1.0
        if shared > 0:
            excess = treatment.find_excess(value_t, squares[0]) + control.find_excess(value_c, squares[1])
            whole = max(0.0, 1 - shared / excess) if excess > 0 else 1.0
        return treatment.spread(value_t, squares[0], whole), control.spread(value_c, squares[1], whole)

    def _square(self, arm: Arm, value: float) -> float:
        """Return the sum of the clusters' squared residuals."""
        at = arm.start
        square, product, base = self._moment(at, at), self._moment(at, at + 1), self._moment(at + 1, at + 1)
        total = square - 2 * value * product + value * value * base
        return total if total > max(_ROUNDING * (square + value * value * base), TINY) else 0.0

    def _covary(self, value_t: float, value_c: float) -> float:
        """Return the covariance of the two ratios through clusters with sessions in both arms."""
        treatment, control = self._arms
        t, c, moment = treatment.start, control.start, self._moment
        total = moment(t, c) - value_c * moment(t, c + 1) - value_t * moment(t + 1, c)
        total += value_t * value_c * moment(t + 1, c + 1)
        scale = math.sqrt(treatment.correction() * control.correction())
        return scale * total / (treatment.denominator * control.denominator)

    def _count_clusters(self) -> float:
        """Return the effective number of clusters (Kish): a few large ones must not pass for many."""
        t, c = self._arms[0].start + 1, self._arms[1].start + 1
        squares = self._moment(t, t) + 2 * self._moment(t, c) + self._moment(c, c)
        return (self._sums[t] + self._sums[c]) ** 2 / squares

    def _can_adjust(self) -> bool:
        fewest = min(arm.clusters for arm in self._arms)
        return self._covariates > 0 and fewest >= CLUSTERS_PER_COVARIATE * self._covariates

    def _adjust(self, value_t: float, value_c: float, plain: float) -> tuple[float, float]:
        """Return how much chance imbalance in the covariates shifts the difference, and the share of the variance left.

        Regression adjustment (CUPED) for ratios: the weights minimise the variance of difference - weights . imbalance,
        which amounts to Lin's (2013) adjustment with separate slopes in each arm. Each weight costs a degree of freedom.
        """
        means = [self._means(column) for column in range(3, self._width)]
        forms = [self._linearise(0, 1, (value_t, value_c))]
        forms += [self._linearise(column, 2, pair) for column, pair in enumerate(means, 3)]
        covariances = [[self._combine(form, other) for other in forms[: at + 1]] for at, form in enumerate(forms)]
        target = [row[0] for row in covariances[1:]]
        weights = solve_symmetric([row[1:] for row in covariances[1:]], target)
        shift = sum(weight * (t - c) for weight, (t, c) in zip(weights, means, strict=True))
        explained = sum(weight * value for weight, value in zip(weights, target, strict=True))
        fewest = min(arm.clusters for arm in self._arms)
        spent = (fewest - 1) / (fewest - 1 - sum(weight != 0 for weight in weights))
        return shift, max(1 - explained / plain, _ROUNDING) * spent

    def _means(self, column: int) -> tuple[float, float]:
        sums, width = self._sums, self._width
        return sums[column] / sums[2], sums[width + column] / sums[width + 2]

    def _linearise(self, over: int, under: int, values: tuple[float, float]) -> list[tuple[int, float]]:
        """Return a difference of ratios as a linear form in a cluster's z: positions and coefficients."""
        form = []
        for arm, value, sign in zip(self._arms, values, (1, -1), strict=True):
            scale = sign * math.sqrt(arm.correction()) / self._sums[arm.start + under]
            form += [(arm.start + over, scale), (arm.start + under, -value * scale)]
        return form

    def _combine(self, left: list[tuple[int, float]], right: list[tuple[int, float]]) -> float:
        """Return the covariance of two linear forms."""
        half = self._half
        return sum([a * b * (half[i][j] + half[j][i]) for i, a in left for j, b in right])


def solve_symmetric(lower: list[list[float]], target: list[float]) -> list[float]:
    """Solve matrix . w = target for a matrix given by its lower triangle, by Cholesky decomposition.

    A column that earlier columns explain gets weight 0.
    """
    factor: list[list[float]] = []
    halfway: list[float] = []
    for row, value in zip(lower, target, strict=True):
        line: list[float] = []
        for other, entry in zip(factor, row, strict=False):
            rest = entry - sum(a * b for a, b in zip(line, other, strict=False))
            line.append(rest / other[-1] if other[-1] else 0.0)
        left = row[-1] - sum(a * a for a in line)
        root = math.sqrt(left) if left > _COLLINEAR * row[-1] else 0.0
        halfway.append((value - sum(a * b for a, b in zip(line, halfway, strict=True))) / root if root else 0.0)
        factor.append([*line, root])
    weights = [0.0] * len(target)
    for at in reversed(range(len(target))):
        if root := factor[at][at]:
            later = sum(factor[below][at] * weights[below] for below in range(at + 1, len(target)))
            weights[at] = (halfway[at] - later) / root
    return weights


class _Measured(Struct, frozen=True, gc=False):
    """The evidence before the minimum sizes are checked."""

    evidence: MeasuredDifference
    plain_se: float
    variance_reduction: float | None
    design_effect: float | None
