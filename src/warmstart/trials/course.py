"""The course of an experiment: the effect of each arm as it looked after every few sessions. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from warmstart.model import Effect, EffectVerdict
from warmstart.trials.compare import compare
from warmstart.trials.metrics import Metric
from warmstart.trials.observation import Observation

LOOKS = 24  # looks at most, evenly spread


class EffectLook(Struct, frozen=True, kw_only=True):
    """The effect after the first sessions of an experiment."""

    sessions: int  # drawn until then, in all arms
    difference: float | None
    low: float | None  # None: no interval yet
    high: float | None
    verdict: EffectVerdict


class EffectCourse(Struct, frozen=True, kw_only=True):
    """The looks at one arm, the earliest first. Its intervals hold at all looks at once."""

    arm: str
    control: str
    metric: str
    looks: tuple[EffectLook, ...]


def trace_courses(
    observations: Sequence[Observation], *, shares: Mapping[str, float], control: str, metric: Metric, most: int = LOOKS
) -> tuple[EffectCourse, ...]:
    """Return the course of each arm. The sessions are in the order in which they began."""
    others = [name for name in shares if name != control]
    alpha = 0.05 / max(1, len(others))  # as the report divides it
    total = len(observations)
    cuts = sorted({round(total * look / most) for look in range(1, most + 1)} - {0})
    return tuple(
        EffectCourse(
            arm=arm,
            control=control,
            metric=metric.name,
            looks=tuple(_look(compare(observations[:cut], arm, control, metric, alpha=alpha)[0], cut) for cut in cuts),
        )
        for arm in others
    )


def _look(effect: Effect, sessions: int) -> EffectLook:
    return EffectLook(
        sessions=sessions, difference=effect.difference, low=effect.low, high=effect.high, verdict=effect.verdict
    )
