"""Add up, divide and estimate tokens and costs. Pure arithmetic.

Unknown is not a number: an unknown figure adds nothing and stays unknown. Estimates are marked in `Usage.basis`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from functools import lru_cache
from itertools import accumulate

from msgspec.structs import replace

from warmstart.model import Spent, TokenBasis, Usage

TOKENS = ("input", "output", "cache_read", "cache_write", "reasoning")
FIGURES = (*TOKENS, "cost")
COUNTED = ("input", "output", "cache_read", "cache_write")  # together all tokens; reasoning is part of the output

CHARACTERS = 3.4  # per token; measured by bench/usage.py
_PARTIAL = 0.5  # a reported output below this share of what the text needs is a part of it
_STRENGTH: tuple[TokenBasis, ...] = ("reported", "completed", "estimated")
WINDOW = 200_000  # the largest context, in tokens, that an estimate assumes: agents shorten longer ones
DAY, _EPOCH = 86_400, date(1970, 1, 1).toordinal()

Figure = int | float | None


@lru_cache(maxsize=64)
def _name_day(number: int) -> str:
    try:
        return date.fromordinal(_EPOCH + number).isoformat()
    except (ValueError, OverflowError):
        return ""  # outside the calendar


def day_of(at: float | None) -> str:
    """Return the UTC day of a moment, like "2026-11-16"; "" if unknown."""
    return "" if at is None else _name_day(int(at // DAY))


def figures(usage: Usage) -> tuple[Figure, ...]:
    """Return the figures of a usage in the order of FIGURES."""
    return usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning, usage.cost


def count_tokens(usage: Usage) -> int | None:
    """Return all tokens together; None if none are known."""
    total = None
    for number in (usage.input, usage.output, usage.cache_read, usage.cache_write):
        if number is not None:
            total = number if total is None else total + number
    return total


def add_up(spent: Iterable[Spent]) -> Usage | None:
    """Return the sum of parts; None if there are none. The sum has the weakest basis of its parts."""
    parts = list(spent)
    if not parts:
        return None
    sums = [_sum(column) for column in zip(*(figures(part.usage) for part in parts), strict=True)]
    return make_usage(sums, find_weakest(part.usage.basis for part in parts))


def find_weakest(bases: Iterable[TokenBasis]) -> TokenBasis:
    """Return the weakest of several bases: the most that can be said of their sum."""
    return max(bases, key=_STRENGTH.index)


def complete_output(usage: Usage, written: int) -> Usage:
    """Complete the output of an answer that reports far less than the `written` characters of its own text need.

    Agents record the usage of an answer while it still streams, so the count may stop after the first few tokens.
    """
    if usage.output is None or usage.output * CHARACTERS >= written * _PARTIAL:
        return usage
    return replace(usage, output=_to_tokens(written), basis="completed")


def make_usage(values: Iterable[Figure], basis: TokenBasis = "reported") -> Usage:
    """Make a usage from figures in the order of FIGURES."""
    return Usage(*values, basis)  # type: ignore[arg-type,call-arg]


def _sum(values: Iterable[Figure]) -> Figure:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


class Tally:
    """Adds up the usage of answers by model and day."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, str], list[Figure]] = {}
        self._bases: dict[tuple[str, str], TokenBasis] = {}

    def take(self, usage: Usage, model: str, day: str) -> None:
        """Add the usage of one answer, in place: it is called for every answer of every session."""
        key = (model, day)
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = [None] * len(FIGURES)
        for place, value in enumerate(figures(usage)):
            if value is not None:
                known = cell[place]
                cell[place] = value if known is None else known + value
        if usage.basis != "reported":
            self._bases[key] = find_weakest((usage.basis, self._bases.get(key, "reported")))

    def spent(self) -> tuple[Spent, ...]:
        """Return one part per model and day, sorted. Differences of odd totals may be negative; sums are clipped at 0."""
        return tuple(
            Spent(make_usage(map(_floor, cell), self._bases.get(key, "reported")), *key)
            for key, cell in sorted(self._cells.items())
        )


def _floor(value: Figure) -> Figure:
    return None if value is None else max(0, value)


