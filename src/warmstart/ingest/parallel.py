"""Read places in several processes, and take what came of them in the order of the places, as one process would."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from warmstart.engines import Engine, FailedUnit
from warmstart.ingest.place_reader import FoundPlace, PlaceReader, ReadPart
from warmstart.ingest.units import (
    IngestUnit,
    IngestUnitResult,
    NumberedPart,
    NumberedPlace,
    ReaderSetup,
    read_parts,
    read_unit,
)
from warmstart.model import Problem
from warmstart.ports import Progress

UNIT_BYTES, UNIT_FILES = 1_000_000, 50  # of transcripts in one unit

_FOLDER, _ABANDONED = "reading-", 24 * 3600.0  # of results; seconds
_Done = IngestUnitResult | FailedUnit[IngestUnit]


class Workers:
    """Reads places on an engine, and closes it."""

    def __init__(self, engine: Engine, setup: ReaderSetup) -> None:
        self._engine = engine
        self._setup = setup

    def read(self, reader: PlaceReader, places: deque[FoundPlace], progress: Progress) -> Iterator[ReadPart]:
        """Yield what came of the places, in their order. `reader` finds out which of them have changed."""
        with _make_folder(self._setup.home) as folder:
            try:
                yield from _ParallelRun(self._engine, self._setup, reader, folder).read(places, progress)
            finally:
                self._engine.close()


@contextmanager
def _make_folder(home: Path) -> Iterator[Path]:
    """Make a folder for results, and delete those that killed processes have left: nothing was written there for long."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in home.glob(f"{_FOLDER}*"):
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > _ABANDONED:
                shutil.rmtree(old, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_FOLDER, dir=home, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


class _ParallelRun:
    """One reading of places."""

    def __init__(self, engine: Engine, setup: ReaderSetup, reader: PlaceReader, results: Path) -> None:
        self._engine = engine
        self._setup = setup
        self._reader = reader
        self._results = results
        self._own: deque[NumberedPart] = deque()  # what this process found out about places that need no reading
        self._done = 0  # places

    def read(self, places: deque[FoundPlace], progress: Progress) -> Iterator[ReadPart]:
        waiting: dict[int, list[_Done]] = {}  # results of units, for those of earlier ones
        turn, total = 0, len(places)
        self._reader.watch = lambda name: progress(self._done, total, name)
        for result in self._engine.map(read_unit, self._split(places)):
            if isinstance(result, FailedUnit):
                waiting[result.unit.number] = list(self._read_one_by_one(result))
                self._done += len(result.unit.places)
            else:
                waiting[result.number] = [result]
                self._done += result.places
            progress(self._done, total, "transcripts")
            while turn in waiting:
                for done in waiting.pop(turn):
                    yield from self._open(done)
                turn += 1
        yield from (own.part for own in self._own)

    def _split(self, places: deque[FoundPlace]) -> Iterator[IngestUnit]:
        """Yield units of the places that are new or have changed."""
        share: list[NumberedPlace] = []
        number = units = size = 0
        while places:
            wanted = self._reader.begin(*places.popleft())
            number += 1
            if wanted is None:
                self._done += 1
                continue
            if self._reader.part != ReadPart():
                self._own.append(NumberedPart(number, self._reader.take()))
            grown = wanted.looks[0] if wanted.looks else 0
            if share and (size + grown > UNIT_BYTES or len(share) >= UNIT_FILES):
                yield self._make_unit(units, share)
                share, size, units = [], 0, units + 1
            share.append(NumberedPlace(number, wanted))
            size += grown
        self._own.append(NumberedPart(number + 1, self._reader.take()))
        if share:
            yield self._make_unit(units, share)

    def _make_unit(self, number: int, places: list[NumberedPlace]) -> IngestUnit:
        return IngestUnit(number=number, places=tuple(places), setup=self._setup, results=self._results)

    def _read_one_by_one(self, failed: FailedUnit[IngestUnit]) -> Iterator[_Done]:
        """Read the places of a unit again, each by itself: only one of them may have been the reason."""
        unit = failed.unit
        if len(unit.places) == 1:
            yield failed
            return
        alone = [self._make_unit(number, [place]) for number, place in enumerate(unit.places)]
        done = {
            result.unit.number if isinstance(result, FailedUnit) else result.number: result
            for result in self._engine.map(read_unit, alone)
        }
        yield from (done[number] for number in sorted(done))

    def _open(self, done: _Done) -> Iterator[ReadPart]:
        """Yield the parts of a unit, each after what this process knew of the places before it."""
        for number, part in self._report(done) if isinstance(done, FailedUnit) else read_parts(done.file):
            while self._own and self._own[0].number <= number:
                yield self._own.popleft().part
            yield part

    def _report(self, failed: FailedUnit[IngestUnit]) -> Iterator[NumberedPart]:
        for number, wanted in failed.unit.places:
            problem = Problem(wanted.place.shown, f"not read: {failed.reason}")
            yield NumberedPart(number, ReadPart(problems=self._reader.clean([problem]), unreadable=1))
