"""The error rate that earlier sessions of the same kind let expect, which makes comparisons sharper. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def expected_rate(
    history: Iterable[tuple[float, str | None, str | None, str, int, int]],
    wanted: Sequence[tuple[float, tuple[str | None, ...]]],
) -> list[float | None]:
    """Return for each `(time, (project, model, category))` the error rate of sessions that had ended before that time.

    It is the mean of the rates of its project, its model and its category, each shrunk towards the overall rate.
    """
    sums: dict[tuple[int, str | None], list[int]] = {}
    order = sorted(range(len(wanted)), key=lambda place: wanted[place][0])
    expected: list[float | None] = [None] * len(wanted)
    past = iter(history)
    coming = next(past, None)
    for place in order:
        at, keys = wanted[place]
        while coming is not None and coming[0] <= at:
            for slot, key in ((-1, None), *enumerate(coming[1:4])):
                both = sums.setdefault((slot, key), [0, 0])
                both[0] += coming[4]
                both[1] += coming[5]
            coming = next(past, None)
        errors, judged = sums.get((-1, None), (0, 0))
        if judged:
            whole = errors / judged
            rates = [_shrink_rate(sums.get((slot, key), (0, 0)), whole) for slot, key in enumerate(keys) if key]
            expected[place] = sum(rates) / len(rates) if rates else whole
    return expected


def _shrink_rate(counts: Sequence[int], whole: float, weight: float = 50.0) -> float:
    return (counts[0] + weight * whole) / (counts[1] + weight)
