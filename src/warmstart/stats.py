"""Two arms, session by session: how far apart are they, and may one say so yet?

`Comparison` takes one session at a time and `estimate` answers at any moment, so the report and the benchmark that looks
after every single session run the same code. Nothing here knows of a database, a clock or a data frame.

What is estimated is the difference of two ratios, treatment minus control, each the sum of numerators over the sum of
denominators (errors per judged call; a mean has denominator 1). A ratio's variance is that of its linearised sessions
(delta method), summed within clusters first, for sessions of one task or user are not independent. A cluster with sessions
in both arms contributes its covariance too, which is what makes a comparison within tasks sharp.

The interval is always valid (see stats_sequence). That theory is for many sessions, while tool errors are rare, skewed and
heavy-tailed. Four guards, chosen by simulation (bench/stats.py), make it hold from the first answer on; all fade with time:
1. too few sessions, clusters, or sessions with an event: no interval at all;
2. while an arm is small its variance and skewness are not taken much below the pooled ones: a cold arm of 30 sessions that
   has not met its bad session yet must not look certain;
3. t for normal, with the degrees of freedom that the clusters' kurtosis leaves to the variance;
4. Hall's transformation for the skewness of the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Literal

from msgspec import Struct

from warmstart.stats_sequence import ALPHA, Evidence, look
from warmstart.stats_spread import Arm, Spread, combine_skews, guard, pool_degrees

MIN_SESSIONS = 20  # in each arm
MIN_CLUSTERS = 10  # in each arm
MIN_EVENTS = 20  # sessions with an event, in the arm that has more of them
MIN_DEGREES = 5.0  # with fewer, one or two sessions carry the whole variance
CLUSTERS_PER_COVARIATE = 20  # in the smaller arm; with fewer the adjustment would fit noise

Decision = Literal["better", "worse", "inconclusive", "too_few"]

_ROUNDING = 1e-12  # a variance below this share of the terms it is the difference of is rounding
_COLLINEAR = 1e-8  # share of a covariate's variance that the covariates before it must leave


class Estimate(Struct, frozen=True, kw_only=True):
    """Treatment minus control. What is not defined is None; evidence that is not there is an e-value of 1."""

    n_treatment: int
    n_control: int
    clusters: int
    value_treatment: float | None
    value_control: float | None
    difference: float | None  # adjusted for covariates where `adjusted`
    relative: float | None  # difference over the control's value
    se: float | None  # with the guards for small arms: what the interval rests on
    plain_se: float | None  # without them
    low: float | None  # always-valid interval; None together with `high` while there are too few sessions
    high: float | None
    e_value: float  # against "no difference"; valid at every look
    e_below: float  # against "treatment is not below control"
    e_above: float  # against "treatment is not above control"
    adjusted: bool
    variance_reduction: float | None  # share of the variance that the covariates took away
    design_effect: float | None  # variance with clusters over variance as if sessions were independent


def decide(estimate: Estimate, *, lower_is_better: bool = True) -> Decision:
    """The always-valid interval in one word."""
    if estimate.low is None or estimate.high is None:
        return "too_few"
    if estimate.low <= 0 <= estimate.high:
        return "inconclusive"
    return "better" if (estimate.high < 0) == lower_is_better else "worse"


def plain_interval(estimate: Estimate) -> tuple[float, float] | None:
    """The ordinary 95 % interval, right for one look only. Here to show what peeking at it does."""
    if estimate.difference is None or estimate.plain_se is None:
        return None
    reach = 1.959964 * estimate.plain_se
    return estimate.difference - reach, estimate.difference + reach


class Comparison:
    """One treatment arm against one control, fed session by session; neither step grows with the sessions fed before.

    Per cluster the sums z of (numerator, denominator, weight, covariates...) are kept for both arms, and over clusters the
    second moments M = sum of z z'. Every cluster-robust (co)variance of linearised ratios is a quadratic form in M.
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
        """One session. `weight` is 1 / propensity where the arms' shares changed on the way. `covariates` are known before
        the session (a predicted error rate, dummies of strata); anything later would take part of the effect away."""
        if not (math.isfinite(numerator) and math.isfinite(denominator) and math.isfinite(weight)):
            raise ValueError("a session's numerator, denominator and weight are finite numbers")
        if denominator < 0 or weight <= 0:
            raise ValueError("a denominator is not negative and a weight is positive")
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
        """Away from the first value: only differences matter, and the squares of large numbers would swallow them."""
        if not all(map(math.isfinite, covariates)):
            raise ValueError("covariates are finite numbers")
        if self._origin is None:
            self._origin = list(covariates)
        return [x - origin for x, origin in zip(covariates, self._origin, strict=True)]

    def _grow(self, start: int, step: list[float], sums: list[float]) -> None:
        """z becomes z + u: M gains u z' + z u' + u u', of which one half is kept."""
        middle = sums[:]
        for at, value in enumerate(step, start):
            middle[at] += value / 2
            sums[at] += value
            self._sums[at] += value
        half = self._half
        for at, value in enumerate(step, start):
            half[at] = [kept + value * other for kept, other in zip(half[at], middle, strict=True)]

    def estimate(self, alpha: float = ALPHA) -> Estimate:
        """How things stand now. It may be asked after every session, and acted on."""
        treatment, control = self._arms
        value_t, value_c = treatment.ratio(), control.ratio()
        found = None if value_t is None or value_c is None else self._measure(value_t, value_c)
        evidence = found.evidence if found else None
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
            plain_se=found.plain_se or None if found else None,
            low=seen.low if seen else None,
            high=seen.high if seen else None,
            e_value=seen.e_value if seen else 1.0,
            e_below=seen.e_below if seen else 1.0,
            e_above=seen.e_above if seen else 1.0,
            adjusted=found is not None and found.variance_reduction is not None,
            variance_reduction=found.variance_reduction if found else None,
            design_effect=found.design_effect if found else None,
        )

    def _is_enough(self, evidence: Evidence) -> bool:
        treatment, control = self._arms
        return (
            min(treatment.n, control.n) >= MIN_SESSIONS
            and min(treatment.clusters, control.clusters) >= MIN_CLUSTERS
            and max(treatment.events, control.events) >= MIN_EVENTS
            and evidence.se > 0
            and evidence.degrees >= MIN_DEGREES
        )

    def _measure(self, value_t: float, value_c: float) -> _Found:
        treatment, control = self._arms
        own = self._spread(treatment, value_t), self._spread(control, value_c)
        shared = 2 * self._covary(value_t, value_c) * math.sqrt(own[0].correction * own[1].correction)
        plain = max(0.0, own[0].variance + own[1].variance - shared)
        guarded = guard(own[0], own[1]), guard(own[1], own[0])
        variance = max(0.0, guarded[0].variance + guarded[1].variance - shared)
        apart = own[0].independent + own[1].independent
        shift, kept = self._adjust(value_t, value_c, plain) if self._can_adjust() and plain > 0 else (0.0, None)
        evidence = Evidence(
            difference=value_t - value_c - shift,
            se=math.sqrt(variance * (1.0 if kept is None else kept)),
            information=1 / (1 / treatment.size() + 1 / control.size()),
            degrees=min(pool_degrees(*guarded), max(len(self._clusters) - 1, 1)),
            skew=combine_skews(*guarded),
        )
        return _Found(
            evidence=evidence,
            plain_se=math.sqrt(plain * (1.0 if kept is None else kept)),
            variance_reduction=None if kept is None else 1 - kept,
            design_effect=plain / apart if apart > 0 else None,
        )

    def _moment(self, one: int, other: int) -> float:
        return self._half[one][other] + self._half[other][one]

    def _spread(self, arm: Arm, value: float) -> Spread:
        """The variance of the arm's ratio, and what clusters it is made of."""
        at, scale, clusters = arm.start, 1 / arm.denominator**2, arm.clusters
        square, product, base = self._moment(at, at), self._moment(at, at + 1), self._moment(at + 1, at + 1)
        between = square - 2 * value * product + value * value * base
        if between <= _ROUNDING * (square + value * value * base):
            between = 0.0
        correction = clusters / (clusters - 1) if clusters > 1 else 1.0
        kurtosis, skew = arm.shape(value, between) if between else (1.0, 0.0)
        degrees = max(clusters - 1.0, 0.5)
        return Spread(
            size=arm.size(),
            clusters=clusters,
            correction=correction,
            variance=between * scale * correction,
            independent=arm.square_sessions(value) * scale * correction if between else 0.0,
            degrees=min(degrees, 2 * clusters / (kurtosis - 1)) if kurtosis > 1 else degrees,
            skew=skew,
        )

    def _covary(self, value_t: float, value_c: float) -> float:
        """Covariance of the two ratios through clusters that have sessions in both arms."""
        (t, c), moment = (arm.start for arm in self._arms), self._moment
        total = moment(t, c) - value_c * moment(t, c + 1) - value_t * moment(t + 1, c)
        total += value_t * value_c * moment(t + 1, c + 1)
        return total / (self._arms[0].denominator * self._arms[1].denominator)

    def _can_adjust(self) -> bool:
        fewest = min(arm.clusters for arm in self._arms)
        return self._covariates > 0 and fewest >= CLUSTERS_PER_COVARIATE * self._covariates

    def _adjust(self, value_t: float, value_c: float, plain: float) -> tuple[float, float]:
        """What chance imbalance in the covariates makes of the difference, and the share of the variance that is left.

        Regression adjustment (CUPED) for ratios: the weights minimise the variance of difference - weights . imbalance,
        which amounts to Lin's (2013) adjustment with slopes of their own in each arm. Each weight costs a degree of freedom.
        """
        means = [self._means(column) for column in range(3, self._width)]
        forms = [self._linearise(0, 1, (value_t, value_c))]
        forms += [self._linearise(column, 2, pair) for column, pair in enumerate(means, 3)]
        covariances = [[self._combine(form, other) for other in forms] for form in forms]
        target = covariances[0][1:]
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
        """A difference of ratios as a linear form in a cluster's z: positions and coefficients."""
        form = []
        for arm, value, sign in zip(self._arms, values, (1, -1), strict=True):
            scale = sign * math.sqrt(arm.clusters / (arm.clusters - 1)) / self._sums[arm.start + under]
            form += [(arm.start + over, scale), (arm.start + under, -value * scale)]
        return form

    def _combine(self, one: list[tuple[int, float]], other: list[tuple[int, float]]) -> float:
        return sum(a * b * self._moment(i, j) for i, a in one for j, b in other)


def solve_symmetric(matrix: list[list[float]], target: list[float]) -> list[float]:
    """Weights w with matrix . w = target by elimination; a column that the ones before it explain gets weight 0."""
    size = len(target)
    rows = [[*row, value] for row, value in zip(matrix, target, strict=True)]
    kept = []
    for at in range(size):
        if rows[at][at] <= _COLLINEAR * matrix[at][at] or not matrix[at][at] > 0:
            continue
        kept.append(at)
        for below in range(size):
            if below != at and (factor := rows[below][at] / rows[at][at]):
                rows[below] = [value - factor * pivot for value, pivot in zip(rows[below], rows[at], strict=True)]
    return [rows[at][size] / rows[at][at] if at in kept else 0.0 for at in range(size)]


class _Found(Struct, frozen=True):
    evidence: Evidence
    plain_se: float
    variance_reduction: float | None
    design_effect: float | None
