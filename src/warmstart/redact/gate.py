"""The gate: one pass over many texts finds which searches each of them needs; most texts need none.

Hyperscan is fast on long input, and Python calls are slow. So texts are joined before they are scanned, with an `EDGE`
before, between and behind them. It ends a pattern as the end of a text does. A match that takes two texts together only
means that the second is searched for nothing. A single text has databases of its own: for short input each scan costs
more than what it scans.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from warmstart.redact.clues import NAME_CLUES
from warmstart.redact.context import FLAG, SETTING
from warmstart.redact.forms import CUT, RULE_SOURCES, STRICT
from warmstart.redact.matching import Prefilter
from warmstart.redact.opaque import (
    CORES,
    HARMLESS,
    ODD,
    QUICK,
    RUN_BYTES,
    RUN_CLASS,
    SHORTEST,
    find_runs,
    remember_harmless,
)
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
_RUNS = [rf"{core}{RUN_CLASS}*[^{RUN_CLASS[1:]}" for core in CORES]
_RUNS_OF_ONE = rf"(?:{'|'.join(CORES)}){RUN_CLASS}*(?:[^{RUN_CLASS[1:]}|\z)"
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
        # Several databases: Hyperscan has its fastest automaton only for one small pattern by itself.
        announced = [(part, _make_joined(source)) for part, source in _CLUES if part != READINGS]
        self._parts = PatternScanner([source for _, source in announced], numbers=[part for part, _ in announced])
        self._readings = PatternScanner([_make_joined(WORTH)], numbers=[READINGS])
        self._rules = PatternScanner(RULE_SOURCES, once=True)
        self._runs = [PatternScanner([source]) for source in _RUNS]
        self._odd = PatternScanner([_make_joined(ODD)])
        self._of_many = (self._parts, self._readings, self._rules, *self._runs, self._odd)
        # Two for a single text: calling a scan costs more than a short text does.
        sources = [source for _, source in _CLUES]
        self._parts_of_one = PatternScanner(sources, numbers=[part for part, _ in _CLUES], once=True)
        self._runs_of_one = PatternScanner([_RUNS_OF_ONE])
        self._of_one = (self._parts_of_one, self._runs_of_one, self._rules)
        self._fast = fast
        self._searched = 0  # bytes
        self._many_ready = self._one_ready = False  # whether Hyperscan can search

    def keep_in(self, folder: Path) -> None:
        """Keep the compiled patterns in a folder, so that the next process need not compile them."""
        for scanner in (*self._of_many, *self._of_one):
            scanner.keep_in(folder)

    def prepare(self) -> bool:
        """Compile the patterns now; return whether Hyperscan is there."""
        return all(scanner.prepare() for scanner in (*self._of_many, *self._of_one))

    def find(self, data: bytes) -> FoundParts:
        """Return what may occur in a flattened text."""
        if not self._one_ready:
            self._one_ready = self._is_ready(self._of_one, len(data))
            if not self._one_ready:
                return _find_by_re2(data)
        matches = self._parts_of_one.scan(data)
        ends = self._runs_of_one.scan(data)
        if not matches and not ends:
            return NOTHING
        parts = {part for part, _end in matches}
        rules = sorted(rule for rule, _end in self._rules.scan(data)) if FORMS in parts else ()
        return FoundParts(parts, rules, _find_spans_of_one(data, ends))

    def find_many(self, texts: Sequence[bytes]) -> dict[int, FoundParts]:
        """Return what may occur in flattened texts, by the numbers of those in which anything may."""
        if not self._many_ready:
            self._many_ready = self._is_ready(self._of_many, sum(map(len, texts)))
            if not self._many_ready:
                each = enumerate(map(_find_by_re2, texts))
                return {number: found for number, found in each if found.parts or found.runs}
        joined = b"%b%b%b" % (EDGE, EDGE.join(texts), EDGE)
        starts = list(accumulate((len(data) + 1 for data in texts), initial=1))
        parts: dict[int, set[int]] = {}
        for part, end in self._parts.scan(joined) + self._readings.scan(joined):
            parts.setdefault(bisect_right(starts, end - 1) - 1, set()).add(part)
        runs = self._find_spans(joined, starts)
        return {
            number: FoundParts(
                found := parts.get(number, ()),
                sorted(rule for rule, _end in self._rules.scan(texts[number])) if FORMS in found else (),
                runs.get(number, ()),
            )
            for number in sorted({*parts, *runs})
        }

    def _find_spans(self, joined: bytes, starts: Sequence[int]) -> dict[int, list[tuple[int, int]]]:
        """Return the spans of the runs of each text, unless all of them are known or seen to hold nothing."""
        spans: list[tuple[int, int]] = []
        unknown: dict[bytes, list[int]] = {}  # run -> its starts
        floor = 0
        for after in sorted({after for scanner in self._runs for _number, after in scanner.scan(joined)}):
            end = after - 1
            start = _find_start(joined, floor, end)
            floor = end
            if end - start >= SHORTEST:
                spans.append((start, end))
                run = joined[start:end]
                if run not in HARMLESS:
                    unknown.setdefault(run, []).append(start)
        self._sift(unknown)
        numbers = {bisect_right(starts, start) - 1 for places in unknown.values() for start in places}
        return {number: _cut_out(spans, starts[number], starts[number + 1]) for number in numbers}

    def _sift(self, unknown: dict[bytes, list[int]]) -> None:
        """Leave out runs of letters that are not odd: they hold nothing."""
        runs = [run for run in unknown if len(run) <= QUICK and run.translate(None, b"./").isalpha()]
        if not runs:
            return
        starts = list(accumulate((len(run) + 1 for run in runs), initial=1))
        odd = {bisect_right(starts, end - 1) - 1 for _, end in self._odd.scan(EDGE + EDGE.join(runs) + EDGE)}
        for number, run in enumerate(runs):
            if number not in odd and remember_harmless(run):
                del unknown[run]

    def _is_ready(self, scanners: Iterable[PatternScanner], size: int) -> bool:
        self._searched += size
        return self._fast and all(scanner.is_ready(self._searched) for scanner in scanners)


GATE = SearchGate()  # of the process: its patterns are compiled once


def _find_by_re2(data: bytes) -> FoundParts:
    return FoundParts(_PREFILTER.which(data), None, list(find_runs(data)))


def _find_spans_of_one(data: bytes, ends: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans of the runs that end at or one byte before these offsets."""
    spans = []
    floor = 0
    for _number, end in ends:
        end -= data[end - 1] not in RUN_BYTES
        start = _find_start(data, floor, end)
        if end - start >= SHORTEST:
            spans.append((start, end))
        floor = end
    return spans


def _cut_out(spans: Sequence[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """Return the spans between two offsets, counted from the first."""
    inside = spans[bisect_left(spans, (start, start)) : bisect_left(spans, (end, end))]
    return [(first - start, last - start) for first, last in inside]


def _find_start(data: bytes, floor: int, end: int) -> int:
    """Return where the run begins that ends at `end`, not before `floor`."""
    step = _STEP
    while True:
        begin = end - step if end - step > floor else floor
        kept = len(data[begin:end].rstrip(RUN_BYTES))
        if kept or begin == floor:
            return begin + kept
        step *= 8
