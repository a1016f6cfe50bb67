"""Compare arms with the control: trials in, effects out. Pure; the arithmetic is in `stats`.

Sessions count for the arm they were assigned, whatever they did with it (intention to treat). Sessions without a transcript
count as missing, never as zero. No verdict is given if the arms are not what was drawn, if nobody got a seed, or if the
missing sessions could undo it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

from msgspec import Struct, structs

from warmstart.model import Design, Effect, EffectVerdict
from warmstart.stats.compare import Estimate
from warmstart.stats.paired import Crossing
from warmstart.trials.compare import compare
from warmstart.trials.guardrails import GUARDRAILS, NET_CALLS, check_guardrail, find_early_stops, make_early_stop
from warmstart.trials.metrics import METRICS, Metric
from warmstart.trials.observation import Observation
from warmstart.trials.split import ArmCounts, Split, check_split


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


class Method(Struct, frozen=True):
    """How the sessions of a design are checked and compared."""

    check: Callable[[Sequence[Observation], Mapping[str, float]], Split]
    decide: CompareArm  # on the deciding metric
    compare: CompareArm  # on the others


RANDOMISED = Method(check_split, partial(compare, bounded=True), compare)


def analyse(
    experiment: str,
    observations: Sequence[Observation],
    *,
    shares: Mapping[str, float],
    control: str,
    metric: str = "error_rate",
    method: Method = RANDOMISED,
) -> Report:
    """Report an experiment. The sessions are in the order in which they began."""
    split = method.check(observations, shares)
    others = [name for name in split.arms if name != control]
    alpha = 0.05 / max(1, len(others))  # Bonferroni: each arm is one more chance to be wrong
    effects: list[Effect] = []
    guardrails: list[str] = []
    secondary: list[Effect] = []
    standings = {control: (0.0, 0.0)}
    for name in others:
        blocked = split.blocked or find_unseeded(name, split.arms[name])
        effect, estimate = method.decide(observations, name, control, METRICS[metric], alpha=alpha)
        if estimate.difference is not None and estimate.se is not None:
            standings[name] = estimate.difference, estimate.se
        compare_on = partial(method.compare, observations, name, control)
        context, against = _compare_context(compare_on, metric)
        against += find_early_harms(compare_on, [obs for obs in observations if obs.arm == control])
        secondary += [structs.replace(other, blocked=blocked) for other in context]
        if effect.verdict == "better":
            guardrails += [f"{name}: {reason}" for reason in against]
            effect = withhold_harmful(effect, against)
        if blocked:
            verdict: EffectVerdict = "too_few" if effect.verdict == "too_few" else "inconclusive"
            effect = structs.replace(effect, verdict=verdict, reason="", blocked=blocked)
        effects.append(structs.replace(effect, role="decides"))
    causes = {effect.blocked for effect in effects}
    return Report(
        experiment=experiment,
        control=control,
        metric=metric,
        arms=split.arms,
        effects=tuple(effects),
        secondary=tuple(secondary),
        guardrails=tuple(guardrails),
        mismatch=split.mismatch,
        missing_mismatch=split.missing_mismatch,
        blocked=split.blocked or (None if None in causes else next(iter(causes), None)),
        left_out={},
        standings=standings,
    )


def find_unseeded(name: str, arm: ArmCounts) -> str | None:
    """Return why an arm has nothing to show: none of its sessions got a seed or advice."""
    if arm.seeded != 0 or not arm.assigned:
        return None
    return f"none of the {arm.assigned} {name} sessions got a seed or advice, so that both arms are the same"


def withhold_harmful(effect: Effect, against: Sequence[str]) -> Effect:
    """Withhold a verdict of "better" against which guardrails speak."""
    if effect.verdict != "better" or not against:
        return effect
    return structs.replace(effect, verdict="inconclusive", reason=f"{effect.reason}, but {'; '.join(against)}")


def find_harms(compare_on: Callable[[Metric], tuple[Effect, Estimate]]) -> list[str]:
    """Return what the guardrails hold against an arm."""
    net, _estimate = compare_on(NET_CALLS)
    checks = [check_guardrail(compare_on(METRICS[name])[0], net) for name in GUARDRAILS]
    return [check.harm for check in checks if check.harm]


def find_early_harms(
    compare_on: Callable[[Metric], tuple[Effect, Estimate]], of_control: Iterable[Observation]
) -> list[str]:
    """Return what sessions that stop early hold against an arm."""
    metric = make_early_stop([obs.measures for obs in of_control if obs.measures is not None])
    harm = find_early_stops(compare_on(metric)[0]) if metric else None
    return [harm] if harm else []


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
