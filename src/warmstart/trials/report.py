"""Compare arms with the control: trials in, effects out. Pure; the arithmetic is in `stats`.

Sessions count for the arm they were assigned, whatever they did with it (intention to treat). Sessions without a transcript
count as missing, never as zero. No verdict is given if the arms are not what was drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

from msgspec import Struct, structs

from warmstart.model import Design, Effect, Measures
from warmstart.stats.compare import Comparison, Estimate, decide
from warmstart.stats.many_arms import missing_mismatch, ratio_mismatch
from warmstart.stats.paired import Crossing
from warmstart.stats.survival import Wait, restricted_mean_difference
from warmstart.trials.bases import keep_one_basis
from warmstart.trials.guardrails import GUARDRAILS, NET_CALLS, check_guardrail
from warmstart.trials.metrics import METRICS, Metric, Pair

MISMATCH = 0.001  # below this probability the arms are not what was drawn
CLUSTERS = 30  # clusters per arm that make their variance trustworthy
USEFUL = 0.05  # a smaller relative drop is of no use
_STRATUM = 20  # sessions that a category needs to become a stratum


class Observation(Struct, frozen=True, kw_only=True):
    """One session of a comparison: its arm, what was known before it, and how it went."""

    session: str
    arm: str
    shares: dict[str, float]  # the probability of each arm
    measures: Measures | None = None  # None: its transcript is missing
    project: str | None = None
    task: str | None = None  # identifies the request
    category: str | None = None
    expected: float | None = None  # error rate of earlier sessions of its kind
    templates: tuple[str, ...] = ()  # name@version shown, or held back in the cold arm

    @property
    def weight(self) -> float:
        """Return 1 / the probability of its arm: the rarer the arm, the more sessions this one stands for."""
        share = self.shares.get(self.arm, 0.0)
        return 1 / share if share > 0 else 0.0


class ArmCounts(Struct, frozen=True, kw_only=True):
    """The sessions of an arm."""

    assigned: int
    expected: float  # number expected from the shares
    missing: int  # without a transcript


class Split(Struct, frozen=True, kw_only=True):
    """The sizes of the arms, and whether they are what was drawn."""

    arms: dict[str, ArmCounts]
    mismatch: float | None  # probability of such a split by chance
    missing_mismatch: float | None  # the same for the missing transcripts
    blocked: str | None  # why the comparison cannot be trusted


class Report(Struct, frozen=True, kw_only=True):
    """What an experiment has shown so far."""

    experiment: str
    control: str
    metric: str
    arms: dict[str, ArmCounts]
    effects: tuple[Effect, ...]  # on the deciding metric, one per arm
    secondary: tuple[Effect, ...]
    guardrails: tuple[str, ...]  # what speaks against an arm that seemed better
    mismatch: float | None  # probability of such a split by chance
    missing_mismatch: float | None  # the same for the missing transcripts
    blocked: str | None  # why there is no verdict
    left_out: dict[str, int]  # sessions not compared, by reason
    standings: dict[str, tuple[float, float]]  # by arm: difference to the control, and its standard error
    design: Design = "random"
    crossings: dict[str, Crossing] = {}  # by arm, in a paired design


class CompareArm(Protocol):
    """Compares an arm with the control on a metric; returns the effect and the estimate behind it."""

    def __call__(
        self, observations: Sequence[Observation], arm: str, control: str, metric: Metric, *, alpha: float = 0.05
    ) -> tuple[Effect, Estimate]: ...


def analyse(
    experiment: str,
    observations: Sequence[Observation],
    *,
    shares: Mapping[str, float],
    control: str,
    metric: str = "error_rate",
    left_out: Mapping[str, int] | None = None,
    compare_arm: CompareArm | None = None,
) -> Report:
    """Report an experiment. `compare_arm` replaces the comparison of randomly assigned sessions in another design."""
    compare_arm = compare_arm or compare
    split = check_split(observations, shares)
    blocked = split.blocked
    others = [name for name in split.arms if name != control]
    alpha = 0.05 / max(1, len(others))  # Bonferroni: each arm is one more chance to be wrong
    effects: list[Effect] = []
    guardrails: list[str] = []
    secondary: list[Effect] = []
    standings = {control: (0.0, 0.0)}
    for name in others:
        effect, estimate = compare_arm(observations, name, control, METRICS[metric], alpha=alpha)
        if estimate.difference is not None and estimate.se is not None:
            standings[name] = estimate.difference, estimate.se
        context, against = _compare_context(partial(compare_arm, observations, name, control), metric)
        secondary += context
        if against and effect.verdict == "better":
            guardrails += [f"{name}: {reason}" for reason in against]
            effect = structs.replace(
                effect, verdict="inconclusive", reason=f"{effect.reason}, but {'; '.join(against)}"
            )
        if blocked:
            effect = structs.replace(effect, verdict="inconclusive", reason="", blocked=blocked)
        effects.append(structs.replace(effect, role="decides"))
    return Report(
        experiment=experiment,
        control=control,
        metric=metric,
        arms=split.arms,
        effects=tuple(effects),
        secondary=tuple(structs.replace(effect, blocked=blocked) for effect in secondary),
        guardrails=tuple(guardrails),
        mismatch=split.mismatch,
        missing_mismatch=split.missing_mismatch,
        blocked=blocked,
        left_out=dict(left_out or {}),
        standings=standings,
    )


def _compare_context(
    compare_on: Callable[[Metric], tuple[Effect, Estimate]], deciding: str
) -> tuple[list[Effect], list[str]]:
    """Return an arm's effects on the metrics that do not decide, and what the guardrails among them hold against it."""
    net, _estimate = compare_on(NET_CALLS)
    effects: list[Effect] = []
    against: list[str] = []
    for metric in METRICS.values():
        if metric.name == deciding:
            continue
        effect, _estimate = compare_on(metric)
        if metric.name in GUARDRAILS:
            check = check_guardrail(effect, net)
            effect = check.effect
            against += [check.harm] if check.harm else []
        effects.append(effect)
    return effects, against


