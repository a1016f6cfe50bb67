"""Compare two sets of sessions on a metric: sessions in, an effect out. Pure; the arithmetic is in `stats`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial

from msgspec import structs

from warmstart.model import Effect
from warmstart.stats.compare import Comparison, Estimate, decide
from warmstart.stats.many_arms import missing_mismatch
from warmstart.stats.survival import Wait, restricted_mean_difference
from warmstart.trials.bases import count_bases, keep_one_basis
from warmstart.trials.bounds import Lost, Sides, bound_missing
from warmstart.trials.metrics import Metric
from warmstart.trials.observation import Observation, read_pairs
from warmstart.trials.split import MISMATCH

CLUSTERS = 30  # clusters per arm that make their variance trustworthy
_STRATUM = 20  # sessions that a category needs to become a stratum

ClusterKey = Callable[[Observation], Hashable]


def compare(
    observations: Sequence[Observation],
    arm: str,
    control: str,
    metric: Metric,
    *,
    alpha: float = 0.05,
    bounded: bool = False,
) -> tuple[Effect, Estimate]:
    """Return the effect of an arm on a metric, and the estimate behind it."""
    of_arm = [obs for obs in observations if obs.arm == arm]
    of_control = [obs for obs in observations if obs.arm == control]
    return compare_pair(of_arm, of_control, metric, names=(arm, control), alpha=alpha, bounded=bounded)


def compare_pair(
    of_arm: Sequence[Observation],
    of_control: Sequence[Observation],
    metric: Metric,
    *,
    names: tuple[str, str],
    alpha: float = 0.05,
    bounded: bool = False,
) -> tuple[Effect, Estimate]:
    """Return the effect between two sets of sessions, and the estimate behind it.

    `bounded`: also say how far missing sessions could move the interval, and give no verdict that they could undo.
    """
    lost: Lost = (_find_lost(of_arm), _find_lost(of_control))
    alike = keep_one_basis((of_arm, of_control), metric)
    sides: Sides = (read_pairs(alike.sides[0], metric), read_pairs(alike.sides[1], metric))
    by, cluster = choose_clusters(*([obs for obs, _pair in side] for side in sides))
    estimate_sides = partial(_estimate, metric=metric, cluster=cluster, alpha=alpha)
    estimate = estimate_sides(sides)
    missing = dict(zip(names, map(len, lost), strict=True))
    harmed, expected = _count_harmed(sides, metric) if metric.horizon is None else (None, None)
    effect = structs.replace(
        describe(metric, names, missing, estimate),
        harmed=harmed,
        harmed_expected=expected,
        clustered_by=by,
        clusters=estimate.clusters,
        adjusted=estimate.adjusted,
        basis=alike.basis,
        bases=dict(zip(names, count_bases((of_arm, of_control), metric), strict=True)) if alike.basis else {},
        other_basis=dict(zip(names, alike.left_out, strict=True)) if any(alike.left_out) else {},
    )
    effect = _withhold_uneven(effect)
    if not bounded or not any(lost) or effect.verdict == "too_few":
        return effect, estimate
    bounds = bound_missing(sides, lost, metric, estimate_sides)
    extremes = bound_missing(sides, lost, metric, estimate_sides, is_all=True)
    effect = structs.replace(
        effect,
        worst_low=_widen(min, effect.low, bounds.low),
        worst_high=_widen(max, effect.high, bounds.high),
        extreme_low=_widen(min, effect.low, extremes.low),
        extreme_high=_widen(max, effect.high, extremes.high),
    )
    return withhold_unbounded(effect), structs.replace(
        estimate,
        e_below=min(estimate.e_below, bounds.e_below),
        e_above=min(estimate.e_above, bounds.e_above),
    )


def _widen(choose: Callable[[float, float], float], end: float | None, bound: float | None) -> float | None:
    """Return an end of the bounds, which are never narrower than the interval itself: filling in sessions narrows it."""
    return bound if end is None or bound is None else choose(end, bound)


def _withhold_uneven(effect: Effect) -> Effect:
    """Withhold a verdict about tokens or costs whose basis depends on the arm: the sessions left would be a selection."""
    uneven = missing_mismatch(effect.n, effect.other_basis)
    if uneven is None or uneven >= MISMATCH or effect.verdict not in ("better", "worse"):
        return effect
    reason = f"{effect.reason}, but the arms differ in how many figures are estimated (p = {uneven:.1g})"
    return structs.replace(effect, verdict="inconclusive", reason=reason)


def _find_lost(side: Iterable[Observation]) -> list[Observation]:
    return [obs for obs in side if obs.measures is None]


def withhold_unbounded(effect: Effect) -> Effect:
    """Withhold a verdict that the missing sessions could undo."""
    if effect.verdict not in ("better", "worse"):
        return effect
    low, high = effect.worst_low, effect.worst_high
    if low is not None and high is not None and (high < 0 if (effect.high or 0.0) < 0 else low > 0):
        return effect
    lost = sum(effect.missing.values())
    reason = f"{effect.reason}, but the {lost} sessions without a transcript could undo it"
    return structs.replace(effect, verdict="inconclusive", reason=reason)


def _estimate(sides: Sides, metric: Metric, cluster: ClusterKey, alpha: float) -> Estimate:
    if metric.horizon is not None:
        return _compare_waits(sides, metric.horizon, cluster, alpha)
    strata = _find_strata(obs for side in sides for obs, _pair in side)
    comparison = Comparison(1 + len(strata) if metric.adjusted else 0)
    for side, is_treatment in zip(sides, (True, False), strict=True):
        for obs, pair in side:
            known = _list_covariates(obs, strata) if metric.adjusted else ()
            comparison.add(is_treatment, *pair, cluster=cluster(obs), weight=obs.weight, covariates=known)
    return comparison.estimate(alpha)


def _compare_waits(sides: Sides, horizon: float, cluster: ClusterKey, alpha: float) -> Estimate:
    """Compare the waits until the first success. A session that ended before it is censored, not failed."""
    waits = [[Wait(time, bool(happened), cluster(obs)) for obs, (time, happened) in side] for side in sides]
    return restricted_mean_difference(waits[0], waits[1], horizon, alpha) or Comparison().estimate()


def describe(metric: Metric, names: tuple[str, str], missing: dict[str, int], estimate: Estimate) -> Effect:
    """Return an estimate as the effect that reports show."""
    arm, control = names
    verdict = decide(estimate, lower_is_better=metric.lower_is_better)
    return Effect(
        metric=metric.name,
        arm=arm,
        control=control,
        n={arm: estimate.n_treatment, control: estimate.n_control},
        missing=missing,
        values={arm: estimate.value_treatment, control: estimate.value_control},
        difference=estimate.difference,
        low=estimate.low,
        high=estimate.high,
        relative=estimate.relative,
        verdict=verdict,
        reason=_explain(verdict, metric, estimate),
    )


def _explain(verdict: str, metric: Metric, estimate: Estimate) -> str:
    if verdict == "too_few":
        return "there is no interval yet"
    if verdict == "inconclusive":
        return "the interval includes zero"
    share = "" if estimate.relative is None else f" {abs(estimate.relative):.0%}"
    return f"{metric.title}: {'down' if (estimate.difference or 0) < 0 else 'up'}{share}"


def choose_clusters(of_arm: Sequence[Observation], of_control: Sequence[Observation]) -> tuple[str, ClusterKey]:
    """Choose by what sessions are clustered: the widest level that leaves enough clusters on each side."""
    levels: tuple[tuple[str, ClusterKey], ...] = (
        (
            "project",
            lambda obs: ("project", obs.project) if obs.project else ("session", obs.session),
        ),
        (
            "task",
            lambda obs: ("task", obs.project, obs.task) if obs.task else ("session", obs.session),
        ),
    )
    for name, key in levels:
        sides = [{key(obs) for obs in side} for side in (of_arm, of_control)]
        if all(len(keys) >= CLUSTERS for keys in sides) and len(set.union(*sides)) < len(of_arm) + len(of_control):
            return name, key
    return "session", lambda obs: obs.session


def _find_strata(observations: Iterable[Observation]) -> list[str]:
    """Return the categories that are common enough to be strata, except the commonest, which is the reference."""
    counts: dict[str, int] = {}
    for obs in observations:
        if obs.category:
            counts[obs.category] = counts.get(obs.category, 0) + 1
    common = sorted(
        (name for name, count in counts.items() if count >= _STRATUM), key=lambda name: (-counts[name], name)
    )
    return common[1:]


def _list_covariates(obs: Observation, strata: Sequence[str]) -> list[float]:
    return [
        obs.expected if obs.expected is not None else 0.0,
        *(float(obs.category == name) for name in strata),
    ]


def _count_harmed(sides: Sides, metric: Metric) -> tuple[int | None, float | None]:
    """Count the arm's sessions that did worse than nine in ten of the control's, and how many would by chance.

    What the same session would have done in the other arm is unknowable, so this compares the bad ends of both arms.
    """
    of_arm, of_control = ([y / n for _obs, (y, n) in side if n > 0] for side in sides)
    if len(of_control) < 10 or not of_arm:
        return None, None
    sign = 1 if metric.lower_is_better else -1
    ordered = sorted(sign * rate for rate in of_control)
    limit = ordered[int(0.9 * len(ordered))]
    by_chance = sum(rate > limit for rate in ordered) / len(ordered)
    return sum(sign * rate > limit for rate in of_arm), by_chance * len(of_arm)
