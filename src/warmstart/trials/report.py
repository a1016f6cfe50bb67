"""Trials in, effects out: what an arm did to sessions, compared with the control. Pure; the arithmetic is in `stats`.

Sessions are compared by the arm they were assigned, whatever they did with it (intention to treat). Those without a
transcript are counted as missing, never as zero. No verdict is given where the arms are not what was drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct, structs

from warmstart.model import Design, Effect, Measures
from warmstart.stats.compare import Comparison, Estimate, decide, plain_interval
from warmstart.stats.many_arms import missing_mismatch, ratio_mismatch
from warmstart.stats.paired import Crossing
from warmstart.stats.survival import Wait, restricted_mean_difference
from warmstart.trials.metrics import METRICS, Metric, Pair

MISMATCH = 0.001  # probability below which arms are not what was drawn
CLUSTERS = 30  # as many of each arm make a cluster variance trustworthy
USEFUL = 0.05  # a drop smaller than this share is of no use to anyone
_STRATUM = 20  # sessions that a kind of work needs to be told apart from the rest


class Observation(Struct, frozen=True, kw_only=True):
    """One session of a comparison: what was drawn for it, what was known before, and how it went."""

    session: str
    arm: str
    shares: dict[str, float]  # how probable each arm was
    measures: Measures | None = None  # None: its transcript is missing
    project: str | None = None
    task: str | None = None  # tells the same request from another
    category: str | None = None
    expected: float | None = None  # error rate that earlier sessions of its kind had
    templates: tuple[str, ...] = ()  # name@version shown, or in the cold arm held back

    @property
    def weight(self) -> float:
        """The rarer the arm was, the more sessions this one stands for."""
        share = self.shares.get(self.arm, 0.0)
        return 1 / share if share > 0 else 0.0


class ArmCounts(Struct, frozen=True, kw_only=True):
    """An arm in numbers."""

    assigned: int
    expected: float  # as many as should have been assigned
    missing: int


class Split(Struct, frozen=True, kw_only=True):
    """Who was assigned what, and whether that is what was drawn."""

    arms: dict[str, ArmCounts]
    mismatch: float | None  # probability of such a split by chance
    missing_mismatch: float | None  # the same for the missing transcripts
    blocked: str | None  # why nothing of it can be trusted


class Report(Struct, frozen=True, kw_only=True):
    """What an experiment has shown so far."""

    experiment: str
    control: str
    metric: str
    arms: dict[str, ArmCounts]
    effects: tuple[Effect, ...]  # on the metric that decides, an arm each
    secondary: tuple[Effect, ...]
    guardrails: tuple[str, ...]  # what speaks against an arm that seemed better
    mismatch: float | None  # probability of such a split by chance
    missing_mismatch: float | None  # the same for the missing transcripts
    blocked: str | None  # why no verdict may be given
    left_out: dict[str, int]  # sessions not compared, by reason
    standings: dict[str, tuple[float, float]]  # by arm: difference to the control, and its standard error
    design: Design = "random"
    crossings: dict[str, Crossing] = {}  # by arm, where every task was done in every arm


class CompareArm(Protocol):
    """Compares an arm with the control on a metric: the effect, and the estimate behind it."""

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
    """Everything a person wants to know of an experiment. `compare_arm`: by another design than sessions drawn at random."""
    compare_arm = compare_arm or compare
    split = check_split(observations, shares)
    blocked = split.blocked
    others = [name for name in split.arms if name != control]
    alpha = 0.05 / max(1, len(others))  # each arm is one more chance to be wrong
    found: list[Effect] = []
    guardrails: list[str] = []
    standings = {control: (0.0, 0.0)}
    for name in others:
        effect, estimate = compare_arm(observations, name, control, METRICS[metric], alpha=alpha)
        if estimate.difference is not None and estimate.se is not None:
            standings[name] = estimate.difference, estimate.se
        against = find_harm(observations, name, control) if effect.verdict == "better" else []
        if against:
            guardrails += [f"{name}: {reason}" for reason in against]
            effect = structs.replace(
                effect, verdict="inconclusive", reason=f"{effect.reason}, but {'; '.join(against)}"
            )
        if blocked:
            effect = structs.replace(effect, verdict="inconclusive", reason="", blocked=blocked)
        found.append(effect)
    secondary = [
        compare_arm(observations, name, control, other)[0]
        for name in others
        for other in METRICS.values()
        if other.name != metric
    ]
    return Report(
        experiment=experiment,
        control=control,
        metric=metric,
        arms=split.arms,
        effects=tuple(found),
        secondary=tuple(structs.replace(effect, blocked=blocked) for effect in secondary),
        guardrails=tuple(guardrails),
        mismatch=split.mismatch,
        missing_mismatch=split.missing_mismatch,
        blocked=blocked,
        left_out=dict(left_out or {}),
        standings=standings,
    )


def check_split(observations: Sequence[Observation], shares: Mapping[str, float]) -> Split:
    """Whether the arms are what was drawn, and whether transcripts are missing alike in all of them."""
    arms = _count_arms(observations, shares)
    mismatch = _mismatch(arms)
    lost = missing_mismatch(
        {name: arm.assigned - arm.missing for name, arm in arms.items()},
        {name: arm.missing for name, arm in arms.items()},
    )
    blocked = _why_blocked(arms, mismatch, lost)
    return Split(arms=arms, mismatch=mismatch, missing_mismatch=lost, blocked=blocked)


def _count_arms(observations: Sequence[Observation], shares: Mapping[str, float]) -> dict[str, ArmCounts]:
    known = {name for one in observations for name in (one.arm, *one.shares)}
    names = [*shares, *sorted(known - shares.keys())]
    return {
        name: ArmCounts(
            assigned=sum(one.arm == name for one in observations),
            expected=sum(one.shares.get(name, 0.0) for one in observations),
            missing=sum(one.arm == name and one.measures is None for one in observations),
        )
        for name in names
    }


def _mismatch(arms: Mapping[str, ArmCounts]) -> float | None:
    observed = {name: arm.assigned for name, arm in arms.items()}
    if len(arms) < 2 or not sum(observed.values()):
        return None
    return ratio_mismatch(observed, {name: arm.expected for name, arm in arms.items()})


def _why_blocked(arms: Mapping[str, ArmCounts], mismatch: float | None, lost: float | None) -> str | None:
    if mismatch is not None and mismatch < MISMATCH:
        split = ", ".join(f"{name} {arm.assigned} instead of {arm.expected:.0f}" for name, arm in arms.items())
        return f"the arms are not what was drawn ({split}; p = {mismatch:.1g}): find out why before trusting anything"
    if lost is not None and lost < MISMATCH:
        split = ", ".join(f"{name} {arm.missing} of {arm.assigned}" for name, arm in arms.items())
        return f"transcripts are missing more in one arm ({split}; p = {lost:.1g}): what is left cannot be compared"
    return None


# One arm against the control


def compare(
    observations: Sequence[Observation], arm: str, control: str, metric: Metric, *, alpha: float = 0.05
) -> tuple[Effect, Estimate]:
    """The effect of an arm on a metric, and the estimate behind it."""
    of_arm = [one for one in observations if one.arm == arm]
    of_control = [one for one in observations if one.arm == control]
    return compare_pair(of_arm, of_control, metric, names=(arm, control), alpha=alpha)


def compare_pair(
    of_arm: Sequence[Observation],
    of_control: Sequence[Observation],
    metric: Metric,
    *,
    names: tuple[str, str],
    alpha: float = 0.05,
) -> tuple[Effect, Estimate]:
    """The effect between two sets of sessions, and the estimate behind it."""
    sides = (of_arm, of_control)
    missing = {name: sum(one.measures is None for one in side) for name, side in zip(names, sides, strict=True)}
    if metric.horizon is not None:
        waits = [_wait(side, metric) for side in sides]
        estimate = restricted_mean_difference(waits[0], waits[1], metric.horizon, alpha) or Comparison().estimate()
        return describe(metric, names, missing, estimate), estimate
    told = [_tell(side, metric) for side in sides]
    by, cluster = choose_clusters([one for one, _pair in told[0]], [one for one, _pair in told[1]])
    strata = _strata(one for side in told for one, _pair in side)
    comparison = Comparison(1 + len(strata) if metric.adjusted else 0)
    for side, is_treatment in zip(told, (True, False), strict=True):
        for one, pair in side:
            known = _covariates(one, strata) if metric.adjusted else ()
            comparison.add(is_treatment, *pair, cluster=cluster(one), weight=one.weight, covariates=known)
    estimate = comparison.estimate(alpha)
    rates = [[y / n for _one, (y, n) in side if n > 0] for side in told]
    harmed, expected = _count_harmed(rates[0], rates[1], metric)
    effect = structs.replace(
        describe(metric, names, missing, estimate),
        harmed=harmed,
        harmed_expected=expected,
        clustered_by=by,
        clusters=estimate.clusters,
        adjusted=estimate.adjusted,
    )
    return effect, estimate


def _tell(side: Iterable[Observation], metric: Metric) -> list[tuple[Observation, Pair]]:
    """The sessions that tell of a metric."""
    return [(one, pair) for one in side if one.measures is not None and (pair := metric.read(one.measures)) is not None]


def _wait(side: Iterable[Observation], metric: Metric) -> list[Wait]:
    """Until the first success. A session that ended before has not failed at it: it was watched so long and no longer."""
    return [Wait(time, bool(happened)) for _one, (time, happened) in _tell(side, metric)]


def describe(metric: Metric, names: tuple[str, str], missing: dict[str, int], estimate: Estimate) -> Effect:
    """An estimate in the words of a report."""
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
        return "too few sessions for an interval"
    if verdict == "inconclusive":
        return "the interval holds both less and more"
    share = "" if estimate.relative is None else f" {abs(estimate.relative):.0%}"
    return f"{metric.title}: {'down' if (estimate.difference or 0) < 0 else 'up'}{share}"


def choose_clusters(
    of_arm: Sequence[Observation], of_control: Sequence[Observation]
) -> tuple[str, Callable[[Observation], Hashable]]:
    """What sessions hang together by: the widest that still leaves enough of them on each side to see how they vary."""
    levels: tuple[tuple[str, Callable[[Observation], Hashable]], ...] = (
        ("project", lambda one: ("project", one.project) if one.project else ("session", one.session)),
        ("task", lambda one: ("task", one.project, one.task) if one.task else ("session", one.session)),
    )
    for name, key in levels:
        sides = [{key(one) for one in side} for side in (of_arm, of_control)]
        if all(len(keys) >= CLUSTERS for keys in sides) and len(set.union(*sides)) < len(of_arm) + len(of_control):
            return name, key
    return "session", lambda one: one.session


def _strata(observations: Iterable[Observation]) -> list[str]:
    """Kinds of work that are common enough to be told apart; the commonest is what the others are compared with."""
    counts: dict[str, int] = {}
    for one in observations:
        if one.category:
            counts[one.category] = counts.get(one.category, 0) + 1
    common = sorted(
        (name for name, count in counts.items() if count >= _STRATUM), key=lambda name: (-counts[name], name)
    )
    return common[1:]


def _covariates(one: Observation, strata: Sequence[str]) -> list[float]:
    return [one.expected if one.expected is not None else 0.0, *(float(one.category == name) for name in strata)]


def _count_harmed(of_arm: list[float], of_control: list[float], metric: Metric) -> tuple[int | None, float | None]:
    """Sessions of the arm that did worse than nine in ten of the control's; and how many would by chance.

    What the same session would have done in the other arm nobody can know: this is about the bad end of each.
    """
    if len(of_control) < 10 or not of_arm:
        return None, None
    sign = 1 if metric.lower_is_better else -1
    ordered = sorted(sign * rate for rate in of_control)
    limit = ordered[int(0.9 * len(ordered))]
    by_chance = sum(rate > limit for rate in ordered) / len(ordered)
    return sum(sign * rate > limit for rate in of_arm), by_chance * len(of_arm)


# Guardrails


def find_harm(observations: Sequence[Observation], arm: str, control: str) -> list[str]:
    """What speaks against an arm with fewer errors: who calls less errs less, and who gives up makes no error at all.

    Looked at with the ordinary interval, which is quicker to complain: a false alarm here only means more patience.
    """
    found: list[str] = []
    for name, tolerated in (("working_calls", 0.1), ("success", 0.0)):
        metric = METRICS[name]
        comparison = Comparison()
        for one, pair in _tell((one for one in observations if one.arm in (arm, control)), metric):
            comparison.add(one.arm == arm, *pair, cluster=one.session, weight=one.weight)
        estimate = comparison.estimate()
        interval = plain_interval(estimate)
        relative = estimate.relative or 0.0
        if interval is not None and interval[1] < 0 and relative < -tolerated:
            found.append(f"{metric.title} fall by {-relative:.0%}")
    return found


def expected_rate(
    history: Iterable[tuple[float, str | None, str | None, str, int, int]],
    wanted: Sequence[tuple[float, tuple[str | None, ...]]],
) -> list[float | None]:
    """For each `(time, (project, model, category))` the error rate of what had ended before it: of its project, its
    model and its kind of work, each drawn towards the whole where there is little of it, and then their mean."""
    sums: dict[tuple[int, str | None], list[int]] = {}
    order = sorted(range(len(wanted)), key=lambda place: wanted[place][0])
    found: list[float | None] = [None] * len(wanted)
    past = iter(history)
    coming = next(past, None)
    for place in order:
        at, keys = wanted[place]
        while coming is not None and coming[0] <= at:
            for slot, key in ((-1, None), *enumerate(coming[1:4])):
                both = sums.setdefault((slot, key), [0, 0])
                both[0] += coming[4]
                both[1] += coming[5]
            coming = next(past, None)
        errors, judged = sums.get((-1, None), (0, 0))
        if judged:
            whole = errors / judged
            rates = [_shrunk(sums.get((slot, key), (0, 0)), whole) for slot, key in enumerate(keys) if key]
            found[place] = sum(rates) / len(rates) if rates else whole
    return found


def _shrunk(counts: Sequence[int], whole: float, weight: float = 50.0) -> float:
    return (counts[0] + weight * whole) / (counts[1] + weight)