def check_split(observations: Sequence[Observation], shares: Mapping[str, float]) -> Split:
    """Check that the arms are what was drawn and that transcripts are missing equally often in all of them."""
    arms = _count_arms(observations, shares)
    mismatch = _mismatch(arms)
    lost = missing_mismatch(
        {name: arm.assigned - arm.missing for name, arm in arms.items()},
        {name: arm.missing for name, arm in arms.items()},
    )
    blocked = _explain_block(arms, mismatch, lost)
    return Split(arms=arms, mismatch=mismatch, missing_mismatch=lost, blocked=blocked)


def _count_arms(observations: Sequence[Observation], shares: Mapping[str, float]) -> dict[str, ArmCounts]:
    known = {name for obs in observations for name in (obs.arm, *obs.shares)}
    names = [*shares, *sorted(known - shares.keys())]
    return {
        name: ArmCounts(
            assigned=sum(obs.arm == name for obs in observations),
            expected=sum(obs.shares.get(name, 0.0) for obs in observations),
            missing=sum(obs.arm == name and obs.measures is None for obs in observations),
        )
        for name in names
    }


def _mismatch(arms: Mapping[str, ArmCounts]) -> float | None:
    observed = {name: arm.assigned for name, arm in arms.items()}
    if len(arms) < 2 or not sum(observed.values()):
        return None
    return ratio_mismatch(observed, {name: arm.expected for name, arm in arms.items()})


def _explain_block(arms: Mapping[str, ArmCounts], mismatch: float | None, lost: float | None) -> str | None:
    if mismatch is not None and mismatch < MISMATCH:
        split = ", ".join(f"{name} {arm.assigned} instead of {arm.expected:.0f}" for name, arm in arms.items())
        return (
            f"the arms are not what was drawn ({split}; p = {mismatch:.1g}): find the cause before trusting any figure"
        )
    if lost is not None and lost < MISMATCH:
        split = ", ".join(f"{name} {arm.missing} of {arm.assigned}" for name, arm in arms.items())
        return f"transcripts are missing more in one arm ({split}; p = {lost:.1g}): the rest cannot be compared"
    return None


# One arm against the control


def compare(
    observations: Sequence[Observation], arm: str, control: str, metric: Metric, *, alpha: float = 0.05
) -> tuple[Effect, Estimate]:
    """Return the effect of an arm on a metric, and the estimate behind it."""
    of_arm = [obs for obs in observations if obs.arm == arm]
    of_control = [obs for obs in observations if obs.arm == control]
    return compare_pair(of_arm, of_control, metric, names=(arm, control), alpha=alpha)


