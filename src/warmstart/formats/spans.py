"""A span of a trace, and spans in the order of their end."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_WINDOW = 16 << 20  # bytes of spans that wait to be put in order


class TraceSpan(NamedTuple):
    """A span of any shape."""

    id: str
    parent: str
    trace: str
    name: str
    scope: str  # the library that made it
    start: float | None
    end: float | None
    attributes: dict[str, Any]
    resource: dict[str, Any]
    failed: bool | None  # None: the status is unset
    message: str  # of the status, or of the exception


def order_spans(spans: Iterator[tuple[TraceSpan, int]], notice: Callable[[TraceSpan], None]) -> Iterator[TraceSpan]:
    """Yield spans in the order of their end, as far as 16 MB of them show it. Each comes with its size in bytes.

    `notice` sees each span as soon as it is read, so before the spans that end earlier.
    """
    waiting: list[tuple[float, int, int, TraceSpan]] = []
    held, last = 0, 0.0
    for number, (span, size) in enumerate(spans):
        notice(span)
        last = span.end if span.end is not None else last
        heapq.heappush(waiting, (last, number, size, span))
        held += size
        while held > _WINDOW:
            earliest = heapq.heappop(waiting)
            held -= earliest[2]
            yield earliest[3]
    while waiting:
        yield heapq.heappop(waiting)[3]
