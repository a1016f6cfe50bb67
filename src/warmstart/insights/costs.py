"""What errors cost: the turns from a failing call to the call that fixed it, in the session's own tokens and minutes.

Costs are estimates. Tokens are the session's mean per turn. Time is read from timestamps, with each wait capped, because a
person may have gone to lunch. An error that nothing fixed costs its own turn only, and other work done in between is counted
too: transcripts do not separate it. Sums are whole thousandths, so that they are the same in whatever order they are added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from msgspec import Struct, field

from warmstart.insights.types import Cost, TotalCost
from warmstart.model import PastCall, PastSession
from warmstart.usage.amounts import count_tokens

PARTS = 1_000  # of a token or second: the unit of sums
_MOST = 1 << 62  # sums stay here, so that they fit in 64 bits, whatever a transcript claims
IDLE = 300.0  # seconds: the most that one run of a tool, or one wait between calls, counts


class FailureSpan(NamedTuple):
    """Calls from a failure up to the call that fixed it."""

    start: int  # index of the failing call
    end: int | None  # index of the call that fixed it; None: unfixed


class CostMeter:
    """The tokens and seconds of one session's turns and calls."""

    def __init__(self, session: PastSession) -> None:
        self.calls = session.calls
        self.estimated = session.usage is not None and session.usage.basis != "reported"
        self.tokens = count_tokens(session.usage) if session.usage is not None else None
        self.turns = session.turns
        self.per_turn = self.tokens / self.turns if self.tokens is not None and self.turns else None
        self.gaps = [_measure_gap(call, after) for call, after in zip_longest(session.calls, session.calls[1:]) if call]

    def find_turns(self, span: FailureSpan) -> range | None:
        """Return the lost turns: from the failing one to before the fix, which was needed anyway. None if unknown."""
        first = self.calls[span.start].turn
        last = self.calls[span.end].turn if span.end is not None else None
        if first is None or (span.end is not None and last is None):
            return None
        return range(first, first + 1 if last is None else max(last, first + 1))

    def find_steps(self, span: FailureSpan) -> range | None:
        """Return the calls whose time was lost. None if a timestamp is missing."""
        steps = range(span.start, span.start + 1 if span.end is None else span.end)
        return None if any(self.gaps[step] is None for step in steps) else steps


class CostTally(Struct, omit_defaults=True):
    """Adds up costs, session by session."""

    errors: int = 0
    turns: int = 0
    turns_unknown: int = 0
    tokens: int = 0  # thousandths
    tokens_estimated: int = 0  # thousandths
    tokens_unknown: int = 0
    seconds: int = 0  # thousandths
    seconds_unknown: int = 0

    def add(self, meter: CostMeter, spans: Sequence[FailureSpan]) -> None:
        """Add the failures of one session. Turns and time that they share count once."""
        turns = [meter.find_turns(span) for span in spans]
        lost = sum(map(len, _merge(turns)))
        unknown = turns.count(None)
        self.errors += len(spans)
        self.turns = _add(self.turns, lost)
        self.turns_unknown += unknown
        if meter.per_turn is None:
            self.tokens_unknown += len(spans)
        else:
            tokens = _count_parts(lost * meter.per_turn)
            self.tokens = _add(self.tokens, tokens)
            self.tokens_estimated = _add(self.tokens_estimated, tokens * meter.estimated)
            self.tokens_unknown += unknown
        steps = [meter.find_steps(span) for span in spans]
        seconds = sum(meter.gaps[step] or 0.0 for merged in _merge(steps) for step in merged)
        self.seconds = _add(self.seconds, _count_parts(seconds))
        self.seconds_unknown += steps.count(None)

    def merge(self, other: CostTally) -> None:
        """Add the costs of other sessions."""
        for name in self.__struct_fields__:
            setattr(self, name, _add(getattr(self, name), getattr(other, name)))

    def freeze(self) -> Cost:
        return Cost(
            errors=self.errors,
            turns=self.turns if self.turns_unknown < self.errors else None,
            turns_unknown=self.turns_unknown,
            tokens=round(self.tokens / PARTS) if self.tokens_unknown < self.errors else None,
            tokens_estimated=round(self.tokens_estimated / PARTS),
            tokens_unknown=self.tokens_unknown,
            seconds=round(self.seconds / PARTS, 1) if self.seconds_unknown < self.errors else None,
            seconds_unknown=self.seconds_unknown,
        )


class TotalTally(Struct, omit_defaults=True):
    """Adds up the cost of all errors, and of the sessions as a whole."""

    lost: CostTally = field(default_factory=CostTally)
    turns: int = 0
    tokens: int = 0
    seconds: int = 0  # thousandths

    def add(self, meter: CostMeter, spans: Sequence[FailureSpan]) -> None:
        self.lost.add(meter, spans)
        if any(call.turn is not None for call in meter.calls):
            self.turns = _add(self.turns, meter.turns or 0)
        if meter.per_turn is not None:
            self.tokens = _add(self.tokens, meter.tokens or 0)
        self.seconds = _add(self.seconds, _count_parts(sum(gap for gap in meter.gaps if gap is not None)))

    def merge(self, other: TotalTally) -> None:
        """Add the costs of other sessions."""
        self.lost.merge(other.lost)
        self.turns = _add(self.turns, other.turns)
        self.tokens = _add(self.tokens, other.tokens)
        self.seconds = _add(self.seconds, other.seconds)

    def freeze(self) -> TotalCost:
        cost = self.lost.freeze()
        return TotalCost(
            cost=cost,
            turns_share=_share(cost.turns, self.turns),
            tokens_share=_share(cost.tokens, self.tokens),
            seconds_share=_share(cost.seconds, self.seconds / PARTS),
        )


def _add(one: int, other: int) -> int:
    return min(one + other, _MOST)


def _count_parts(amount: float) -> int:
    return round(amount * PARTS) if amount < _MOST / PARTS else _MOST


def _merge(ranges: Iterable[range | None]) -> list[range]:
    """Return ranges with the same numbers that do not overlap."""
    merged: list[range] = []
    for part in sorted((part for part in ranges if part), key=lambda part: (part.start, part.stop)):
        if merged and part.start <= merged[-1].stop:
            merged[-1] = range(merged[-1].start, max(merged[-1].stop, part.stop))
        else:
            merged.append(part)
    return merged


def _share(part: float | None, whole: float) -> float | None:
    return min(1.0, part / whole) if part is not None and whole > 0 else None


def _measure_gap(call: PastCall, after: PastCall | None) -> float | None:
    """Return the seconds from a call to the next: its run and the wait after it, each capped. None if unknown."""
    started, answered = call.at, call.answered
    then = after.at if after is not None else answered
    if started is None or then is None or not math.isfinite(started) or not math.isfinite(then) or then < started:
        return None
    if answered is None or not started <= answered <= then:
        return min(IDLE, then - started)
    return min(IDLE, answered - started) + min(IDLE, then - answered)
