"""How a session went, in the numbers that arms are compared by.

The primary one is errors per call over the first turns. Not over whole sessions: failing sessions end early, so the
long ones are survivors, and inside a session errors rise. Every session is looked at over the same stretch.
"""

from __future__ import annotations

from warmstart.model import WINDOW, Measures, PastCall, PastSession, TokenBasis, Usage


def measure(session: PastSession, *, seed_tokens: int = 0) -> Measures | None:
    """The measures of a session, or None where its calls' turns were never counted: it has to be read again first."""
    if session.turns is None or any(call.turn is None for call in session.calls):
        return None
    early = [call for call in session.calls if call.turn is not None and call.turn <= WINDOW]
    first = next((call for call in session.calls if call.outcome.status == "ok"), None)
    tokens, basis = _tokens(session.usage, seed_tokens * session.turns)
    return Measures(
        errors=_errors(early),
        judged=_judged(early),
        calls=len(early),
        all_errors=_errors(session.calls),
        all_judged=_judged(session.calls),
        all_calls=len(session.calls),
        tools=len({call.tool for call in early}),
        turns=session.turns,
        success_turn=first.turn if first else None,
        success_seconds=_since(session.started, (first.answered or first.at) if first else None),
        seconds=_since(session.started, session.ended),
        tokens=tokens,
        tokens_basis=basis,
        seed_tokens=seed_tokens,
        cost=session.usage.cost if session.usage else None,
        label=session.label,
    )


def _errors(calls: tuple[PastCall, ...] | list[PastCall]) -> int:
    return sum(call.outcome.status == "error" for call in calls)


def _judged(calls: tuple[PastCall, ...] | list[PastCall]) -> int:
    return sum(call.outcome.counts for call in calls)


def _since(start: float | None, moment: float | None) -> float | None:
    return None if start is None or moment is None else max(0.0, moment - start)


def _tokens(usage: Usage | None, seed: int) -> tuple[int | None, TokenBasis]:
    """All tokens. A provider's count has the seed in it; an estimate from the transcript does not, for it is not there."""
    if usage is None:
        return None, "reported"
    known = [part for part in (usage.input, usage.output, usage.cache_read, usage.cache_write) if part is not None]
    if not known:
        return None, usage.basis
    return sum(known) + (seed if usage.basis == "estimated" else 0), usage.basis
