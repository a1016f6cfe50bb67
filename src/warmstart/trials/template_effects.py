"""Measure templates against cold sessions that would have been shown them, and decide which to promote or retire.

What a cold session would have been shown is chosen and recorded before its arm counts, so both sides are the same kind of
sessions. Among many templates some look good or bad by chance: decisions are held to a false discovery rate, and reported
effects are shrunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, structs

from warmstart.arms import COLD
from warmstart.model import Effect
from warmstart.stats.compare import Estimate
from warmstart.stats.many_arms import e_bh, shrink
from warmstart.trials.metrics import METRICS
from warmstart.trials.report import USEFUL, Observation, compare_pair

ENOUGH = 200  # sessions per arm before "no effect" is a finding
RATE = 0.05  # false discovery rate among retired or promoted templates


class TemplateEffect(Struct, frozen=True, kw_only=True):
    """The effect of a template, and the decision that follows."""

    name: str
    version: int
    effect: Effect
    shrunk: float | None  # relative effect, shrunk towards 0: templates are chosen by this one
    decision: Literal["keep", "retire", "promote"] = "keep"
    reason: str = ""


def weigh_templates(observations: Sequence[Observation]) -> list[TemplateEffect]:
    """Return the effect of every template with sessions on both sides."""
    pairs: dict[str, tuple[Effect, Estimate]] = {}
    for name in sorted({shown for obs in observations for shown in obs.templates}):
        those = [obs for obs in observations if name in obs.templates]
        shown = [obs for obs in those if obs.arm != COLD]
        held_back = [obs for obs in those if obs.arm == COLD]
        if shown and held_back:
            pairs[name] = compare_pair(shown, held_back, METRICS["error_rate"], names=(name, COLD))
    bad = e_bh({name: estimate.e_above for name, (_effect, estimate) in pairs.items()}, RATE)
    good = e_bh({name: estimate.e_below for name, (_effect, estimate) in pairs.items()}, RATE)
    known = {
        name: (estimate.difference, estimate.se)
        for name, (_effect, estimate) in pairs.items()
        if estimate.difference is not None and estimate.se
    }
    shrunk = shrink(known)
    effects = []
    for name, (effect, _estimate) in pairs.items():
        base = effect.values[COLD]
        relative = shrunk[name][0] / base if name in shrunk and base else None
        effects.append(_decide(name, effect, relative, name in bad, name in good))
    return effects


def _decide(name: str, effect: Effect, shrunk: float | None, is_bad: bool, is_good: bool) -> TemplateEffect:
    own, _, version = name.rpartition("@")
    kept = TemplateEffect(name=own, version=int(version), effect=effect, shrunk=shrunk)
    figures = _describe_figures(effect)
    if is_bad and not is_good:
        return structs.replace(kept, decision="retire", reason=f"measured: more errors {figures}")
    if is_good and not is_bad:
        return structs.replace(kept, decision="promote", reason=f"measured: fewer errors {figures}")
    if _is_futile(effect):
        return structs.replace(kept, decision="retire", reason=f"measured: no useful effect {figures}")
    return kept


def _is_futile(effect: Effect) -> bool:
    """Whether, after enough sessions, even the best end of the interval is of no use."""
    base = effect.values[COLD]
    if min(effect.n.values()) < ENOUGH or effect.low is None or not base:
        return False
    return effect.low > -USEFUL * base


def _describe_figures(effect: Effect) -> str:
    values = list(effect.values.values())
    sessions = " and ".join(str(count) for count in effect.n.values())
    if None in values or effect.low is None or effect.high is None:
        return f"({sessions} sessions)"
    return (
        f"({values[0]:.1%} with it, {values[1]:.1%} cold, difference {effect.low:+.1%} to {effect.high:+.1%}, "
        f"{sessions} sessions)"
    )
