"""The units of work that fill a lake: read, judge, redact and write some transcripts; then digest what was written.

A unit is the same whoever runs it and however often: the transcripts of a folder are always split in the same way, files are
named by their content, and what stood in the lake before the run is the same for all units of the run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct, field, structs

from warmstart.errors import SourceError
from warmstart.formats.source import Source
from warmstart.ingest.place_reader import SkippedFiles
from warmstart.ingest.read import READER, scan
from warmstart.ingest.records import Record, Recorder
from warmstart.ingest.skips import Skip
from warmstart.ingest.sources import expand_source, find_places, find_sources
from warmstart.insights.gather import InsightCounts, encode_counts
from warmstart.lake.files import Lake, LakeFile, name_folder, open_lake
from warmstart.lake.tables import (
    DigestRow,
    encode_calls,
    encode_digests,
    encode_sessions,
    find_month,
    read_records,
    read_table,
)
from warmstart.model import Problem
from warmstart.notes.digest import digest_both
from warmstart.notes.register import RULES, encode
from warmstart.store.history import decode_session

UNIT_BYTES, UNIT_FILES = 4_000_000, 200  # of transcripts in one unit


class UnitSource(NamedTuple):
    """A transcript, an archive or an address to read."""

    name: str
    named: bool  # by a person: a file that is no transcript is then a problem
    is_file: bool
    size: int = 0  # bytes


class ReadingUnit(Struct, frozen=True, kw_only=True):
    """Transcripts to read, judge, redact and write."""

    lake: str
    sources: tuple[UnitSource, ...]
    secrets: Mapping[str, str]  # to redact
    home: str  # with the key of scopes
    tools: Mapping[str, str]
    personal: bool = False  # write sessions of other scopes than the machine's own user, too
    known: tuple[
        LakeFile, ...
    ] = ()  # files with sessions that were in the lake before the run, together with their calls
    deleted: frozenset[str] = frozenset()  # keys of sessions that a person deleted


class UnitReport(Struct, kw_only=True):
    """What came of a unit."""

    sessions: int = 0
    new: int = 0
    messages: int = 0
    calls: int = 0
    errors: int = 0
    personal: int = 0  # sessions left out because they belong to a scope
    forgotten: int = 0  # sessions left out because a person deleted them
    unwritten: int = 0  # transcripts whose sessions, and files whose digests, could not be written
    problems: list[Problem] = field(default_factory=list)
    skips: list[SkippedFiles] = field(default_factory=list)

    def add(self, other: UnitReport) -> None:
        """Add the report of another unit."""
        for name in ("sessions", "new", "messages", "calls", "errors", "personal", "forgotten", "unwritten"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.problems += other.problems
        for skip in other.skips:
            self.skip(skip.example, skip.reason, skip.files)

    def skip(self, example: str, reason: str, files: int = 1) -> None:
        """Count files that are no transcripts."""
        known = next((skip for skip in self.skips if skip.reason == reason), None)
        if known is None:
            self.skips.append(SkippedFiles(reason, files, example))
        else:
            known.files += files
            known.example = min(known.example, example)


def list_sources(paths: Iterable[Path | str], skip: Skip, problems: list[Problem]) -> list[UnitSource]:
    """Return what there is to read, sorted."""
    found: set[UnitSource] = set()
    for path in paths:
        try:
            for place, named in find_places(path, skip):
                if not isinstance(place, Source):
                    found.add(UnitSource(str(path), True, False))
                elif place.only:
                    found.add(UnitSource(str(path), named, False))
                else:
                    looks = place.look()
                    found.add(UnitSource(str(place.path.absolute()), named, True, looks[0] if looks else 0))
        except SourceError as error:
            problems.append(Problem(error.path, error.reason))
    return sorted(found)


def split_sources(sources: Sequence[UnitSource]) -> Iterator[tuple[UnitSource, ...]]:
    """Yield the sources of each unit: always the same for the same sources."""
    unit: list[UnitSource] = []
    size = 0
    for source in sources:
        if unit and (size + source.size > UNIT_BYTES or len(unit) >= UNIT_FILES):
            yield tuple(unit)
            unit, size = [], 0
        unit.append(source)
        size += source.size
    if unit:
        yield tuple(unit)


def read_unit(unit: ReadingUnit) -> UnitReport:
    """Read the transcripts of a unit and write their sessions and calls."""
    lake = open_lake(unit.lake)
    report = UnitReport()
    recorder = Recorder(unit.secrets, Path(unit.home))
    groups: dict[tuple[str, str], dict[str, Record]] = {}
    for source in _open(unit, report):
        for scored in scan(source, unit.tools):
            report.sessions += 1
            record = recorder.record(scored.session, scored.score, 0.0)
            if record.session.key in unit.deleted:
                report.forgotten += 1
            elif record.session.scope and not unit.personal:
                report.personal += 1
            else:
                _count(report, record)
                row = record.session
                same = groups.setdefault((row.remote or row.folder or "", find_month(row.started)), {})
                same[row.key] = max(same.get(row.key, record), record, key=rank_record)
        report.problems += source.problems
    report.problems = [structs.replace(one, path=recorder.name(one.path)) for one in report.problems]
    report.skips = [structs.replace(one, example=recorder.name(one.example)) for one in report.skips]
    for (project, month), records in sorted(groups.items()):
        report.new += _write(lake, unit.known, name_folder(project), month, list(records.values()))
    return report


def rank_record(record: Record) -> tuple[int, str]:
    """Return what decides between two versions of a session: the longer one, else the hash. No clock is needed."""
    return record.session.length, record.session.digest


def _open(unit: ReadingUnit, report: UnitReport) -> Iterator[Source]:
    for source in unit.sources:
        try:
            if source.is_file:
                yield from expand_source(Source(Path(source.name)), source.named, report.problems, report.skip)
            else:
                yield from find_sources(source.name, report.problems)
        except SourceError as error:
            report.problems.append(Problem(error.path, error.reason, error.line))


def _count(report: UnitReport, record: Record) -> None:
    report.messages += record.session.messages
    report.calls += record.session.calls
    report.errors += record.session.errors


def _write(lake: Lake, known: Iterable[LakeFile], folder: str, month: str, records: Sequence[Record]) -> int:
    """Write the records that are not in the lake, and return their number. The file with the sessions comes last."""
    there: set[tuple[str, str]] = set()
    for file in known:
        if (file.project, file.month) == (folder, month):
            table = read_table(lake, file, ("key", "digest"))
            there |= {(row["key"], row["digest"]) for row in table.to_pylist()} if table is not None else set()
    fresh = [record for record in records if (record.session.key, record.session.digest) not in there]
    if fresh:
        write_records(lake, folder, month, fresh)
    return len(fresh)


def write_records(lake: Lake, folder: str, month: str, records: Sequence[Record]) -> LakeFile:
    """Write sessions and their calls, and return the file with the sessions."""
    sessions = encode_sessions(records)
    name = hashlib.blake2b(sessions, digest_size=16).hexdigest()
    lake.write("calls", folder, month, encode_calls(records), name)
    return lake.write("sessions", folder, month, sessions)


class DigestingUnit(Struct, frozen=True, kw_only=True):
    """A file of sessions to make digests of."""

    lake: str
    sessions: LakeFile
    calls: LakeFile
    made_of: str  # names the digests
    places: Mapping[str, tuple[str, str | None]]  # folder -> project and root
    roots: Mapping[str, Sequence[str]]  # project -> folders in which it was worked on
    forks: Mapping[str, Sequence[tuple[LakeFile, str]]] = {}  # session -> the earlier ones that it may be a fork of


class DigestedFile(Struct, kw_only=True):
    """What came of the digests of a file of sessions."""

    sessions: LakeFile
    digests: LakeFile | None = None  # None: the sessions or calls that they are made of cannot be read
    problems: list[Problem] = field(default_factory=list)


def name_digests(sessions: LakeFile, places: Mapping[str, tuple[str, str | None]]) -> str:
    """Return the name of the digests of a file of sessions: other rules or projects make other ones."""
    facts = msgspec.json.encode((sessions.name, RULES, READER, sorted(places.items())))
    return hashlib.blake2b(facts, digest_size=16).hexdigest()


def digest_unit(unit: DigestingUnit) -> DigestedFile:
    """Make and write the digests of a file of sessions, unless calls that they are made of cannot be read."""
    lake = open_lake(unit.lake)
    rows = []
    for record in read_records(lake, unit.sessions, unit.calls) or ():
        row = place_row(record, unit.places)
        past = decode_session(row.session, row.calls)
        if past is None:
            counts = InsightCounts()
            counts.add(None)
            body = ""
        else:
            skip = _find_copied(lake, unit.forks.get(past.key, ()))
            digest, counts = digest_both(past, roots=unit.roots.get(past.project or "", ()), skip=skip)
            body = encode(digest).decode()
        rows.append(
            DigestRow(
                key=row.session.key,
                content=row.session.digest,
                project=row.session.project or "",
                scope=row.session.scope,
                agent=row.session.agent,
                started=row.session.started,
                notes=body,
                figures=encode_counts(counts),
            )
        )
    if lake.problems:
        return DigestedFile(sessions=unit.sessions, problems=lake.problems)
    made = lake.write("digests", unit.sessions.project, unit.sessions.month, encode_digests(rows), unit.made_of)
    return DigestedFile(sessions=unit.sessions, digests=made)


def place_row(record: Record, places: Mapping[str, tuple[str, str | None]]) -> Record:
    """Return a record in the project of its folder."""
    folder = record.session.folder
    if folder is None or folder not in places:
        return record
    project, root = places[folder]
    return structs.replace(record, session=structs.replace(record.session, project=project, root=root))


def _find_copied(lake: Lake, earlier: Iterable[tuple[LakeFile, str]]) -> set[str]:
    """Return the ids of calls that earlier sessions made. Short ids repeat by chance."""
    copied: set[str] = set()
    for file, key in earlier:
        table = read_table(lake, file, ("session_key", "call_id"))
        rows = table.to_pylist() if table is not None else []
        copied |= {row["call_id"] for row in rows if row["session_key"] == key and len(row["call_id"]) > 15}
    return copied
