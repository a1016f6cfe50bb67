"""Read, judge and score the transcripts of a path, and store their sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from warmstart import formats
from warmstart.errors import SourceError, UnknownFormat
from warmstart.formats.openai_chat import from_messages
from warmstart.formats.source import Source
from warmstart.ingest.projects import ProjectSettler
from warmstart.ingest.records import Record, Recorder
from warmstart.ingest.strip_seed import strip_seed
from warmstart.judging.outcome import judge_result
from warmstart.judging.score import score as score_session
from warmstart.judging.stops import add_words
from warmstart.model import Problem, Score, Session, ToolResult
from warmstart.ports import Progress
from warmstart.store import ProjectStore, SessionRow, SourceRow, SqliteStore

Conversation = Session | Sequence[Mapping[str, Any]]

READER = 5  # raise it when readers, judge or score change their results: files are then read again
_BATCH_SESSIONS, _BATCH_CALLS = 256, 4_000  # per commit, which then takes at most some 50 ms

Looks = tuple[int, int, int]  # size, modification time and inode of a file


class Scored(Struct, frozen=True):
    """A session and its score."""

    session: Session
    score: Score


class Inspection(Struct, frozen=True):
    """The sessions of a file or folder, and the parts that could not be read."""

    sessions: tuple[Scored, ...]
    problems: tuple[Problem, ...]


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
    """Parse, judge and score a file or folder; store nothing. Raises SourceError if the path cannot be read."""
    sessions: list[Scored] = []
    problems: list[Problem] = []
    for source in find_sources(Path(path)):
        sessions += scan(source, tools)
        problems += source.problems
    return Inspection(tuple(sessions), tuple(problems))


def scan(source: Source, tools: Mapping[str, str] | None = None) -> Iterator[Scored]:
    """Yield the scored sessions of one file. Parts that cannot be read are in `source.problems` afterwards."""
    try:
        for read in formats.read(source, judge_result):
            session = add_words(strip_seed(read))
            yield Scored(session, score_session(session, tools))
    except SourceError as error:
        source.report(error.reason, error.line)


def find_sources(path: Path) -> Iterator[Source]:
    """Yield the files of a path. In a folder, files that are not transcripts are skipped; a named file never is."""
    named = not path.is_dir()
    for file in formats.find_files(path):
        source = Source(file)
        if named or _is_transcript(source):
            yield source


def _is_transcript(source: Source) -> bool:
    try:
        formats.detect(source)
    except UnknownFormat:
        return False
    except SourceError:
        return True  # it cannot be read, which must be reported
    return True


class Ingest:
    """One run of `ingest`: skips files that look as they did, and writes sessions in batches."""

    def __init__(
        self, store: SqliteStore, recorder: Recorder, tools: Mapping[str, str], clock: Callable[[], float]
    ) -> None:
        self.report = Ingested()
        self._store = store
        self._recorder = recorder
        self._tools = tools
        self._clock = clock
        self._records: list[Record] = []
        self._sources: list[SourceRow] = []
        self._known: dict[str, SourceRow] = {}  # files read before, by URI
        self._calls = 0
        self._place: Callable[[SessionRow], SessionRow] = lambda row: row

    def run(self, paths: Iterable[Path | str], progress: Progress | None = None) -> Ingested:
        """Read the paths and store their sessions."""
        self._known = {row.uri: row for row in self._store.sources()}
        projects = ProjectStore(self._store)
        settler = ProjectSettler(projects, self._clock)
        self._place = settler.place
        files = list(self._files(paths))
        for done, (file, named) in enumerate(files):
            if progress:
                progress(done, len(files), file.name)
            self._read(Source(file), named)
        self._write()
        if self.report.new or self.report.updated or projects.has_unplaced():
            settler.settle()
        return self.report

    def _files(self, paths: Iterable[Path | str]) -> Iterator[tuple[Path, bool]]:
        for path in map(Path, paths):
            named = not path.is_dir()
            try:
                for file in formats.find_files(path):
                    yield file, named
            except SourceError as error:
                self.report.problems.append(Problem(self._recorder.name(error.path), error.reason))

    def _read(self, source: Source, named: bool) -> None:
        uri = self._recorder.name(source.uri)
        looks = _look(source.path)  # before reading: content appended meanwhile is read next time
        if looks is not None and self._is_unchanged(uri, looks):
            self._repeat(self._known[uri])
            return
        if not named and not _is_transcript(source):
            self.report.skipped += 1
            return
        before = self.report.sessions
        for scored in scan(source, self._tools):
            self.report.sessions += 1
            record = self._recorder.record(scored.session, scored.score, self._clock())
            self._add(structs.replace(record, session=self._place(record.session)))
        problems = [structs.replace(p, path=self._recorder.name(p.path)) for p in source.problems]
        if looks is not None:
            self._close_source(uri, looks, problems)
        self.report.problems += problems
        self.report.unreadable += bool(problems) and self.report.sessions == before

    def _repeat(self, row: SourceRow) -> None:
        """Report a file that looks as it did, with the problems of its last reading."""
        problems = _read_problems(row)
        if problems and not self._store.rows("is_source", (row.uri,))[0][0]:
            self.report.unreadable += 1
        else:
            self.report.unchanged += 1
        self.report.problems += problems

    def _is_unchanged(self, uri: str, looks: Looks) -> bool:
        row = self._known.get(uri)
        return row is not None and (row.size, row.mtime_ns, row.inode) == looks and row.reader == READER

    def _add(self, record: Record) -> None:
        self._records.append(record)
        self._calls += len(record.calls)
        if len(self._records) >= _BATCH_SESSIONS or self._calls >= _BATCH_CALLS:
            self._write()

    def _close_source(self, uri: str, looks: Looks, problems: list[Problem]) -> None:
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
                problems=msgspec.json.encode(problems[:20]).decode(),
            )
        )

    def _write(self) -> None:
        """Store the batch in one commit, because every commit costs a disk sync."""
        if not self._records and not self._sources:
            return
        with self._store.writing():
            changes = [self._store.put_session(record.session, record.calls, record.spent) for record in self._records]
            for row in self._sources:
                self._store.put_source(row)
        report = self.report
        for record, change in zip(self._records, changes, strict=True):
            report.new += change == "new"
            report.updated += change == "updated"
            report.forgotten += change == "forgotten"
            report.messages += record.session.messages
            report.calls += record.session.calls
            report.errors += record.session.errors
        self._records, self._sources, self._calls = [], [], 0


def _read_problems(row: SourceRow) -> list[Problem]:
    """Return the problems that a file had when it was read."""
    try:
        return msgspec.json.decode(row.problems, type=list[Problem])
    except msgspec.DecodeError:
        return []


def _look(path: Path) -> Looks | None:
    """Return size, time and inode of a file, with its SQLite WAL; they change when the file is written."""
    try:
        main = path.stat()
    except OSError:
        return None
    try:
        log = path.with_name(path.name + "-wal").stat() if path.suffix not in (".jsonl", ".json") else None
    except OSError:
        log = None
    if log is None:
        return main.st_size, main.st_mtime_ns, main.st_ino
    return main.st_size + log.st_size, max(main.st_mtime_ns, log.st_mtime_ns), main.st_ino
