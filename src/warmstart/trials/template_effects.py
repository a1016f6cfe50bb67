"""Measure templates against cold sessions that would have been shown them, and decide which to promote or retire.

What a cold session would have been shown is chosen and recorded before its arm counts, so both sides are the same kind of
sessions. Among many templates some look good or bad by chance: decisions are held to a false discovery rate, and reported
effects are shrunk.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from msgspec import Struct, structs

from warmstart.arms import COLD
from warmstart.model import Effect
from warmstart.stats.compare import Estimate
from warmstart.stats.many_arms import e_bh, shrink
from warmstart.trials.compare import compare_pair
from warmstart.trials.metrics import METRICS, Metric
from warmstart.trials.observation import Observation
from warmstart.trials.report import find_early_harms, find_harms, withhold_harmful
from warmstart.trials.split import check_split

ENOUGH = 200  # sessions per arm before "no effect" is a finding
USEFUL = 0.05  # a smaller relative drop is of no use
RATE = 0.02  # false discovery rate among retired or promoted templates: nobody looks at each decision


class TemplateEffect(Struct, frozen=True, kw_only=True):
    """The effect of a template, and the decision that follows."""

    name: str
    version: int
    effect: Effect
    shrunk: float | None  # relative effect, shrunk towards 0: templates are chosen by this one
    decision: Literal["keep", "retire", "promote"] = "keep"
    reason: str = ""


class _Weighed(Struct, frozen=True):
    """A template's comparison, and why it can decide nothing."""

    effect: Effect
    estimate: Estimate
    doubt: str | None = None  # the sides are not what was drawn
    harms: tuple[str, ...] = ()  # what the guardrails hold against it


def weigh_templates(observations: Sequence[Observation]) -> list[TemplateEffect]:
    """Return the effect of every template with sessions on both sides. The sessions are in the order of their beginning.

    A template passes the checks of an experiment before anything is decided: sides as drawn, transcripts missing equally
    often, missing sessions that cannot undo the verdict, and guardrails.
    """
    sides = {name: _Sides.of(name, observations) for name in sorted({n for obs in observations for n in obs.templates})}
    sides = {name: side for name, side in sides.items() if side.shown and side.held_back}
    weighed = {name: _weigh(side) for name, side in sides.items()}
    suspects = _find_bad(weighed) | _find_good(weighed) | {name for name, w in weighed.items() if _is_futile(w.effect)}
    for name in suspects:
        weighed[name] = _check(sides[name], weighed[name])
    bad, good = _find_bad(weighed), _find_good(weighed)
    known = {
        name: (w.estimate.difference, w.estimate.se)
        for name, w in weighed.items()
        if w.estimate.difference is not None and w.estimate.se and not w.doubt
    }
    shrunk = shrink(known)
    effects = []
    for name, w in weighed.items():
        base = w.effect.values[COLD]
        relative = shrunk[name][0] / base if name in shrunk and base else None
        effects.append(_decide(name, w, relative, is_bad=name in bad, is_good=name in good))
    return effects


class _Sides(Struct, frozen=True):
    """The sessions that were shown a template, and the cold ones that would have been."""

    name: str
    shown: list[Observation]
    held_back: list[Observation]
    drawn: list[Observation]  # both, with the probability of either side

    @classmethod
    def of(cls, name: str, observations: Sequence[Observation]) -> _Sides:
        those = [obs for obs in observations if name in obs.templates]
        arms = {obs.arm for obs in those}
        return cls(
            name,
            [obs for obs in those if obs.arm != COLD],
            [obs for obs in those if obs.arm == COLD],
            [_take_side(obs, name, arms) for obs in those],
        )

    def compare(self, metric: Metric, *, bounded: bool = False) -> tuple[Effect, Estimate]:
        return compare_pair(self.shown, self.held_back, metric, names=(self.name, COLD), bounded=bounded)


def _take_side(obs: Observation, name: str, arms: Collection[str]) -> Observation:
    """Return the session on its side: shown, which is named after the template, or cold. Other arms could not come."""
    shares = {arm: share for arm, share in obs.shares.items() if arm in arms or arm == COLD}
    cold = shares.pop(COLD, 0.0)
    return structs.replace(
        obs, arm=COLD if obs.arm == COLD else name, shares={COLD: cold, name: math.fsum(shares.values())}
    )


def _weigh(sides: _Sides) -> _Weighed:
    effect, estimate = sides.compare(METRICS["error_rate"])
    return _Weighed(effect, estimate, check_split(sides.drawn, {}).blocked)


def _check(sides: _Sides, weighed: _Weighed) -> _Weighed:
    """Check a template about which something would be decided."""
    effect, estimate = sides.compare(METRICS["error_rate"], bounded=True)
    harms = find_harms(sides.compare) + find_early_harms(sides.compare, sides.held_back)
    return _Weighed(effect, estimate, weighed.doubt, tuple(harms))


def _find_bad(weighed: Mapping[str, _Weighed]) -> set[str]:
    return e_bh({name: 0.0 if w.doubt else w.estimate.e_above for name, w in weighed.items()}, RATE)


def _find_good(weighed: Mapping[str, _Weighed]) -> set[str]:
    return e_bh({name: 0.0 if w.doubt or w.harms else w.estimate.e_below for name, w in weighed.items()}, RATE)


def _decide(name: str, weighed: _Weighed, shrunk: float | None, *, is_bad: bool, is_good: bool) -> TemplateEffect:
    own, _, version = name.rpartition("@")
    effect = weighed.effect
    kept = TemplateEffect(name=own, version=int(version), effect=effect, shrunk=shrunk)
    figures = _describe_figures(effect)
    if weighed.doubt:
        blocked = structs.replace(effect, verdict="inconclusive", reason="", blocked=weighed.doubt)
        return structs.replace(kept, effect=blocked, reason=weighed.doubt)
    if is_bad and not is_good:
        return structs.replace(kept, decision="retire", reason=f"measured: more errors {figures}")
    if is_good and not is_bad:
        return structs.replace(kept, decision="promote", reason=f"measured: fewer errors {figures}")
    if _is_futile(effect):
        return structs.replace(kept, decision="retire", reason=f"measured: no useful effect {figures}")
    effect = withhold_harmful(effect, weighed.harms)
    is_withheld = effect.verdict == "inconclusive" and ", but " in effect.reason
    return structs.replace(kept, effect=effect, reason=effect.reason if is_withheld else "")


def _is_futile(effect: Effect) -> bool:
    """Whether, after enough sessions, even the best end of the interval is of no use."""
    base = effect.values[COLD]
    low = effect.low if effect.worst_low is None else effect.worst_low
    if min(effect.n.values()) < ENOUGH or low is None or not base:
        return False
    return low > -USEFUL * base


def _describe_figures(effect: Effect) -> str:
    values = list(effect.values.values())
    sessions = " and ".join(str(count) for count in effect.n.values())
    if None in values or effect.low is None or effect.high is None:
        return f"({sessions} sessions)"
    return (
        f"({values[0]:.1%} with it, {values[1]:.1%} cold, difference {effect.low:+.1%} to {effect.high:+.1%}, "
        f"{sessions} sessions)"
    )
