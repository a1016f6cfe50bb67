"""Guardrails: metrics that can hold back a verdict of "better", and why each does or does not. Pure.

An agent that calls less, or gives up, makes fewer errors too. So an arm does not win if its calls that work fall, or if
labelled tasks succeed less often. A guardrail blocks only if the interval that the report shows lies wholly on the bad side
and the fall exceeds the tolerated share of the control's value: an interval that includes zero shows no harm.

An error that does not happen needs no call that recovers from it. So a fall of the calls that work counts only if it
remains after one recovering call has been taken off for every error.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from msgspec import Struct, structs

from warmstart.model import Effect, Measures
from warmstart.trials.metrics import METRICS, Metric

GUARDRAILS = {"working_calls": 0.1, "success": 0.0}  # metric -> tolerated fall, as a share of the control's value

NET_CALLS = Metric(
    name="working_calls",
    title="calls that work, less one for every error",
    read=lambda m: (float(m.judged - 2 * m.errors), 1.0),
    lower_is_better=False,
)


EARLY = 4  # a session stops early that has at most this part of the control's median of calls that work
EARLY_MARGIN = 0.1  # more of them, as a share of the arm's sessions, hold back "better"


class GuardrailCheck(Struct, frozen=True, kw_only=True):
    """A guardrail's effect with the reason for its answer, and what it holds against the arm."""

    effect: Effect
    harm: str | None  # None: the guardrail does not block


def make_early_stop(control: Sequence[Measures]) -> Metric | None:
    """Return the metric of sessions that stop early; None where the control's sessions are too short to tell.

    A session that crashes or gives up after its first calls makes few errors and needs no calls to recover from them.
    """
    limit = int(median(m.judged - m.errors for m in control)) // EARLY if control else 0
    if limit < 1:
        return None
    return Metric(
        name="early_stop",
        title=f"sessions with at most {limit} calls that work",
        read=lambda m: (float(m.judged - m.errors <= limit), 1.0),
    )


def find_early_stops(effect: Effect) -> str | None:
    """Return what more sessions that stop early hold against an arm."""
    low, more = effect.low, effect.difference
    if low is None or more is None or low <= 0 or more <= EARLY_MARGIN:
        return None
    shares = [f"{effect.values[name] or 0:.0%}" for name in (effect.arm, effect.control)]
    return f"more sessions stop early ({shares[0]} against {shares[1]})"


def check_guardrail(effect: Effect, net: Effect) -> GuardrailCheck:
    """Check a guardrail. `net` is the arm's effect on the calls that work, less one for every error."""
    harm = _find_harm(effect, net)
    reason = f"blocks: {harm}" if harm else f"does not block: {_excuse(effect)}"
    return GuardrailCheck(effect=structs.replace(effect, role="guardrail", reason=reason), harm=harm)


def _find_harm(effect: Effect, net: Effect) -> str | None:
    limit = GUARDRAILS[effect.metric] * abs(effect.values.get(effect.control) or 0.0)
    if not _is_below(effect, limit) or (effect.metric == NET_CALLS.name and not _is_below(net, limit)):
        return None
    title = METRICS[effect.metric].title
    return f"{title} fall by {-effect.relative:.0%}" if effect.relative else f"{title} fall"


def _is_below(effect: Effect, limit: float) -> bool:
    """Return whether the interval excludes zero on the bad side, and the fall is larger than the limit."""
    if effect.high is None or effect.difference is None:
        return False
    return effect.high < 0 and -effect.difference > limit


def _excuse(effect: Effect) -> str:
    if effect.low is None or effect.high is None:
        return "there is no interval yet"
    if effect.low <= 0 <= effect.high:
        return "the interval includes zero"
    if effect.low > 0:
        return "it rises"
    tolerated = GUARDRAILS[effect.metric]
    if effect.relative is not None and -effect.relative <= tolerated:
        return f"it falls by {-effect.relative:.0%}, and {tolerated:.0%} are tolerated"
    return "the errors that are avoided need no calls to recover from them"
