"""The gate: one pass over a text finds which searches are worth running; most texts need none of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from warmstart.redact.clues import NAME_CLUES
from warmstart.redact.context import FLAG, SETTING
from warmstart.redact.forms import CUT, RULE_SOURCES, STRICT
from warmstart.redact.matching import Prefilter
from warmstart.redact.opaque import CORE, RUN_BYTES, RUN_CLASS, SHORTEST, find_runs
from warmstart.redact.scanner import PatternScanner
from warmstart.redact.views import WORTH

FORMS, KEYS, CUTS, NAMES, FLAGS, READINGS = range(6)
# A pattern for each part: where it does not occur, the part's search finds nothing.
_CLUES = (
    (KEYS, "PRIVATE KEY|Static key"),
    (CUTS, CUT.source),
    *((NAMES, source) for source in NAME_CLUES),
    (FLAGS, f"{FLAG.source}|{SETTING.source}"),
    (READINGS, WORTH),
)
_PART_OF = [part for part, _source in _CLUES]
_SOURCES = [source for _part, source in _CLUES]
_FORM_CLUES = [STRICT.get(index, source) for index, source in enumerate(RULE_SOURCES)]
_PREFILTER = Prefilter([*_SOURCES, "|".join(f"(?:{source})" for source in _FORM_CLUES)])
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
        self._parts = PatternScanner([*_SOURCES, *_FORM_CLUES], once=True)
        self._rules = PatternScanner(RULE_SOURCES, once=True)
        self._runs = PatternScanner([rf"{CORE}{RUN_CLASS}*(?:[^{RUN_CLASS[1:]}|\z)"], once=False)
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
            found = _PREFILTER.which(data)
            return FoundParts(_name_parts(found) if found else (), None, list(find_runs(data)))
        matches = self._parts.scan(data)
        ends = self._runs.scan(data)
        if not matches and not ends:
            return _NOTHING
        runs = _find_spans(data, ends) if ends else ()
        if not matches:
            return FoundParts((), (), runs)
        parts = _name_parts(index for index, _end in matches)
        rules = sorted(index for index, _end in self._rules.scan(data)) if FORMS in parts else ()
        return FoundParts(parts, rules, runs)

    def _is_ready(self, size: int) -> bool:
        ready = (
            [scanner.is_ready(size) for scanner in (self._parts, self._rules, self._runs)] if self._fast else [False]
        )
        self._ready = all(ready)
        return self._ready


GATE = SearchGate()  # of the process: its patterns are compiled once


def _name_parts(clues: Iterable[int]) -> set[int]:
    """Return the parts to which these clues belong."""
    return {_PART_OF[index] if index < len(_PART_OF) else FORMS for index in clues}


def _find_spans(data: bytes, ends: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans of the runs that end at or one byte before these offsets."""
    spans = []
    floor = 0
    for _index, end in ends:
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
