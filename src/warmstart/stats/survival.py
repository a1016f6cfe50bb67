"""Time to the first success, when some sessions end before it (censored).

Leaving those sessions out would be survivorship bias; counting them with their length would be too kind. Kaplan-Meier uses
what each one shows: no success until then. Arms are compared by the restricted mean, the average wait up to a horizon,
which needs no proportional hazards and reads as turns or seconds saved (Royston and Parmar 2013).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Hashable, Sequence
from itertools import accumulate
from typing import NamedTuple

from warmstart.stats.compare import Comparison, Estimate
from warmstart.stats.sequence import ALPHA


class Wait(NamedTuple):
    """One session: how long it was watched, and whether the event happened."""

    time: float
    happened: bool  # False: censored
    cluster: Hashable = None  # None: the session is a cluster of its own


class Step(NamedTuple):
    """Survival from `time` on, and how many sessions were still waiting just before."""

    time: float
    survival: float
    at_risk: int
    happened: int


def kaplan_meier(waits: Sequence[Wait]) -> list[Step]:
    """Return the product-limit curve, one step per time at which an event happened."""
    _check(waits)
    steps: list[Step] = []
    ordered = sorted(waits, key=lambda wait: wait.time)
    survival, at = 1.0, 0
    while at < len(ordered):
        time, end = ordered[at].time, at
        while end < len(ordered) and ordered[end].time == time:
            end += 1
        happened = sum(wait.happened for wait in ordered[at:end])
        at_risk = len(ordered) - at
        if happened:
            survival *= 1 - happened / at_risk
            steps.append(Step(time, survival, at_risk, happened))
        at = end
    return steps


def restricted_mean_difference(
    treatment: Sequence[Wait], control: Sequence[Wait], horizon: float, alpha: float = ALPHA
) -> Estimate | None:
    """Estimate treatment minus control in mean wait up to the horizon, with the always-valid interval.

    None if an arm was not watched up to the horizon. Set the horizon before looking: another horizon is another question.
    """
    comparison = Comparison()
    for treated, waits in ((True, treatment), (False, control)):
        values = pseudo_values(waits, horizon)
        if values is None:
            return None
        for number, (wait, value) in enumerate(zip(waits, values, strict=True)):
            own = (treated, number)
            comparison.add(treated, value, cluster=own if wait.cluster is None else (wait.cluster,))
    return comparison.estimate(alpha)


def pseudo_values(waits: Sequence[Wait], horizon: float) -> list[float] | None:
    """Return what each session adds to the restricted mean: min(time, horizon) itself if nothing is censored.

    This is the mean plus n times the infinitesimal jackknife. The variance of these values is Greenwood's, and as plain
    numbers they go through the same comparison, clusters and guards as every other metric. None if nobody was watched up
    to the horizon.
    """
    _check(waits)
    if not waits or not horizon > 0 or not _is_watched(waits, horizon):
        return None
    steps = [step for step in kaplan_meier(waits) if step.time < horizon]
    times = [step.time for step in steps] + [horizon]
    areas = [step.survival * (end - step.time) for step, end in zip(steps, times[1:], strict=True)]
    mean = times[0] + math.fsum(areas)
    ahead = list(accumulate(reversed(areas)))[::-1]
    losses = [  # how much one more event at this step lowers the mean
        area / (step.at_risk - step.happened) if step.at_risk > step.happened else 0.0
        for step, area in zip(steps, ahead, strict=True)
    ]
    shares = [loss * step.happened / step.at_risk for loss, step in zip(losses, steps, strict=True)]
    gains = [0.0, *accumulate(shares)]  # from having waited through the steps so far
    values = []
    for wait in waits:
        passed = bisect_right(times, wait.time, hi=len(steps))
        loss = losses[passed - 1] if wait.happened and passed and times[passed - 1] == wait.time else 0.0
        values.append(mean + len(waits) * (gains[passed] - loss))
    return values


def _is_watched(waits: Sequence[Wait], horizon: float) -> bool:
    """Whether someone was watched up to the horizon, or the last wait ended, so that nobody is left waiting."""
    last = max(wait.time for wait in waits)
    return last >= horizon or all(wait.happened for wait in waits if wait.time == last)


def _check(waits: Sequence[Wait]) -> None:
    if not all(math.isfinite(wait.time) and wait.time >= 0 for wait in waits):
        raise ValueError("waiting times must be finite and not negative")
