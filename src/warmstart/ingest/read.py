"""Read, judge and score the transcripts of a path, and store their sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from warmstart import formats
from warmstart.errors import SourceError, StoreTooLong
from warmstart.formats.openai_chat import from_messages
from warmstart.formats.source import Looks, Source
from warmstart.ingest.places import add_place
from warmstart.ingest.projects import ProjectSettler
from warmstart.ingest.queue import join_session
from warmstart.ingest.records import Record, Recorder
from warmstart.ingest.sources import Holder, find_holder, find_places, find_reason_to_skip, find_sources
from warmstart.ingest.strip_seed import strip_seed
from warmstart.judging.outcome import judge_result, judge_status
from warmstart.judging.score import score as score_session
from warmstart.judging.stops import add_words
from warmstart.model import Problem, Score, Session, ToolResult
from warmstart.ports import Progress
from warmstart.store import Change, ProjectStore, SessionRow, SourceRow, Store

Conversation = Session | Sequence[Mapping[str, Any]]

READER = 8  # raise it when readers, judge or score change their results: files are then read again
_BATCH_SESSIONS, _BATCH_CALLS = 256, 4_000  # per commit, which then takes at most some 50 ms


class Scored(Struct, frozen=True):
    """A session and its score."""

    session: Session
    score: Score


class Inspection(Struct, frozen=True):
    """The sessions of a file or folder, and the parts that could not be read."""

    sessions: tuple[Scored, ...]
    problems: tuple[Problem, ...]


class SkippedFiles(Struct):
    """Files in folders that were skipped for one reason."""

    reason: str
    files: int = 0
    example: str = ""  # the first of them


class Ingested(Struct, kw_only=True):
    """The result of one `ingest`."""

    sessions: int = 0  # sessions read
    new: int = 0  # sessions that were not in the store
    updated: int = 0  # stored sessions whose content changed
    messages: int = 0  # messages of the sessions read
    calls: int = 0  # tool calls of the sessions read
    errors: int = 0  # tool errors of the sessions read
    unchanged: int = 0  # files that look as they did, so that they were not read
    skipped: int = 0  # files in folders that are not transcripts
    skips: list[SkippedFiles] = msgspec.field(default_factory=list)  # why they were skipped
    unreadable: int = 0  # files in which no session could be read
    forgotten: int = 0  # sessions read that a person had deleted, so that they were not stored
    trials: int = 0  # trials measured because their transcript is new or longer
    retired: tuple[str, ...] = ()  # templates retired because of their measured effect
    promoted: tuple[str, ...] = ()  # templates promoted because of their measured effect
    problems: list[Problem] = msgspec.field(default_factory=list)  # parts that could not be read


def judge(conversation: Conversation) -> tuple[ToolResult, ...]:
    """Return the judged tool results of a session or a list of OpenAI-style messages, in order."""
    session = conversation if isinstance(conversation, Session) else from_messages(conversation, judge_result)
    return tuple(step for step in session.steps if isinstance(step, ToolResult))


def score(conversation: Conversation, tools: Mapping[str, str] | None = None) -> Score:
    """Score a session or a list of OpenAI-style messages. `tools` maps your tool names to base tools."""
    session = conversation if isinstance(conversation, Session) else from_messages(conversation, judge_result)
    return score_session(session, tools)


def inspect(path: Path | str, tools: Mapping[str, str] | None = None) -> Inspection:
    """Parse, judge and score a file, folder, archive or address; store nothing. Raises SourceError if it cannot be read."""
    sessions: list[Scored] = []
    problems: list[Problem] = []
    for source in find_sources(path, problems):
        sessions += scan(source, tools)
        problems += source.problems
    return Inspection(tuple(sessions), tuple(problems))


def scan(source: Source, tools: Mapping[str, str] | None = None, *, causes: bool = True) -> Iterator[Scored]:
    """Yield the scored sessions of one file. Parts that cannot be read are in `source.problems` afterwards.

    Without `causes`, outcomes have no cause, no findings and no words of a person: the score needs none of them.
    """
    try:
        for read in formats.read(source, judge_result if causes else judge_status):
            session = add_words(strip_seed(read)) if causes else strip_seed(read)
            yield Scored(session, score_session(session, tools))
    except SourceError as error:
        source.report(error.reason, error.line)


class Ingest:
    """One run of `ingest`: skips files that look as they did, and writes sessions in batches."""

    def __init__(
        self,
        store: Store,
        recorder: Recorder,
        tools: Mapping[str, str],
        clock: Callable[[], float],
        origins: Mapping[Path, Path] | None = None,
    ) -> None:
        """`origins`: where copies come from. Sessions are stored with that place, and copies are always read."""
        self.report = Ingested()
        self._store = store
        self._recorder = recorder
        self._tools = tools
        self._clock = clock
        self._origins = origins or {}
        self._records: list[Record] = []
        self._unfit: set[str] = set()  # addresses of files with sessions that the store could not hold
        self._sources: list[SourceRow] = []
        self._calls = 0
        self._folders: set[str] = set()  # of the sessions that are new or have changed
        self._place: Callable[[SessionRow], SessionRow] = lambda row: row
        self._report_progress: Callable[[str], None] = _report_nothing

    def run(self, paths: Iterable[Path | str], progress: Progress | None = None) -> Ingested:
        """Read the paths and store their sessions."""
        projects = ProjectStore(self._store)
        settler = ProjectSettler(projects, self._clock)
        self._place = settler.place
        places = list(self._find_places(paths))
        for done, (place, named) in enumerate(places):
            self._report_progress = partial(progress, done, len(places)) if progress else _report_nothing
            if isinstance(place, Source):
                self._read(place, named)
            else:
                self._read_holder(place)
        self._write()
        if projects.has_unplaced():
            settler.settle()
        elif self._folders:
            settler.settle_changed(self._folders)
        return self.report

    def _find_places(self, paths: Iterable[Path | str]) -> Iterator[tuple[Source | Holder, bool]]:
        for name in paths:
            try:
                yield from find_places(name, self._skip)
            except SourceError as error:
                self.report.problems.append(Problem(self._recorder.name(error.path), error.reason))

    def _read_holder(self, holder: Holder, looks: Looks | None = None) -> None:
        """Read the transcripts in an archive, a branch or a remote folder."""
        uri = self._recorder.name(holder.uri)
        looks = looks or holder.look()
        if known := self._find_unchanged(uri, looks):
            self.report.unchanged += 1
            self.report.problems += _read_problems(known)
            return
        before = len(self.report.problems)
        try:
            for source in holder.sources(self._skip):
                self._read(source, holder.single)
        except SourceError as error:
            self.report.problems.append(Problem(self._recorder.name(error.path), error.reason))
            looks = None  # read it again next time
        self.report.problems += self._clean(holder.problems)
        if looks is not None:
            self._close_source(uri, looks, msgspec.json.encode(self.report.problems[before:][:20]).decode())

    def _find_unchanged(self, uri: str, looks: Looks | None) -> SourceRow | None:
        """Return what is known of a file that looks as it did; None for a new or changed one."""
        known = self._store.source(uri) if looks is not None else None
        return known if known is not None and looks is not None and _is_unchanged(known, looks) else None

    def _clean(self, problems: Iterable[Problem]) -> list[Problem]:
        return [structs.replace(problem, path=self._recorder.name(problem.path)) for problem in problems]

    def _read(self, source: Source, named: bool) -> None:
        self._report_progress(source.path.name)
        uri = join_session(source.uri, source.only) if source.only else source.uri
        origin = self._origins.get(source.path)
        looks = None if origin else source.look()  # before reading: content appended meanwhile is read next time
        known = self._find_unchanged(uri, looks)
        if known is None and (hidden := self._recorder.name(uri)) != uri:  # a stored address needs no redaction
            uri = hidden
            known = self._find_unchanged(uri, looks)
        if known is not None:
            if (reason := _read_reason(known)) is None:
                self._repeat(known)
                return
            if not named:
                self._skip(source.shown, reason)
                return
        if holder := find_holder(source):
            self._read_holder(holder, looks)
            return
        if not named and (reason := find_reason_to_skip(source)):
            self._skip(source.shown, reason)
            if looks is not None:
                self._close_source(uri, looks, msgspec.json.encode(reason).decode())
            return
        before = self.report.sessions
        for scored in scan(source, self._tools):
            self.report.sessions += 1
            session = move_session(scored.session, source, origin) if origin else scored.session
            session = add_place(self._store, session)
            record = self._recorder.record(session, scored.score, self._clock())
            self._add(structs.replace(record, session=self._place(record.session)))
        problems = self._clean(source.problems)
        if looks is not None:
            self._close_source(uri, looks, msgspec.json.encode(problems[:20]).decode())
        self.report.problems += problems
        self.report.unreadable += bool(problems) and self.report.sessions == before

    def _skip(self, shown: str, reason: str) -> None:
        self.report.skipped += 1
        skip = next((skip for skip in self.report.skips if skip.reason == reason), None)
        if skip is None:
            skip = SkippedFiles(reason, example=self._recorder.name(shown))
            self.report.skips.append(skip)
        skip.files += 1

    def _repeat(self, row: SourceRow) -> None:
        """Report a file that looks as it did, with the problems of its last reading."""
        problems = _read_problems(row)
        if problems and not self._store.rows("is_source", (row.uri,))[0][0]:
            self.report.unreadable += 1
        else:
            self.report.unchanged += 1
        self.report.problems += problems

    def _add(self, record: Record) -> None:
        self._records.append(record)
        self._calls += len(record.calls)
        if len(self._records) >= _BATCH_SESSIONS or self._calls >= _BATCH_CALLS:
            self._write()

    def _close_source(self, uri: str, looks: Looks, problems: str) -> None:
        """Note that a file was read to its end. The note is committed together with the file's last sessions."""
        size, mtime_ns, inode = looks
        self._sources.append(
            SourceRow(
                uri=uri,
                size=size,
                mtime_ns=mtime_ns,
                inode=inode,
                reader=READER,
                read_at=self._clock(),
                problems=problems,
            )
        )
        if len(self._sources) >= _BATCH_CALLS:
            self._write()

    def _write(self) -> None:
        """Store the batch in one commit, because every commit costs a disk sync."""
        if not self._records and not self._sources:
            return
        try:
            changes = self._put(self._records, self._sources)
        except StoreTooLong:
            changes = self._put_what_fits()
        report = self.report
        for record, change in zip(self._records, changes, strict=True):
            report.new += change == "new"
            report.updated += change == "updated"
            report.forgotten += change == "forgotten"
            if change in ("new", "updated") and record.session.folder is not None:
                self._folders.add(record.session.folder)
            report.messages += record.session.messages
            report.calls += record.session.calls
            report.errors += record.session.errors
        self._records, self._sources, self._calls = [], [], 0

    def _put(self, records: Sequence[Record], sources: Sequence[SourceRow]) -> list[Change]:
        with self._store.writing():
            changes = self._store.put_sessions([(one.session, one.calls, one.spent) for one in records])
            for row in sources:
                self._store.put_source(row)
        return changes

    def _put_what_fits(self) -> list[Change]:
        """Store the batch one by one and report the sessions that do not fit. Their files are read again next time."""
        changes: list[Change] = []
        fitting: list[Record] = []
        for record in self._records:
            try:
                changes += self._put([record], [])
                fitting.append(record)
            except StoreTooLong as error:
                uri = record.session.source_uri
                self._unfit.add(uri.partition("#")[0])
                self.report.problems += self._clean([Problem(uri, str(error))])
        for row in self._sources:
            with suppress(StoreTooLong):
                self._put([], [row] if row.uri not in self._unfit else [])
        self._records = fitting
        return changes


def move_session(session: Session, copy: Source, origin: Path) -> Session:
    """Return a session that was read from a copy of its transcript with the address of the transcript."""
    return structs.replace(session, source_uri=origin.as_uri() + session.source_uri.removeprefix(copy.uri))


def _report_nothing(_name: str) -> None:
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
