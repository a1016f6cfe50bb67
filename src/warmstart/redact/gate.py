"""The gate: one pass over a text finds which searches are worth running; most texts need none of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from warmstart.redact.context import FLAG, NAMED, SETTING
from warmstart.redact.forms import CUT, RULE_SOURCES
from warmstart.redact.matching import Prefilter
from warmstart.redact.opaque import CORE, RUN_BYTES, RUN_CLASS, SHORTEST, find_runs
from warmstart.redact.scanner import PatternScanner
from warmstart.redact.views import WORTH

FORMS, KEYS, CUTS, NAMES, FLAGS, READINGS = range(6)
_SOURCES = [
    "|".join(f"(?:{source})" for source in RULE_SOURCES),
    "PRIVATE KEY|Static key",
    CUT.source,
    NAMED.source,
    f"{FLAG.source}|{SETTING.source}",
    WORTH,
]
_PREFILTER = Prefilter(_SOURCES)
_RULES = len(RULE_SOURCES)
_STEP = 128  # bytes in which the start of a run is first looked for


class FoundParts(NamedTuple):
    """What may occur in a text: all that does, and seldom more."""

    parts: Collection[int]
    rules: Sequence[int] | None  # of the forms; None: any
    runs: Sequence[tuple[int, int]]  # tokens that may be opaque or encoded


_NOTHING = FoundParts((), (), ())


class SearchGate:
    """Finds by Hyperscan what may occur in a text, by RE2 where or while that is not ready. `fast=False`: by RE2 only."""

    def __init__(self, *, fast: bool = True) -> None:
        # Runs apart from the others, because Hyperscan is slower with both in one database.
        self._parts = PatternScanner([*RULE_SOURCES, *_SOURCES[1:]], once=True)
        self._runs = PatternScanner([rf"{CORE}{RUN_CLASS}*(?:[^{RUN_CLASS[1:]}|\z)"], once=False)
        self._fast = fast

    def keep_in(self, folder: Path) -> None:
        """Keep the compiled patterns in a folder, so that the next process need not compile them."""
        self._parts.keep_in(folder)
        self._runs.keep_in(folder)

    def prepare(self) -> bool:
        """Compile the patterns now; return whether Hyperscan is there."""
        return self._parts.prepare() and self._runs.prepare()

    def find(self, data: bytes) -> FoundParts:
        """Return what may occur in a flattened text."""
        size = len(data)
        if not (self._fast and self._parts.is_ready(size) and self._runs.is_ready(size)):
            return FoundParts(_PREFILTER.which(data), None, list(find_runs(data)))
        matches = self._parts.scan(data)
        ends = self._runs.scan(data)
        if not matches and not ends:
            return _NOTHING
        runs = _find_spans(data, (end for _index, end in ends)) if ends else ()
        if not matches:
            return FoundParts((), (), runs)
        indexes = {index for index, _end in matches}
        rules = sorted(index for index in indexes if index < _RULES)
        parts = [index - _RULES + 1 for index in indexes if index >= _RULES]
        return FoundParts([FORMS, *parts] if rules else parts, rules, runs)


GATE = SearchGate()  # of the process: its patterns are compiled once


def _find_spans(data: bytes, ends: Iterable[int]) -> list[tuple[int, int]]:
    """Return the spans of the runs that end at or one byte before these offsets."""
    spans = []
    floor = 0
    for end in ends:
        end -= data[end - 1] not in RUN_BYTES
        start = _find_start(data, floor, end)
        if end - start >= SHORTEST:
            spans.append((start, end))
        floor = end
    return spans


def _find_start(data: bytes, floor: int, end: int) -> int:
    """Return where the run begins that ends at `end`, not before `floor`."""
    step = _STEP
    while True:
        begin = max(floor, end - step)
        kept = len(data[begin:end].rstrip(RUN_BYTES))
        if kept or begin == floor:
            return begin + kept
        step *= 8
