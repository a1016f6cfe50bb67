"""One session of a comparison, and what a metric reads from it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from warmstart.model import Measures
from warmstart.trials.metrics import Metric, Pair


class Observation(Struct, frozen=True, kw_only=True):
    """One session of a comparison: its arm, what was known before it, and how it went."""

    session: str
    arm: str
    shares: dict[str, float]  # the probability of each arm
    measures: Measures | None = None  # None: its transcript is missing
    project: str | None = None
    agent: str | None = None
    model: str | None = None
    task: str | None = None  # identifies the request
    category: str | None = None  # kind of work, as it was known before the arm was drawn
    expected: float | None = None  # error rate of earlier sessions of its kind
    templates: tuple[str, ...] = ()  # name@version shown, or held back in the cold arm
    treated: bool | None = None  # it got a seed or advice; None: unknown

    @property
    def weight(self) -> float:
        """Return 1 / the probability of its arm: the rarer the arm, the more sessions this one stands for."""
        share = self.shares.get(self.arm, 0.0)
        return 1 / share if share > 0 else 0.0


Reading = tuple[Observation, Pair]  # a session with its (numerator, denominator)


def read_pairs(side: Iterable[Observation], metric: Metric) -> list[Reading]:
    """Return the sessions for which a metric is known, with its (numerator, denominator)."""
    return [(obs, pair) for obs in side if obs.measures is not None and (pair := metric.read(obs.measures)) is not None]
