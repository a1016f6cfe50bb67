"""Sessions of a comparison, as tests make them."""

from __future__ import annotations

from typing import Any

from warmstart.model import Measures
from warmstart.trials.observation import Observation

HALVES = {"cold": 0.5, "warm": 0.5}


def measures(errors: int = 1, judged: int = 10, **more: Any) -> Measures:
    facts = {"calls": judged, "all_errors": errors, "all_judged": judged, "all_calls": judged, "tools": 1, "turns": 10}
    return Measures(errors=errors, judged=judged, **(facts | more))


def one(name: str, arm: str, found: Measures | None = None, **more: Any) -> Observation:
    return Observation(session=name, arm=arm, shares=more.pop("shares", HALVES), measures=found, **more)
