"""What a paired experiment shows: every task was done in every arm, so arms are compared task by task."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial

from msgspec import structs

from warmstart.model import Effect
from warmstart.stats.compare import Estimate
from warmstart.stats.paired import Paired, compare_paired, cross
from warmstart.stats.survival import Wait, pseudo_values
from warmstart.trials.metrics import METRICS, Metric, Pair
from warmstart.trials.report import Observation, Report, analyse, describe

_RATES = frozenset(("error_rate", "success"))


def analyse_paired(
    experiment: str,
    observations: Sequence[Observation],
    *,
    shares: Mapping[str, float],
    control: str,
    metric: str = "error_rate",
    horizon: float | None = None,
    left_out: Mapping[str, int] | None = None,
) -> Report:
    """Everything a person wants to know of a paired experiment. `horizon`: turns the first success is awaited within."""
    report = analyse(
        experiment,
        observations,
        shares=shares,
        control=control,
        metric=metric,
        left_out=left_out,
        compare_arm=partial(compare_tasks, horizon=horizon),
    )
    crossings = {name: cross(_outcomes(observations, name, control)) for name in report.arms if name != control}
    return structs.replace(report, design="paired", crossings=crossings)


def compare_tasks(
    observations: Sequence[Observation],
    arm: str,
    control: str,
    metric: Metric,
    *,
    alpha: float = 0.05,
    horizon: float | None = None,
) -> tuple[Effect, Estimate]:
    """The effect of an arm on a metric over the tasks that tell in both arms, and the estimate behind it."""
    sides = [[one for one in observations if one.arm == name] for name in (arm, control)]
    missing = {
        name: sum(one.measures is None for one in side) for name, side in zip((arm, control), sides, strict=True)
    }
    told = [_tell(side, metric, horizon) for side in sides]
    shared = [task for task in told[0] if task in told[1]]
    pairs = [Paired(told[0][task], told[1][task], _group(task)) for task in shared]
    estimate = compare_paired(pairs, is_rate=metric.name in _RATES, alpha=alpha)
    effect = structs.replace(
        describe(metric, (arm, control), missing, estimate),
        clustered_by="project" if any(project for project, _text in shared) else "task",
        clusters=estimate.clusters,
    )
    return effect, estimate


_Key = tuple[str | None, str]  # the project, which holds tasks of one kind, and what the task asks


def _key(one: Observation) -> _Key:
    return one.project, one.task or one.session


def _group(task: _Key) -> Hashable:
    return task[0] if task[0] else task


def _tell(side: Sequence[Observation], metric: Metric, horizon: float | None) -> dict[_Key, Pair]:
    """What an arm's sessions say of each task; of several of one task the sum."""
    told = [(one, pair) for one in side if one.measures is not None and (pair := metric.read(one.measures)) is not None]
    if metric.horizon is not None:
        limit = horizon if horizon is not None and metric.name == "turns_to_success" else metric.horizon
        values = pseudo_values([Wait(time, bool(happened)) for _one, (time, happened) in told], limit)
        told = [(one, (value, 1.0)) for (one, _pair), value in zip(told, values or (), strict=values is not None)]
    found: dict[_Key, Pair] = {}
    for one, (numerator, denominator) in told:
        before = found.get(_key(one), (0.0, 0.0))
        found[_key(one)] = before[0] + numerator, before[1] + denominator
    return found


def _outcomes(observations: Sequence[Observation], arm: str, control: str) -> list[tuple[bool, bool]]:
    """Whether each task was done in the arm and in the control; where one was not tried, it does not count."""
    sides = [
        _tell([one for one in observations if one.arm == name], METRICS["success"], None) for name in (arm, control)
    ]
    return [(sides[0][task][0] > 0, sides[1][task][0] > 0) for task in sides[0] if task in sides[1]]
