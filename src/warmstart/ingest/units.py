"""A unit of reading, for a process that stores nothing: read some places, and write redacted parts to a file.

The parts go through a file because a unit may be done long before its turn to be stored, and because a transcript of a gigabyte
is one unit: no process ever holds more than one part of it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
from msgspec import Struct

from warmstart.ingest.place_reader import PlaceReader, PlaceToRead, ReadPart
from warmstart.ingest.records import Recorder
from warmstart.store import Store, open_store

_LENGTH = 8  # bytes of the number in front of a part


class ReaderSetup(Struct, frozen=True, kw_only=True):
    """What a process needs to read places."""

    store: str  # address; it is only read
    secrets: Mapping[str, str]  # to redact
    home: Path  # with the key of scopes
    tools: Mapping[str, str]
    folder: Path | None  # the working folder, for relative paths; None: it is gone


class NumberedPlace(NamedTuple):
    """A place and its number among all."""

    number: int
    wanted: PlaceToRead


class IngestUnit(Struct, frozen=True, kw_only=True):
    """Places to read."""

    number: int
    places: tuple[NumberedPlace, ...]
    setup: ReaderSetup
    results: Path  # the folder for the result


class NumberedPart(NamedTuple):
    """A part of what was read, and the number of its place."""

    number: int
    part: ReadPart


class IngestUnitResult(NamedTuple):
    """The file with what came of a unit."""

    number: int
    file: Path
    places: int


def read_unit(unit: IngestUnit) -> IngestUnitResult:
    """Read the places of a unit, and write what came of them to a file."""
    reader = _open_reader(unit.setup)
    handle, name = tempfile.mkstemp(dir=unit.results)
    with os.fdopen(handle, "wb") as file:
        for number, wanted in unit.places:
            for part in reader.read(wanted):
                _write_part(file, NumberedPart(number, part))
            _write_part(file, NumberedPart(number, reader.take()))
    return IngestUnitResult(unit.number, Path(name), len(unit.places))


_readers: list[tuple[ReaderSetup, PlaceReader]] = []  # of this process: at most one, because making it takes long


def _open_reader(setup: ReaderSetup) -> PlaceReader:
    if not _readers or _readers[0][0] != setup:
        if setup.folder is not None:
            with suppress(OSError):
                os.chdir(setup.folder)
        reader = PlaceReader(_LazyStore(setup.store), Recorder(setup.secrets, setup.home), setup.tools)
        _readers[:] = [(setup, reader)]
    reader = _readers[0][1]
    reader.take()  # what a unit that failed has left
    return reader


class _LazyStore:
    """Opens a store when it is first asked for. Most transcripts need none."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._store: Store | None = None

    def __call__(self) -> Store:
        if self._store is None:
            self._store = open_store(self._url)
        return self._store


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(NumberedPart).decode


def _write_part(file: IO[bytes], part: NumberedPart) -> None:
    try:
        data = _encode(part)
    except UnicodeEncodeError:  # half a surrogate pair, which the store would mend in the same way
        data = _encode(_mend(msgspec.to_builtins(part)))
    file.write(len(data).to_bytes(_LENGTH))
    file.write(data)


def _mend(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {key: _mend(inner) for key, inner in value.items()}
    return [_mend(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def read_parts(path: Path) -> Iterator[NumberedPart]:
    """Yield the parts in a result file, and delete it."""
    with path.open("rb") as file:
        while length := file.read(_LENGTH):
            yield _decode(file.read(int.from_bytes(length)))
    path.unlink()
