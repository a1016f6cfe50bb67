"""Templates live or die by what they do: measured against cold sessions that would have been shown the same.

What a cold session would have got is chosen and written down before its arm counts, so those it is compared with are
the same kind of sessions. With many templates some look good or bad by chance: which decisions are made is held to a
false discovery rate, and what is told of an effect is drawn towards the others'.
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

ENOUGH = 200  # sessions an arm, before "no effect" is a finding and not just silence
RATE = 0.05  # of false discoveries among what is retired or promoted


class TemplateEffect(Struct, frozen=True, kw_only=True):
    """What a template did, and what follows."""

    name: str
    version: int
    effect: Effect
    shrunk: float | None  # relative effect, drawn towards the others': what choosing goes by
    decision: Literal["keep", "retire", "promote"] = "keep"
    reason: str = ""


def weigh_templates(observations: Sequence[Observation]) -> list[TemplateEffect]:
    """Every template with sessions on both sides."""
    pairs: dict[str, tuple[Effect, Estimate]] = {}
    for name in sorted({shown for one in observations for shown in one.templates}):
        those = [one for one in observations if name in one.templates]
        shown = [one for one in those if one.arm != COLD]
        held_back = [one for one in those if one.arm == COLD]
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
    found = []
    for name, (effect, _estimate) in pairs.items():
        base = effect.values[COLD]
        drawn = shrunk[name][0] / base if name in shrunk and base else None
        found.append(_decide(name, effect, drawn, name in bad, name in good))
    return found


def _decide(name: str, effect: Effect, shrunk: float | None, is_bad: bool, is_good: bool) -> TemplateEffect:
    own, _, version = name.rpartition("@")
    made = TemplateEffect(name=own, version=int(version), effect=effect, shrunk=shrunk)
    told = _tell(effect)
    if is_bad and not is_good:
        return structs.replace(made, decision="retire", reason=f"measured: more errors {told}")
    if is_good and not is_bad:
        return structs.replace(made, decision="promote", reason=f"measured: fewer errors {told}")
    if _is_futile(effect):
        return structs.replace(made, decision="retire", reason=f"measured: no useful effect {told}")
    return made


def _is_futile(effect: Effect) -> bool:
    """Even the best that the interval allows is of no use, after enough sessions to say so."""
    base = effect.values[COLD]
    if min(effect.n.values()) < ENOUGH or effect.low is None or not base:
        return False
    return effect.low > -USEFUL * base


def _tell(effect: Effect) -> str:
    values = list(effect.values.values())
    sessions = " and ".join(str(count) for count in effect.n.values())
    if None in values or effect.low is None or effect.high is None:
        return f"({sessions} sessions)"
    return (
        f"({values[0]:.1%} with it, {values[1]:.1%} cold, difference {effect.low:+.1%} to {effect.high:+.1%}, "
        f"{sessions} sessions)"
    )
