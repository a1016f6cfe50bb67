"""How a session went, in the numbers that arms are compared by.

The primary one is errors per call over the first turns. Not over whole sessions: failing sessions end early, so the
long ones are survivors, and inside a session errors rise. Every session is looked at over the same stretch.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from warmstart.model import WINDOW, Measures, PastCall, PastSession, Usage
from warmstart.usage.amounts import count_tokens

Price = Callable[[Usage, str], float | None]


def measure(session: PastSession, *, seed_tokens: int = 0, price: Price | None = None) -> Measures | None:
    """The measures of a session, or None where its calls' turns were never counted: it has to be read again first.

    `price` says what tokens of a model cost, where the transcript does not say it itself.
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
        label=session.label,
    )


def _errors(calls: tuple[PastCall, ...] | list[PastCall]) -> int:
    return sum(call.outcome.status == "error" for call in calls)


def _judged(calls: tuple[PastCall, ...] | list[PastCall]) -> int:
    return sum(call.outcome.counts for call in calls)


def _since(start: float | None, moment: float | None) -> float | None:
    return None if start is None or moment is None else max(0.0, moment - start)


def _with_seed(usage: Usage | None, seed: int) -> Usage | None:
    """A provider's count has the seed in it; an estimate from the transcript does not, for it is not there."""
    if usage is None or usage.basis == "reported" or usage.input is None:
        return usage
    return structs.replace(usage, input=usage.input + seed)


def _cost(usage: Usage | None, model: str | None, price: Price | None) -> float | None:
    if usage is None or usage.cost is not None or model is None or price is None:
        return usage.cost if usage else None
    return price(usage, model)
