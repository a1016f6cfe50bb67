"""Report a paired experiment: every task was done in every arm, so arms are compared task by task."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial

from msgspec import structs

from warmstart.model import Effect
from warmstart.stats.compare import Estimate
from warmstart.stats.paired import Paired, compare_paired, cross
from warmstart.stats.survival import Wait, pseudo_values
from warmstart.trials.bases import count_bases, keep_one_basis
from warmstart.trials.compare import describe
from warmstart.trials.metrics import METRICS, Metric, Pair
from warmstart.trials.observation import Observation, read_pairs
from warmstart.trials.report import Method, Report, analyse
from warmstart.trials.split import check_paired

_RATES = frozenset(("error_rate", "success"))


def analyse_paired(
    experiment: str,
    observations: Sequence[Observation],
    *,
    shares: Mapping[str, float],
    control: str,
    metric: str = "error_rate",
    horizon: float | None = None,
) -> Report:
    """Report a paired experiment. `horizon` is the number of turns within which the first success is awaited."""
    compare_arm = partial(compare_tasks, horizon=horizon)
    method = Method(check_paired, compare_arm, compare_arm)
    report = analyse(experiment, observations, shares=shares, control=control, metric=metric, method=method)
    crossings = {name: cross(_find_outcomes(observations, name, control)) for name in report.arms if name != control}
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
    """Return the effect of an arm on a metric over the tasks measured in both arms, and the estimate behind it."""
    sides = [[obs for obs in observations if obs.arm == name] for name in (arm, control)]
    missing = {
        name: sum(obs.measures is None for obs in side) for name, side in zip((arm, control), sides, strict=True)
    }
    alike = keep_one_basis(sides, metric)
    by_task = [_sum_by_task(side, metric, horizon) for side in alike.sides]
    shared = [task for task in by_task[0] if task in by_task[1]]
    pairs = [Paired(by_task[0][task], by_task[1][task], _cluster_of(task)) for task in shared]
    estimate = compare_paired(pairs, is_rate=metric.name in _RATES, alpha=alpha)
    effect = structs.replace(
        describe(metric, (arm, control), missing, estimate),
        clustered_by="project" if any(project for project, _text in shared) else "task",
        clusters=estimate.clusters,
        basis=alike.basis,
        bases=dict(zip((arm, control), count_bases(sides, metric), strict=True)) if alike.basis else {},
        other_basis=dict(zip((arm, control), alike.left_out, strict=True)) if any(alike.left_out) else {},
    )
    return effect, estimate


_Key = tuple[str | None, str]  # (project, task); a project holds tasks of one kind


def _task_of(obs: Observation) -> _Key:
    return obs.project, obs.task or obs.session


def _cluster_of(task: _Key) -> Hashable:
    return task[0] if task[0] else task


def _sum_by_task(side: Sequence[Observation], metric: Metric, horizon: float | None) -> dict[_Key, Pair]:
    """Return an arm's metric for each task, summed over the task's sessions."""
    measured = read_pairs(side, metric)
    if metric.horizon is not None:
        limit = horizon if horizon is not None and metric.name == "turns_to_success" else metric.horizon
        values = pseudo_values([Wait(time, bool(happened)) for _obs, (time, happened) in measured], limit)
        measured = [
            (obs, (value, 1.0)) for (obs, _pair), value in zip(measured, values or (), strict=values is not None)
        ]
    sums: dict[_Key, Pair] = {}
    for obs, (numerator, denominator) in measured:
        before = sums.get(_task_of(obs), (0.0, 0.0))
        sums[_task_of(obs)] = before[0] + numerator, before[1] + denominator
    return sums


def _find_outcomes(observations: Sequence[Observation], arm: str, control: str) -> list[tuple[bool, bool]]:
    """Return whether each task was done in the arm and in the control, for tasks tried in both."""
    sides = [
        _sum_by_task([obs for obs in observations if obs.arm == name], METRICS["success"], None)
        for name in (arm, control)
    ]
    return [(sides[0][task][0] > 0, sides[1][task][0] > 0) for task in sides[0] if task in sides[1]]