def compare_pair(
    of_arm: Sequence[Observation],
    of_control: Sequence[Observation],
    metric: Metric,
    *,
    names: tuple[str, str],
    alpha: float = 0.05,
) -> tuple[Effect, Estimate]:
    """Return the effect between two sets of sessions, and the estimate behind it."""
    missing = {
        name: sum(obs.measures is None for obs in side) for name, side in zip(names, (of_arm, of_control), strict=True)
    }
    alike = keep_one_basis((of_arm, of_control), metric)
    sides = alike.sides
    if metric.horizon is not None:
        return _compare_waits(sides, metric, names, missing, alpha)
    measured = [read_pairs(side, metric) for side in sides]
    by, cluster = choose_clusters([obs for obs, _pair in measured[0]], [obs for obs, _pair in measured[1]])
    strata = _find_strata(obs for side in measured for obs, _pair in side)
    comparison = Comparison(1 + len(strata) if metric.adjusted else 0)
    for side, is_treatment in zip(measured, (True, False), strict=True):
        for obs, pair in side:
            known = _list_covariates(obs, strata) if metric.adjusted else ()
            comparison.add(is_treatment, *pair, cluster=cluster(obs), weight=obs.weight, covariates=known)
    estimate = comparison.estimate(alpha)
    rates = [[y / n for _obs, (y, n) in side if n > 0] for side in measured]
    harmed, expected = _count_harmed(rates[0], rates[1], metric)
    effect = structs.replace(
        describe(metric, names, missing, estimate),
        harmed=harmed,
        harmed_expected=expected,
        clustered_by=by,
        clusters=estimate.clusters,
        adjusted=estimate.adjusted,
        basis=alike.basis,
        other_basis=dict(zip(names, alike.left_out, strict=True)) if any(alike.left_out) else {},
    )
    return effect, estimate


def _compare_waits(
    sides: Sequence[Sequence[Observation]],
    metric: Metric,
    names: tuple[str, str],
    missing: dict[str, int],
    alpha: float,
) -> tuple[Effect, Estimate]:
    """Compare the waits until the first success. A session that ended before it is censored, not failed."""
    assert metric.horizon is not None
    measured = [read_pairs(side, metric) for side in sides]
    by, cluster = choose_clusters(*([obs for obs, _pair in side] for side in measured))
    waits = [[Wait(time, bool(happened), cluster(obs)) for obs, (time, happened) in side] for side in measured]
    estimate = restricted_mean_difference(waits[0], waits[1], metric.horizon, alpha) or Comparison().estimate()
    effect = describe(metric, names, missing, estimate)
    return structs.replace(effect, clustered_by=by, clusters=estimate.clusters), estimate


def read_pairs(side: Iterable[Observation], metric: Metric) -> list[tuple[Observation, Pair]]:
    """Return the sessions for which a metric is known, with its (numerator, denominator)."""
    return [(obs, pair) for obs in side if obs.measures is not None and (pair := metric.read(obs.measures)) is not None]


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


def choose_clusters(
    of_arm: Sequence[Observation], of_control: Sequence[Observation]
) -> tuple[str, Callable[[Observation], Hashable]]:
    """Choose by what sessions are clustered: the widest level that leaves enough clusters on each side."""
    levels: tuple[tuple[str, Callable[[Observation], Hashable]], ...] = (
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


def _count_harmed(of_arm: list[float], of_control: list[float], metric: Metric) -> tuple[int | None, float | None]:
    """Count the arm's sessions that did worse than nine in ten of the control's, and how many would by chance.

    What the same session would have done in the other arm is unknowable, so this compares the bad ends of both arms.
    """
    if len(of_control) < 10 or not of_arm:
        return None, None
    sign = 1 if metric.lower_is_better else -1
    ordered = sorted(sign * rate for rate in of_control)
    limit = ordered[int(0.9 * len(ordered))]
    by_chance = sum(rate > limit for rate in ordered) / len(ordered)
    return sum(sign * rate > limit for rate in of_arm), by_chance * len(of_arm)