class TokenMeter:
    """Estimates tokens from characters while a session is read.

    Each turn sends the whole conversation so far as input and receives the agent's text as output. The estimate lacks what
    no transcript holds: the system prompt, the tools' descriptions, hidden reasoning.
    """

    def __init__(self) -> None:
        self._days: dict[str, list[float]] = {}  # day -> characters sent, characters answered
        self._today = ""
        self._context = 0
        self._listening = True

    def hear(self, characters: int) -> None:
        """Count text sent to the agent."""
        self._context += characters
        self._listening = True

    def say(self, characters: int, at: float | None) -> None:
        """Count text written by the agent."""
        self._today = day_of(at) or self._today
        cell = self._days.setdefault(self._today, [0.0, 0.0])
        if self._listening:
            self._listening = False
            cell[0] += min(self._context, WINDOW * CHARACTERS)
        cell[1] += characters
        self._context += characters

    def spent(self) -> tuple[Spent, ...]:
        """Return the estimate by day; empty if the agent wrote nothing."""
        return tuple(
            Spent(Usage(input=_to_tokens(sent), output=_to_tokens(written), basis="estimated"), day=day)
            for day, (sent, written) in sorted(self._days.items())
        )


def _to_tokens(characters: float) -> int:
    return round(characters / CHARACTERS)


def settle(answers: Sequence[Spent], total: Usage | None, estimate: Sequence[Spent]) -> tuple[Spent, ...]:
    """Return what a session spent: as reported per answer, as reported in total, or as estimated from its text.

    A total overrides the sum of the answers, figure by figure, and is divided among them in proportion. Usage reported
    without a day is divided among the days of the estimate in the same way.
    """
    parts = [piece for part in answers for piece in _spread(part, estimate)]
    if total is None:
        return tuple(parts or estimate)
    if parts or count_tokens(total) is None:
        return share(total, parts or estimate or [Spent(Usage())])
    weights = [_weigh(part) for part in estimate] or [1]
    return _deal(total, [replace(part, usage=Usage()) for part in estimate] or [Spent(Usage())], weights)


def share(total: Usage, parts: Sequence[Spent]) -> tuple[Spent, ...]:
    """Replace each known figure of the total in the parts by their shares of it, so that their sums are the total's."""
    columns: list[Sequence[Figure]] = []
    for name, whole in zip(FIGURES, figures(total), strict=True):
        own = [getattr(part.usage, name) for part in parts]
        if whole is None:
            columns.append(own)
        else:
            weights = [value or 0 for value in own]
            columns.append(divide(whole, weights if any(weights) else [_weigh(part) for part in parts]))
    basis = None if count_tokens(total) is None else total.basis
    return tuple(
        replace(part, usage=make_usage(values, basis or part.usage.basis))
        for part, values in zip(parts, zip(*columns, strict=True), strict=True)
    )


def divide(whole: int | float, weights: Sequence[int | float]) -> list[int | float]:
    """Divide a whole in proportion to the weights; the parts add up to it. With all weights 0 the first gets everything."""
    every = sum(weights)
    if not every:
        return [whole, *([0] * (len(weights) - 1))]
    ends = [_part(whole, upto, every) for upto in accumulate(weights)]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def _part(whole: int | float, upto: int | float, every: int | float) -> int | float:
    if upto == every:
        return whole
    return whole * int(upto) // int(every) if isinstance(whole, int) else whole * upto / every


def _deal(total: Usage, parts: Sequence[Spent], weights: Sequence[int]) -> tuple[Spent, ...]:
    """Give each part its share of the total, by the weights."""
    columns = [[None] * len(parts) if whole is None else divide(whole, weights) for whole in figures(total)]
    return tuple(
        replace(part, usage=make_usage(values, total.basis))
        for part, values in zip(parts, zip(*columns, strict=True), strict=True)
    )


def _spread(part: Spent, estimate: Sequence[Spent]) -> tuple[Spent, ...]:
    """Divide a part without a day among the days of the estimate."""
    if part.day or not estimate:
        return (part,)
    days = [replace(part, day=piece.day) for piece in estimate]
    return _deal(part.usage, days, [_weigh(piece) for piece in estimate])


def _weigh(part: Spent) -> int:
    return count_tokens(part.usage) or 0
