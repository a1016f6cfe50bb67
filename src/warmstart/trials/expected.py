"""The error rate that earlier sessions of the same kind let expect, which makes comparisons sharper. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def expected_rate(
    history: Iterable[tuple[float, *tuple[str | None, ...], int, int]],
    wanted: Sequence[tuple[float, tuple[str | None, ...]]],
) -> list[float | None]:
    """Return for each `(time, (project, model, category, person))` the error rate of sessions that ended before that time.

    It is the mean of the rates of its project, its model, its category, its person and its person in that project, each
    shrunk towards the overall rate. `history` has the time, the same keys, errors and judged calls of each session.
    """
    sums: dict[tuple[int, str | None], list[int]] = {}
    order = sorted(range(len(wanted)), key=lambda place: wanted[place][0])
    expected: list[float | None] = [None] * len(wanted)
    past = iter(history)
    coming = next(past, None)
    for place in order:
        at, keys = wanted[place]
        while coming is not None and coming[0] <= at:
            _at, *own, errors, judged = coming
            for slot, key in ((-1, None), *_list_slots(own)):
                both = sums.setdefault((slot, key), [0, 0])
                both[0] += errors
                both[1] += judged
            coming = next(past, None)
        total, number = sums.get((-1, None), (0, 0))
        if number:
            whole = total / number
            rates = [_shrink_rate(sums.get((slot, key), (0, 0)), whole) for slot, key in _list_slots(keys) if key]
            expected[place] = sum(rates) / len(rates) if rates else whole
    return expected


def _list_slots(keys: Sequence[str | None]) -> Iterator[tuple[int, str | None]]:
    """Yield the keys by their place, and behind them the person within the project."""
    yield from enumerate(keys)
    if len(keys) > 3 and keys[0] and keys[3]:
        yield len(keys), f"{keys[0]}\0{keys[3]}"


def _shrink_rate(counts: Sequence[int], whole: float, weight: float = 50.0) -> float:
    return (counts[0] + weight * whole) / (counts[1] + weight)
