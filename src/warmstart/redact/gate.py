"""The gate: one pass over many texts finds which searches each of them needs; most texts need none.

Hyperscan is fast on long input, and Python calls are slow. So texts are joined before they are scanned, with an `EDGE`
before, between and behind them. It ends a pattern as the end of a text does. A match that takes two texts together only
means that the second is searched for nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from warmstart.redact.clues import NAME_CLUES
from warmstart.redact.context import FLAG, SETTING
from warmstart.redact.forms import CUT, RULE_SOURCES, STRICT
from warmstart.redact.matching import Prefilter
from warmstart.redact.opaque import CORE, HARMLESS, RUN_BYTES, RUN_CLASS, SHORTEST, find_runs
from warmstart.redact.scanner import PatternScanner, replace_anchors
from warmstart.redact.views import WORTH

FORMS, KEYS, CUTS, NAMES, FLAGS, READINGS = range(6)
# A pattern for each part: where it does not occur, the part's search finds nothing.
_CLUES = (
    (KEYS, "PRIVATE KEY|Static key"),
    (CUTS, CUT.source),
    *((NAMES, source) for source in NAME_CLUES),
    (FLAGS, f"{FLAG.source}|{SETTING.source}"),
    (READINGS, WORTH),
    *((FORMS, STRICT.get(index, source)) for index, source in enumerate(RULE_SOURCES)),
)
_PREFILTER = Prefilter(
    ["|".join(f"(?:{source})" for part, source in _CLUES if part == wanted) for wanted in range(READINGS + 1)]
)
EDGE = b"\x02"
_TO_EDGE = r"[^\x02]*\x02"  # ends every match at the end of its text, so that each text is reported once
_RUN = rf"{CORE}{RUN_CLASS}*[^{RUN_CLASS[1:]}"
_STEP = 128  # bytes in which the start of a run is first looked for


def _make_joined(source: str) -> str:
    """Return a clue for joined texts."""
    anchored = replace_anchors(source, EDGE)
    return anchored if r"\z" in source else f"(?:{anchored}){_TO_EDGE}"


class FoundParts(NamedTuple):
    """What may occur in a text: all that does, and seldom more."""

    parts: Collection[int]
    rules: Sequence[int] | None  # of the forms; None: any
    runs: Sequence[tuple[int, int]]  # tokens that may be opaque or encoded


NOTHING = FoundParts((), (), ())


class SearchGate:
    """Finds by Hyperscan what may occur in texts, by RE2 where or while that is not ready. `fast=False`: by RE2 only."""

    def __init__(self, *, fast: bool = True) -> None:
        # Runs apart from the others, because Hyperscan is slower with both in one database.
        self._parts = PatternScanner(
            [_make_joined(source) for _part, source in _CLUES],
            numbers=[part for part, _source in _CLUES],
        )
        self._rules = PatternScanner(RULE_SOURCES, once=True)
        self._runs = PatternScanner([_RUN])
        self._fast = fast
        self._ready = False  # whether Hyperscan can search

    def keep_in(self, folder: Path) -> None:
        """Keep the compiled patterns in a folder, so that the next process need not compile them."""
        for scanner in (self._parts, self._rules, self._runs):
            scanner.keep_in(folder)

    def prepare(self) -> bool:
        """Compile the patterns now; return whether Hyperscan is there."""
        return self._parts.prepare() and self._rules.prepare() and self._runs.prepare()

    def find(self, data: bytes) -> FoundParts:
        """Return what may occur in a flattened text."""
        if not (self._ready or self._is_ready(len(data))):
            return _find_by_re2(data)
        return self.find_many((data,)).get(0, NOTHING)

    def find_many(self, texts: Sequence[bytes]) -> dict[int, FoundParts]:
        """Return what may occur in flattened texts, by the numbers of those in which anything may."""
        if not (self._ready or self._is_ready(sum(map(len, texts)))):
            each = enumerate(map(_find_by_re2, texts))
            return {number: found for number, found in each if found.parts or found.runs}
        joined = b"%b%b%b" % (EDGE, EDGE.join(texts), EDGE)
        starts = list(accumulate((len(data) + 1 for data in texts), initial=1))
        parts: dict[int, set[int]] = {}
        for part, end in self._parts.scan(joined):
            parts.setdefault(bisect_right(starts, end - 1) - 1, set()).add(part)
        runs = _find_spans(joined, starts, self._runs.scan(joined))
        return {
            number: FoundParts(
                found := parts.get(number, ()),
                sorted(rule for rule, _end in self._rules.scan(texts[number])) if FORMS in found else (),
                runs.get(number, ()),
            )
            for number in sorted({*parts, *runs})
        }

    def _is_ready(self, size: int) -> bool:
        ready = (
            [scanner.is_ready(size) for scanner in (self._parts, self._rules, self._runs)] if self._fast else [False]
        )
        self._ready = all(ready)
        return self._ready


GATE = SearchGate()  # of the process: its patterns are compiled once


def _find_by_re2(data: bytes) -> FoundParts:
    return FoundParts(_PREFILTER.which(data), None, list(find_runs(data)))


def _find_spans(
    joined: bytes, starts: Sequence[int], matches: Iterable[tuple[int, int]]
) -> dict[int, list[tuple[int, int]]]:
    """Return the spans of the runs that end one byte before these matches do, by text.

    Texts are left out whose runs are all known to hold nothing.
    """
    spans: dict[int, list[tuple[int, int]]] = {}
    worth: set[int] = set()
    floor = 0
    for _pattern, end in matches:
        end -= 1
        start = _find_start(joined, floor, end)
        floor = end
        if end - start < SHORTEST:
            continue
        number = bisect_right(starts, start) - 1
        origin = starts[number]
        spans.setdefault(number, []).append((start - origin, end - origin))
        if joined[start:end] not in HARMLESS:
            worth.add(number)
    return {number: spans[number] for number in worth}


def _find_start(data: bytes, floor: int, end: int) -> int:
    """Return where the run begins that ends at `end`, not before `floor`."""
    step = _STEP
    while True:
        begin = max(floor, end - step)
        kept = len(data[begin:end].rstrip(RUN_BYTES))
        if kept or begin == floor:
            return begin + kept
        step *= 8
