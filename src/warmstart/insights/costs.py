"""What errors cost: the turns from a failing call to the call that fixed it, in the session's own tokens and minutes.

Only means are known of tokens: a session's total over its turns. Time is read from the clock, each wait capped, because
a person may have gone to lunch. An error that nothing fixed costs its own turn: more cannot be told. What was done in
between for other reasons is counted too: that cannot be told apart either. So costs are estimates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from msgspec import Struct

from warmstart.insights.types import Cost, TotalCost
from warmstart.model import PastCall, PastSession, Usage

IDLE = 300.0  # seconds: a tool's run or a wait between calls that is longer counts as this


class FailureSpan(NamedTuple):
    """Calls from a failure up to what ended it."""

    start: int  # index of the failing call
    end: int | None  # index of the call that fixed it; None: nothing did


class CostMeter:
    """What one session's turns and calls took."""

    def __init__(self, session: PastSession) -> None:
        self.calls = session.calls
        self.estimated = session.usage is not None and session.usage.basis == "estimated"
        self.tokens = count_tokens(session.usage)
        self.turns = session.turns
        self.per_turn = self.tokens / self.turns if self.tokens is not None and self.turns else None
        self.gaps = [_measure_gap(call, after) for call, after in zip_longest(session.calls, session.calls[1:]) if call]

    def find_turns(self, trouble: FailureSpan) -> range | None:
        """The turns that were lost: from the failing one up to the one that fixed it, which was needed anyway."""
        first = self.calls[trouble.start].turn
        last = self.calls[trouble.end].turn if trouble.end is not None else None
        if first is None or (trouble.end is not None and last is None):
            return None
        return range(first, first + 1 if last is None else max(last, first + 1))

    def find_steps(self, trouble: FailureSpan) -> range | None:
        """The calls whose time was lost; None where the clock does not tell of all of them."""
        steps = range(trouble.start, trouble.start + 1 if trouble.end is None else trouble.end)
        return None if any(self.gaps[step] is None for step in steps) else steps


class CostTally(Struct):
    """Adds costs up, session by session."""

    errors: int = 0
    turns: int = 0
    turns_unknown: int = 0
    tokens: float = 0.0
    tokens_estimated: float = 0.0
    tokens_unknown: int = 0
    seconds: float = 0.0
    seconds_unknown: int = 0

    def add(self, meter: CostMeter, troubles: Sequence[FailureSpan]) -> None:
        """The troubles of one session. What they share counts once."""
        turns = [meter.find_turns(trouble) for trouble in troubles]
        lost = sum(map(len, _merge(turns)))
        unknown = turns.count(None)
        self.errors += len(troubles)
        self.turns += lost
        self.turns_unknown += unknown
        if meter.per_turn is None:
            self.tokens_unknown += len(troubles)
        else:
            self.tokens += lost * meter.per_turn
            self.tokens_estimated += lost * meter.per_turn * meter.estimated
            self.tokens_unknown += unknown
        steps = [meter.find_steps(trouble) for trouble in troubles]
        self.seconds += sum(meter.gaps[step] or 0.0 for merged in _merge(steps) for step in merged)
        self.seconds_unknown += steps.count(None)

    def freeze(self) -> Cost:
        return Cost(
            errors=self.errors,
            turns=self.turns if self.turns_unknown < self.errors else None,
            turns_unknown=self.turns_unknown,
            tokens=round(self.tokens) if self.tokens_unknown < self.errors else None,
            tokens_estimated=round(self.tokens_estimated),
            tokens_unknown=self.tokens_unknown,
            seconds=round(self.seconds, 1) if self.seconds_unknown < self.errors else None,
            seconds_unknown=self.seconds_unknown,
        )


class TotalTally:
    """The cost of all errors, and what the sessions took altogether."""

    def __init__(self) -> None:
        self._lost = CostTally()
        self._turns = 0
        self._tokens = 0
        self._seconds = 0.0

    def add(self, meter: CostMeter, troubles: Sequence[FailureSpan]) -> None:
        self._lost.add(meter, troubles)
        if any(call.turn is not None for call in meter.calls):
            self._turns += meter.turns or 0
        if meter.per_turn is not None:
            self._tokens += meter.tokens or 0
        self._seconds += sum(gap for gap in meter.gaps if gap is not None)

    def freeze(self) -> TotalCost:
        cost = self._lost.freeze()
        return TotalCost(
            cost=cost,
            turns_share=_share(cost.turns, self._turns),
            tokens_share=_share(cost.tokens, self._tokens),
            seconds_share=_share(cost.seconds, self._seconds),
        )


def count_tokens(usage: Usage | None) -> int | None:
    """All that was sent and answered, from the cache or not; None where the session tells nothing of it."""
    if usage is None:
        return None
    known = [part for part in (usage.input, usage.output, usage.cache_read, usage.cache_write) if part is not None]
    return sum(known) if known else None


def _merge(ranges: Iterable[range | None]) -> list[range]:
    """The same numbers, each once."""
    merged: list[range] = []
    for found in sorted((found for found in ranges if found), key=lambda found: (found.start, found.stop)):
        if merged and found.start <= merged[-1].stop:
            merged[-1] = range(merged[-1].start, max(merged[-1].stop, found.stop))
        else:
            merged.append(found)
    return merged


def _share(part: float | None, whole: float) -> float | None:
    return min(1.0, part / whole) if part is not None and whole > 0 else None


def _measure_gap(call: PastCall, after: PastCall | None) -> float | None:
    """Seconds from a call to the next one: its run and the wait after it, each capped. None: the clock does not tell."""
    started, answered = call.at, call.answered
    then = after.at if after is not None else answered
    if started is None or then is None or not math.isfinite(started) or not math.isfinite(then) or then < started:
        return None
    if answered is None or not started <= answered <= then:
        return min(IDLE, then - started)
    return min(IDLE, answered - started) + min(IDLE, then - answered)
