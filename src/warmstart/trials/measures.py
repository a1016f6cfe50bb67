"""Measure how a session went, in the numbers by which arms are compared.

The primary number is errors per call over the first turns, not over whole sessions: failing sessions end early, so the long
ones are survivors, and errors rise within a session. Every session is measured over the same stretch.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from warmstart.model import WINDOW, CostBasis, Measures, PastCall, PastSession, Usage
from warmstart.usage.amounts import count_tokens

Price = Callable[[Usage, str], float | None]


def measure(session: PastSession, *, seed_tokens: int = 0, price: Price | None = None) -> Measures | None:
    """Return the measures of a session. None if the turns of its calls are unknown: it has to be ingested again first.

    `price` gives the cost of a model's tokens when the transcript does not report one.
    """
    if session.turns is None or any(call.turn is None for call in session.calls):
        return None
    early = [call for call in session.calls if call.turn is not None and call.turn <= WINDOW]
    first = next((call for call in session.calls if call.outcome.status == "ok"), None)
    usage = _with_seed(session.usage, seed_tokens * session.turns)
    return Measures(
        errors=_errors(early),
        judged=_judged(early),
        calls=len(early),
        all_errors=_errors(session.calls),
        all_judged=_judged(session.calls),
        all_calls=len(session.calls),
        tools=len({call.tool for call in early if call.outcome.status == "ok"}),
        turns=session.turns,
        success_turn=first.turn if first else None,
        success_seconds=_since(session.started, (first.answered or first.at) if first else None),
        seconds=_since(session.started, session.ended),
        tokens=count_tokens(usage) if usage else None,
        tokens_basis=usage.basis if usage else "reported",
        seed_tokens=seed_tokens,
        cost=_cost(usage, session.model, price),
        cost_basis=_find_cost_basis(usage),
        label=session.label,
    )


def _errors(calls: tuple[PastCall, ...] | list[PastCall]) -> int:
    return sum(call.outcome.status == "error" for call in calls)


def _judged(calls: tuple[PastCall, ...] | list[PastCall]) -> int:
    return sum(call.outcome.counts for call in calls)


def _since(start: float | None, moment: float | None) -> float | None:
    return None if start is None or moment is None else max(0.0, moment - start)


def _with_seed(usage: Usage | None, seed: int) -> Usage | None:
    """Add the seed to an estimated count: the transcript does not hold it. A provider's count already includes it."""
    if usage is None or usage.basis != "estimated" or usage.input is None:
        return usage
    return structs.replace(usage, input=usage.input + seed)


def _cost(usage: Usage | None, model: str | None, price: Price | None) -> float | None:
    if usage is None or usage.cost is not None or model is None or price is None:
        return usage.cost if usage else None
    return price(usage, model)


def _find_cost_basis(usage: Usage | None) -> CostBasis:
    if usage is None or usage.cost is not None:
        return "reported"
    return "estimated" if usage.basis == "estimated" else "priced"
