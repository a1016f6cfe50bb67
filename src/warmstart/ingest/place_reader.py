"""Read the transcripts of a place (a file, an archive, a branch) into redacted records. It writes nothing to the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, field, structs

from warmstart.errors import SourceError, StoreError
from warmstart.excerpt import first
from warmstart.formats.source import Looks, Source
from warmstart.ingest.places import add_place, may_have_place
from warmstart.ingest.queue import join_session
from warmstart.ingest.read import READER, scan
from warmstart.ingest.records import Record, Recorder
from warmstart.ingest.sources import Holder, find_holder, find_reason_to_skip
from warmstart.model import Problem, Session
from warmstart.store import SourceRow, Store

_MOST_SESSIONS, _MOST_CALLS = 256, 4_000  # of a part; a commit of it takes at most some 50 ms
_KEPT_PROBLEMS = 20  # of a file, for the next run
_REASON = 300  # characters of an error that no reader foresees


FoundPlace = tuple[Source | Holder, bool, Path | None]  # whether a person named it; the transcript that it is a copy of


class SkippedFiles(Struct):
    """Files in folders that were skipped for one reason."""

    reason: str
    files: int = 0
    example: str = ""  # the first of them


class ReadPart(Struct, kw_only=True, omit_defaults=True):
    """Some of what was read, redacted. Times of reading are missing: whoever stores it has the clock."""

    records: list[Record] = field(default_factory=list)
    sources: list[SourceRow] = field(default_factory=list)  # files read to their end with these records or earlier ones
    problems: list[Problem] = field(default_factory=list)
    skips: list[SkippedFiles] = field(default_factory=list)
    calls: int = 0  # of the records
    unchanged: int = 0  # files
    unreadable: int = 0  # files

    def is_full(self) -> bool:
        """Return whether it should be stored before more is read."""
        return len(self.records) >= _MOST_SESSIONS or self.calls >= _MOST_CALLS or len(self.sources) >= _MOST_CALLS

    def skip(self, reason: str, example: str, files: int = 1) -> None:
        """Count files that are not transcripts."""
        known = next((skip for skip in self.skips if skip.reason == reason), None)
        if known is None:
            self.skips.append(SkippedFiles(reason, files, example))
        else:
            known.files += files


class PlaceToRead(Struct, frozen=True, kw_only=True):
    """A file or holder that is new or has changed."""

    place: Source | Holder
    named: bool  # by a person: a file that is no transcript is then a problem
    uri: str  # redacted
    looks: Looks | None  # None: it is read again next time
    origin: Path | None = None  # of the transcript, where the place is a copy of it


class PlaceReader:
    """Reads places. What came of them is kept in `part` until it is full or taken."""

    def __init__(self, open_store: Callable[[], Store], recorder: Recorder, tools: Mapping[str, str]) -> None:
        """`open_store` returns the store, to ask whether a file looks as it did and where a session ran."""
        self.part = ReadPart()
        self.watch: Callable[[str], None] = _ignore  # gets the names of files
        self._open_store = open_store
        self._recorder = recorder
        self._tools = tools
        self._holders: list[list[Problem]] = []  # the problems in each holder that is being read

    def take(self) -> ReadPart:
        """Return the part, and begin a new one."""
        part, self.part = self.part, ReadPart()
        return part

    def skip(self, shown: str, reason: str) -> None:
        """Count a file that is no transcript."""
        self.part.skip(reason, self._recorder.name(shown))

    def report(self, problems: Iterable[Problem]) -> list[Problem]:
        """Add problems, and return them redacted."""
        clean = self.clean(problems)
        self._add_problems(clean)
        return clean

    def clean(self, problems: Iterable[Problem]) -> list[Problem]:
        """Redact the paths of problems."""
        return [structs.replace(problem, path=self._recorder.name(problem.path)) for problem in problems]

    def _add_problems(self, problems: list[Problem]) -> None:
        for found in (self.part.problems, *self._holders):
            found += problems

    def begin(self, place: Source | Holder, named: bool, origin: Path | None = None) -> PlaceToRead | None:
        """Return what is to be read; None for a place that looks as it did when it was read, which is counted."""
        if isinstance(place, Source):
            self.watch(place.path.name)
        looks = None if origin else place.look()  # before reading: content appended meanwhile is read next time
        uri = place.uri
        if isinstance(place, Source) and place.only:
            uri = join_session(uri, place.only)
        known = self._find_unchanged(uri, looks)
        if known is None and (hidden := self._recorder.name(uri)) != uri:  # a stored address needs no redaction
            uri = hidden
            known = self._find_unchanged(uri, looks)
        if known is not None:
            if (reason := _read_reason(known)) is None:
                self._repeat(known, isinstance(place, Source))
                return None
            if not named:
                self.skip(place.shown, reason)
                return None
        return PlaceToRead(place=place, named=named, uri=uri, looks=looks, origin=origin)

    def _find_unchanged(self, uri: str, looks: Looks | None) -> SourceRow | None:
        """Return what is known of a file that looks as it did; None for a new or changed one."""
        known = self._open_store().source(uri) if looks is not None else None
        return known if known is not None and looks is not None and _is_unchanged(known, looks) else None

    def _repeat(self, row: SourceRow, is_file: bool) -> None:
        """Report a place that looks as it did, with the problems of its last reading."""
        problems = _read_problems(row)
        if problems and is_file and not self._open_store().rows("is_source", (row.uri,))[0][0]:
            self.part.unreadable += 1
        else:
            self.part.unchanged += 1
        self._add_problems(problems)

    def read(self, wanted: PlaceToRead) -> Iterator[ReadPart]:
        """Read a place, and yield parts as they get full. The rest is in `part`.

        An error that no reader foresees is reported with the place's name; the caller can go on with other places.
        """
        try:
            place = wanted.place
            holder = find_holder(place) if isinstance(place, Source) else place
            if holder is not None:
                yield from self._read_holder(holder, wanted)
            elif isinstance(place, Source):
                yield from self._read_transcript(place, wanted)
            if self.part.is_full():
                yield self.take()
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - the edge of a file: one that cannot be read must not stop the others
            reason = self._recorder.redact(f"{type(error).__name__}: {error}")
            self.report([Problem(wanted.place.shown, f"reading it failed: {first(reason, _REASON)}")])
            self.part.unreadable += 1

    def _read_holder(self, holder: Holder, wanted: PlaceToRead) -> Iterator[ReadPart]:
        """Read the transcripts in an archive or a branch."""
        looks = wanted.looks
        problems: list[Problem] = []
        self._holders.append(problems)
        try:
            for source in holder.sources(self.skip):
                if (member := self.begin(source, holder.single)) is not None:
                    yield from self.read(member)
        except SourceError as error:
            self.report([Problem(error.path, error.reason)])
            looks = None  # read it again next time
        finally:
            self._holders.pop()
        problems += self.report(holder.problems)
        self._close_source(wanted.uri, looks, problems)

    def _read_transcript(self, source: Source, wanted: PlaceToRead) -> Iterator[ReadPart]:
        if not wanted.named and (reason := find_reason_to_skip(source)):
            self.skip(source.shown, reason)
            self._close_source(wanted.uri, wanted.looks, reason)
            return
        sessions = 0
        for scored in scan(source, self._tools):
            sessions += 1
            session = move_session(scored.session, source, wanted.origin) if wanted.origin else scored.session
            if may_have_place(session):
                session = add_place(self._open_store(), session)
            record = self._recorder.record(session, scored.score, 0.0)
            self.part.records.append(record)
            self.part.calls += len(record.calls)
            if self.part.is_full():
                yield self.take()
        problems = self.report(source.problems)
        self.part.unreadable += bool(problems) and not sessions
        self._close_source(wanted.uri, wanted.looks, problems)

    def _close_source(self, uri: str, looks: Looks | None, problems: list[Problem] | str) -> None:
        """Note that a file was read to its end, with its problems or why it is no transcript."""
        if looks is None:
            return
        size, mtime_ns, inode = looks
        kept = problems if isinstance(problems, str) else problems[:_KEPT_PROBLEMS]
        self.part.sources.append(
            SourceRow(
                uri=uri,
                size=size,
                mtime_ns=mtime_ns,
                inode=inode,
                reader=READER,
                read_at=0.0,
                problems=msgspec.json.encode(kept).decode(),
            )
        )


def move_session(session: Session, copy: Source, origin: Path) -> Session:
    """Return a session that was read from a copy of its transcript with the address of the transcript."""
    return structs.replace(session, source_uri=origin.as_uri() + session.source_uri.removeprefix(copy.uri))


def _ignore(_name: str) -> None:
    return None


def _read_problems(row: SourceRow) -> list[Problem]:
    """Return the problems that a file had when it was read."""
    try:
        return msgspec.json.decode(row.problems, type=list[Problem])
    except msgspec.DecodeError:
        return []


def _read_reason(row: SourceRow) -> str | None:
    """Return why a file is no transcript, which is stored in place of its problems; None for a transcript."""
    return msgspec.json.decode(row.problems, type=str) if row.problems.startswith('"') else None


def _is_unchanged(row: SourceRow, looks: Looks) -> bool:
    return (row.size, row.mtime_ns, row.inode) == looks and row.reader == READER
