"""Tokens and costs: adding them up, dividing them, and guessing them where nobody counted. Pure arithmetic.

Unknown is no number: what is not told adds nothing and stays not told. Estimates say so in `Usage.basis`.
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

CHARACTERS = 3.4  # of a token; measured by bench/usage.py
WINDOW = 200_000  # tokens of context that an estimate assumes at most: agents shorten what grows beyond
DAY, _EPOCH = 86_400, date(1970, 1, 1).toordinal()

Figure = int | float | None


@lru_cache(maxsize=64)
def _name_day(number: int) -> str:
    try:
        return date.fromordinal(_EPOCH + number).isoformat()
    except (ValueError, OverflowError):
        return ""  # no day that a calendar has


def day_of(at: float | None) -> str:
    """The UTC day of a moment, "2026-11-16"; "" where there is none."""
    return "" if at is None else _name_day(int(at // DAY))


def figures(usage: Usage) -> tuple[Figure, ...]:
    """In the order of FIGURES."""
    return usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning, usage.cost


def count_tokens(usage: Usage) -> int | None:
    """All tokens together; None where none are known."""
    known = [n for n in (usage.input, usage.output, usage.cache_read, usage.cache_write) if n is not None]
    return sum(known) if known else None


def add_up(spent: Iterable[Spent]) -> Usage | None:
    """The sum of parts; None of none. One estimated part makes the whole estimated."""
    parts = list(spent)
    if not parts:
        return None
    sums = [_sum(column) for column in zip(*(figures(part.usage) for part in parts), strict=True)]
    estimated = any(part.usage.basis == "estimated" for part in parts)
    return make_usage(sums, "estimated" if estimated else "reported")


def make_usage(values: Iterable[Figure], basis: TokenBasis = "reported") -> Usage:
    """From figures in the order of FIGURES."""
    return Usage(*values, basis)  # type: ignore[arg-type,call-arg]


def _sum(values: Iterable[Figure]) -> Figure:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


class Tally:
    """Adds up what is told answer by answer, by model and day."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, str], list[Figure]] = {}
        self._guessed: set[tuple[str, str]] = set()

    def take(self, usage: Usage, model: str, day: str) -> None:
        """Called for every answer of every session, so it adds up in place."""
        key = (model, day)
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = [None] * len(FIGURES)
        for place, value in enumerate(figures(usage)):
            if value is not None:
                known = cell[place]
                cell[place] = value if known is None else known + value
        if usage.basis == "estimated":
            self._guessed.add(key)

    def spent(self) -> tuple[Spent, ...]:
        """One part a model and day, in their order. Differences of odd totals may be negative: no sum is."""
        return tuple(
            Spent(make_usage(map(_floor, cell), "estimated" if key in self._guessed else "reported"), *key)
            for key, cell in sorted(self._cells.items())
        )


def _floor(value: Figure) -> Figure:
    return None if value is None else max(0, value)


class TokenMeter:
    """Guesses tokens from characters while a session is read.

    Each turn sends everything said so far as input and gets what the agent then says as output. What no transcript
    holds (the system prompt, the tools' descriptions, hidden reasoning) is missing from the guess.
    """

    def __init__(self) -> None:
        self._days: dict[str, list[float]] = {}  # day -> characters sent, characters answered
        self._today = ""
        self._context = 0
        self._listening = True

    def hear(self, characters: int) -> None:
        """Something was said to the agent."""
        self._context += characters
        self._listening = True

    def say(self, characters: int, at: float | None) -> None:
        """The agent said something."""
        self._today = day_of(at) or self._today
        cell = self._days.setdefault(self._today, [0.0, 0.0])
        if self._listening:
            self._listening = False
            cell[0] += min(self._context, WINDOW * CHARACTERS)
        cell[1] += characters
        self._context += characters

    def spent(self) -> tuple[Spent, ...]:
        """The guess by day; nothing where the agent never spoke."""
        return tuple(
            Spent(Usage(input=_tokens(sent), output=_tokens(said), basis="estimated"), day=day)
            for day, (sent, said) in sorted(self._days.items())
        )


def _tokens(characters: float) -> int:
    return round(characters / CHARACTERS)


def settle(told: Sequence[Spent], total: Usage | None, guess: Sequence[Spent]) -> tuple[Spent, ...]:
    """What a session spent: told answer by answer, told in all, or guessed from its text, in this order of trust.

    A total wins over the sum of the answers it is told beside, figure by figure, and is put down to them as far as they
    stand to each other. What is told without a day is put down to the days of the guess in the same way.
    """
    parts = [piece for part in told for piece in _spread(part, guess)]
    if total is None:
        return tuple(parts or guess)
    if parts or count_tokens(total) is None:
        return share(total, parts or guess or [Spent(Usage())])
    weights = [_weigh(part) for part in guess] or [1]
    return _deal(total, [replace(part, usage=Usage()) for part in guess] or [Spent(Usage())], weights)


def share(total: Usage, parts: Sequence[Spent]) -> tuple[Spent, ...]:
    """The parts, with each figure that a total tells replaced by their share of it. The sums are the total's."""
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
    """A whole in parts that stand to each other as the weights do and add up to it; without weights all in the first."""
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
    columns = [[None] * len(parts) if whole is None else divide(whole, weights) for whole in figures(total)]
    return tuple(
        replace(part, usage=make_usage(values, total.basis))
        for part, values in zip(parts, zip(*columns, strict=True), strict=True)
    )


def _spread(part: Spent, guess: Sequence[Spent]) -> tuple[Spent, ...]:
    if part.day or not guess:
        return (part,)
    return _deal(part.usage, [replace(part, day=piece.day) for piece in guess], [_weigh(piece) for piece in guess])


def _weigh(part: Spent) -> int:
    return count_tokens(part.usage) or 0
