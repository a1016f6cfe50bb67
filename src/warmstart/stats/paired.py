"""Compare two arms in which the same tasks were done.

Each task is its own comparison, so the differences between tasks cancel. The number of tasks is planned and looked at once,
when all are done, so the ordinary interval is the right one.

Tasks of one kind are not independent: an agent that can count the lines of one file can do so for another. Their differences
are summed by group first, and the interval is Student's t with one degree of freedom less than there are groups (Cameron and
Miller 2015). If every task gives the same difference, a spread of zero would look certain: rates get a minimum variance, that
of half a task added to each of the four outcomes (Agresti and Min 2005).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from statistics import NormalDist

from msgspec import Struct

from warmstart.stats.compare import Estimate
from warmstart.stats.sequence import ALPHA, widen

MIN_TASKS = 10
MIN_GROUPS = 6  # fewer say too little about how much groups differ
_ROUNDING = 1e-12


class Paired(Struct, frozen=True):
    """One task: numerator and denominator in each arm."""

    treatment: tuple[float, float]
    control: tuple[float, float]
    group: Hashable


class Crossing(Struct, frozen=True, kw_only=True):
    """Tasks that were done or not done, in both arms."""

    both: int
    helped: int  # done only with the treatment
    harmed: int  # done only without it
    neither: int
    p: float  # probability of a split of helped and harmed this uneven by chance (McNemar's exact test)


def compare_paired(tasks: Sequence[Paired], *, is_rate: bool = False, alpha: float = ALPHA) -> Estimate:
    """Estimate treatment minus control in the ratio of sums, over tasks measured in both arms."""
    measured = [task for task in tasks if task.treatment[1] > 0 and task.control[1] > 0]
    if not measured:
        return _estimate(0, 0, None)
    groups = {task.group for task in measured}
    sums = [sum(column) for column in zip(*((*task.treatment, *task.control) for task in measured), strict=True)]
    value_t, value_c = sums[0] / sums[1], sums[2] / sums[3]
    by_group: dict[Hashable, float] = dict.fromkeys(groups, 0.0)
    for task in measured:
        (y_t, n_t), (y_c, n_c) = task.treatment, task.control
        by_group[task.group] += (y_t - value_t * n_t) / sums[1] - (y_c - value_c * n_c) / sums[3]
    count = len(groups)
    variance = count / (count - 1) * math.fsum(step * step for step in by_group.values()) if count > 1 else 0.0
    if is_rate:
        variance = max(variance, _least_variance(measured))
    se = math.sqrt(variance) if variance > _ROUNDING**2 else 0.0
    enough = len(measured) >= MIN_TASKS and count >= MIN_GROUPS and se > 0
    reach = se * widen(NormalDist().inv_cdf(1 - alpha / 2), count - 1) if enough else None
    return _estimate(len(measured), count, (value_t, value_c, se, reach))


def cross(outcomes: Sequence[tuple[bool, bool]]) -> Crossing:
    """Count tasks by whether they were done with the treatment and without it."""
    helped = sum(treated and not untreated for treated, untreated in outcomes)
    harmed = sum(untreated and not treated for treated, untreated in outcomes)
    both = sum(treated and untreated for treated, untreated in outcomes)
    discordant = helped + harmed
    tail = sum(math.comb(discordant, k) for k in range(min(helped, harmed) + 1)) / 2**discordant
    return Crossing(
        both=both,
        helped=helped,
        harmed=harmed,
        neither=len(outcomes) - both - discordant,
        p=min(1.0, 2 * tail),
    )


def _least_variance(tasks: Sequence[Paired]) -> float:
    differences = [task.treatment[0] / task.treatment[1] - task.control[0] / task.control[1] for task in tasks]
    count = len(differences) + 2
    mean = math.fsum(differences) / count
    return ((math.fsum(difference**2 for difference in differences) + 1) / count - mean * mean) / count


def _estimate(tasks: int, groups: int, values: tuple[float, float, float, float | None] | None) -> Estimate:
    value_t, value_c, se, reach = values or (None, None, None, None)
    difference = None if value_t is None or value_c is None else value_t - value_c
    known = difference is not None and reach is not None
    return Estimate(
        n_treatment=tasks,
        n_control=tasks,
        clusters=groups,
        value_treatment=value_t,
        value_control=value_c,
        difference=difference,
        relative=difference / value_c if difference is not None and value_c else None,
        se=se or None,
        plain_se=se or None,
        low=difference - reach if known else None,  # type: ignore[operator]
        high=difference + reach if known else None,  # type: ignore[operator]
        e_value=1.0,
        e_below=1.0,
        e_above=1.0,
        adjusted=False,
        variance_reduction=None,
        design_effect=None,
    )
