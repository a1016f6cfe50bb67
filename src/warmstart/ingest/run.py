"""One run of `ingest`: read what is new or has changed, here or in other processes, and store it in batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, structs

from warmstart.errors import SourceError, StoreTooLong
from warmstart.formats.source import Source
from warmstart.ingest.place_reader import FoundPlace, PlaceReader, ReadPart, SkippedFiles
from warmstart.ingest.projects import ProjectSettler
from warmstart.ingest.records import Record, Recorder
from warmstart.ingest.sources import find_places
from warmstart.model import Problem
from warmstart.ports import Progress
from warmstart.projects.gate import ProjectGate
from warmstart.store import Change, ProjectStore, SessionRow, SourceRow, Store

if TYPE_CHECKING:
    from warmstart.ingest.parallel import Workers


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
    left_out: dict[str, int] = msgspec.field(default_factory=dict)  # not stored, by project: `store_projects` lacks it
    forgotten: int = 0  # sessions read that a person had deleted, so that they were not stored
    foreign: dict[str, int] = msgspec.field(default_factory=dict)  # stored by another role before; by role, "": unseen
    trials: int = 0  # trials measured because their transcript is new or longer
    retired: tuple[str, ...] = ()  # templates retired because of their measured effect
    promoted: tuple[str, ...] = ()  # templates promoted because of their measured effect
    problems: list[Problem] = msgspec.field(default_factory=list)  # parts that could not be read


class Ingest:
    """One run of `ingest`: skips files that look as they did, and writes sessions in batches."""

    def __init__(
        self,
        store: Store,
        recorder: Recorder,
        tools: Mapping[str, str],
        clock: Callable[[], float],
        origins: Mapping[Path, Path] | None = None,
        workers: Workers | None = None,
        gate: ProjectGate | None = None,
    ) -> None:
        """`origins`: where copies come from. Sessions are stored with that place, and copies are always read.

        `workers`: processes that read; without them this process does. Only this one writes, in the order of the files.
        `gate`: the projects whose sessions are stored; None: all.
        """
        self.report = Ingested()
        self._store = store
        self._recorder = recorder
        self._reader = PlaceReader(lambda: store, recorder, tools)
        self._clock = clock
        self._origins = origins or {}
        self._workers = workers
        self._gate = gate
        self._stored: set[str] = set()  # files with sessions that the gate admitted
        self._batch = ReadPart()
        self._unfit: set[str] = set()  # files with sessions that the store could not or may not take
        self._folders: set[str] = set()  # of the sessions that are new or have changed

    def run(self, paths: Iterable[Path | str], progress: Progress | None = None) -> Ingested:
        """Read the paths and store their sessions."""
        projects = ProjectStore(self._store)
        settler = ProjectSettler(projects, self._clock)
        places = deque(self._find_places(paths))
        for part in self._read(places, progress or _report_nothing):
            self._take(part, settler)
        self._write()
        if projects.has_unplaced():
            settler.settle()
        elif self._folders:
            settler.settle_changed(self._folders)
        return self.report

    def _find_places(self, paths: Iterable[Path | str]) -> Iterator[FoundPlace]:
        for name in paths:
            try:
                for place, named in find_places(name, self._reader.skip):
                    if isinstance(place, Source):
                        yield place, named, self._origins.get(place.path)
                    elif place.look() is not None:
                        yield place, named, None
                    else:
                        yield from ((source, place.single, None) for source in place.sources(self._reader.skip))
                        self._reader.report(place.problems)
            except SourceError as error:
                self._reader.report([Problem(error.path, error.reason)])

    def _read(self, places: deque[FoundPlace], progress: Progress) -> Iterator[ReadPart]:
        """Yield what came of the places, in their order. They are removed, because some keep what was read."""
        yield self._reader.take()
        if self._workers is not None:
            yield from self._workers.read(self._reader, places, progress)
            return
        total = len(places)
        while places:
            self._reader.watch = partial(progress, total - len(places), total)
            if (wanted := self._reader.begin(*places.popleft())) is not None:
                yield from self._reader.read(wanted)
        yield self._reader.take()

    def _take(self, part: ReadPart, settler: ProjectSettler) -> None:
        """Report a part and add it to the batch."""
        report, batch = self.report, self._batch
        report.sessions += len(part.records)
        report.unchanged += part.unchanged
        report.unreadable += part.unreadable
        report.problems += part.problems
        for skip in part.skips:
            self._skip(skip)
        for record in part.records:
            if not self._admits(record.session):
                continue
            now = self._clock()
            row = settler.place(structs.replace(record.session, first_seen=now, updated=now))
            batch.records.append(structs.replace(record, session=row))
            batch.calls += len(record.calls)
        batch.sources += [structs.replace(row, read_at=self._clock()) for row in part.sources if self._may_note(row)]
        if batch.is_full():
            self._write()

    def _admits(self, row: SessionRow) -> bool:
        """Return whether the store takes a session; count it if not."""
        if self._gate is None:
            return True
        if self._gate.admits(row.folder, row.remote, row.scope):
            self._stored.add(_name_file(row.source_uri))
            return True
        name = self._gate.name(row.folder, row.remote)
        self.report.left_out[name] = self.report.left_out.get(name, 0) + 1
        self._unfit.add(_name_file(row.source_uri))
        return False

    def _may_note(self, row: SourceRow) -> bool:
        """Return whether the store may know of a file: behind a gate its path is private unless its sessions are stored."""
        file = _name_file(row.uri)
        return file not in self._unfit and (self._gate is None or file in self._stored)

    def _skip(self, skip: SkippedFiles) -> None:
        self.report.skipped += skip.files
        known = next((known for known in self.report.skips if known.reason == skip.reason), None)
        if known is None:
            self.report.skips.append(skip)
        else:
            known.files += skip.files

    def _write(self) -> None:
        """Store the batch in one commit, because every commit costs a disk sync."""
        batch, self._batch = self._batch, ReadPart()
        if not batch.records and not batch.sources:
            return
        records: Sequence[Record] = batch.records
        try:
            changes = self._put(records, batch.sources)
        except StoreTooLong:
            records, changes = self._put_what_fits(batch)
        report = self.report
        for record, change in zip(records, changes, strict=True):
            report.new += change == "new"
            report.updated += change == "updated"
            report.forgotten += change == "forgotten"
            if change == "foreign":
                owner = self._store.find_owner(record.session.key)
                report.foreign[owner] = report.foreign.get(owner, 0) + 1
            if change in ("new", "updated") and record.session.folder is not None:
                self._folders.add(record.session.folder)
            report.messages += record.session.messages
            report.calls += record.session.calls
            report.errors += record.session.errors

    def _put(self, records: Sequence[Record], sources: Sequence[SourceRow]) -> list[Change]:
        with self._store.writing():
            changes = self._store.put_sessions([(one.session, one.calls, one.spent) for one in records])
            for record, change in zip(records, changes, strict=True):
                if change == "foreign":  # read it again next time, and say so
                    self._unfit.add(_name_file(record.session.source_uri))
            if noted := [row for row in sources if self._may_note(row)]:
                self._store.put_sources(noted)
        return changes

    def _put_what_fits(self, batch: ReadPart) -> tuple[list[Record], list[Change]]:
        """Store the batch one by one and report the sessions that do not fit. Their files are read again next time."""
        changes: list[Change] = []
        fitting: list[Record] = []
        for record in batch.records:
            try:
                changes += self._put([record], [])
                fitting.append(record)
            except StoreTooLong as error:
                uri = record.session.source_uri
                self._unfit.add(_name_file(uri))
                self.report.problems.append(Problem(self._recorder.name(uri), str(error)))
        for row in batch.sources:
            with suppress(StoreTooLong):
                self._put([], [row])
        return fitting, changes


def _name_file(uri: str) -> str:
    """Return the file or archive that a session or a member comes from."""
    return uri.partition("#")[0].partition("!/")[0]


def _report_nothing(done: int, total: int | None, what: str) -> None:
    return None
