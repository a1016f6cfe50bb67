"""Running totals that callers report: the increase since the last one, and whether the counter has started over. Pure.

A running total never falls. One that is lower than the last either comes late or counts from zero again, as after a resume
in a new process. If the caller names its time, the time decides. If not, a total below half of the last one is a restart:
two hooks that race are one answer apart, and no answer doubles a session's total except at its very beginning.
"""

from __future__ import annotations

from msgspec import Struct, structs

from warmstart.model import Usage
from warmstart.usage.amounts import Figure, count_tokens, figures, make_usage

_CENT = 1e-9  # dollars; smaller differences are rounding


class Counter(Struct, frozen=True, kw_only=True):
    """A running total as it was reported last."""

    last: Usage = Usage()
    base: Usage = Usage()  # what was counted before the counter started over
    since: float = 0.0  # when it started over
    at: float = 0.0


def has_restarted(counter: Counter, total: Usage, at: float, *, is_timed: bool) -> bool:
    """Return whether a total counts from zero again. `is_timed`: the caller names `at`, else it is the time of arrival."""
    pairs = [
        (before, after)
        for before, after in zip(figures(counter.last), figures(total), strict=True)
        if before is not None and after is not None
    ]
    if not any(after < before for before, after in pairs) or any(after > before for before, after in pairs):
        return False
    if is_timed:
        return at > counter.at
    return 2 * _weigh(total, counter.last) < _weigh(counter.last, total)


def advance(counter: Counter, total: Usage, at: float) -> Counter:
    """Return the counter after a total that continues it, or came late: the larger figures stay."""
    larger = [
        after if before is None else before if after is None else max(before, after)
        for before, after in zip(figures(counter.last), figures(total), strict=True)
    ]
    return structs.replace(counter, last=make_usage(larger), at=max(counter.at, at))


def find_increase(counter: Counter, counted: Usage, total: Usage) -> Usage | None:
    """Return what a total adds to what is counted; None if it adds nothing."""
    more: list[Figure] = []
    for base, before, after in zip(figures(counter.base), figures(counted), figures(total), strict=True):
        new = None if after is None else (base or 0) + after - (before or 0)
        small = _CENT if isinstance(new, float) else 0
        more.append(new if new is not None and (before is None or new > small) else None)
    return make_usage(more) if any(new is not None for new in more) else None


def _weigh(usage: Usage, other: Usage) -> float:
    """Return the tokens that both know, or the cost if there are none."""
    shared = [own if theirs is not None else None for own, theirs in zip(figures(usage), figures(other), strict=True)]
    tokens = count_tokens(make_usage(shared))
    return tokens if tokens is not None else next((value for value in reversed(shared) if value is not None), 0.0)
