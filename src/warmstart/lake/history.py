"""The sessions of a lake: which version of each counts, which project each folder belongs to, and their merged counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from warmstart.engines import Engine, FailedUnit, InProcess
from warmstart.ingest.projects import ProjectSettler
from warmstart.ingest.records import Record
from warmstart.insights.gather import InsightCounts, decode_counts, encode_counts, read_counts
from warmstart.lake.files import DAMAGED, Lake, LakeFile, open_lake
from warmstart.lake.folders import CALL_FACTS, LakeFolders, Places
from warmstart.lake.tables import read_records, read_table
from warmstart.lake.units import DigestingUnit, digest_unit, name_digests, place_row
from warmstart.model import PastSession, Problem
from warmstart.notes.counts import NoteCounts, decode_note_counts, encode_note_counts
from warmstart.notes.digest import decode_digest
from warmstart.plurals import format_count
from warmstart.ports import Progress
from warmstart.store.history import decode_session

_INDEX = ("key", "digest", "messages", "calls", "results", "folder", "remote", "started", "opening")
_MERGED_FILES = 64  # digests files of one unit


class MergingUnit(Struct, frozen=True, kw_only=True):
    """Digests to merge."""

    lake: str
    files: tuple[LakeFile, ...]
    kind: str  # insights, notes
    left_out: frozenset[tuple[str, str]] = frozenset()  # (file, session): older versions, copies and deleted ones
    agent: str | None = None
    project: str | None = None
    since: float | None = None


class MergedPart(Struct):
    """Merged counts on their way back from a unit."""

    insights: bytes = b""
    notes: list[tuple[str, str, str, bytes]] = []  # project, scope, agent, counts
    damaged: list[LakeFile] = []  # digests that could not be read


class LakeHistory:
    """What a lake's files hold, as one history.

    A session counts if its row and its calls can be read. A file of sessions whose calls cannot be read is incomplete: versions
    in other files count instead of its own.
    """

    def __init__(self, lake: Lake, engine: Engine | None = None) -> None:
        self.lake = lake
        self._engine = engine or InProcess()
        self.files = list(lake.list_files("sessions"))
        self._calls = {file.name.partition("-")[0]: file for file in lake.list_files("calls")}
        self.unread: set[int] = set()  # numbers of files of sessions that cannot be read
        self.incomplete = {number for number, file in enumerate(self.files) if file.name not in self._calls}
        self._damaged: dict[str, LakeFile] = {}  # digests that cannot be read, by name

    def calls_of(self, sessions: LakeFile) -> LakeFile | None:
        """Return the file with the calls of a file of sessions."""
        return self._calls.get(sessions.name)

    @cached_property
    def index(self) -> pa.Table:
        """The facts of all versions of all sessions that decide about versions, projects and forks."""
        tables = []
        for number, file in enumerate(self.files):
            table = read_table(self.lake, file, _INDEX)
            if table is None:
                self.unread.add(number)
            else:
                tables.append(table.append_column("file", pa.array([number] * table.num_rows, pa.int32())))
        if not tables:
            return pa.table({name: pa.array([], pa.string()) for name in _INDEX} | {"file": pa.array([], pa.int32())})
        return pa.concat_tables(tables)

    @cached_property
    def losers(self) -> dict[int, set[str]]:
        """The sessions of each file that do not count: older versions, copies, and what a person deleted."""
        losers: dict[int, set[str]] = {}
        deleted = self.lake.list_deleted()
        best: dict[str, tuple[bool, int, str, int]] = {}
        ranked = []
        for row in self._list_versions(deleted):
            length = row["messages"] + row["calls"] + row["results"]
            rank = (row["file"] not in self.incomplete, length, row["digest"], -row["file"])
            best[row["key"]] = max(rank, best.get(row["key"], rank))
            ranked.append((row["key"], rank))
        for key, rank in ranked:
            if rank != best[key] or key in deleted:
                losers.setdefault(-rank[3], set()).add(key)
        return losers

    def _list_versions(self, deleted: Iterable[str] = ()) -> list[dict[str, Any]]:
        """Return the rows of sessions of which there are several, and of deleted ones."""
        counts = self.index.group_by("key").aggregate([("key", "count")])
        doubled = counts.filter(pc.greater(counts["key_count"], 1))["key"]
        wanted = pa.concat_arrays([doubled.combine_chunks(), pa.array(sorted(deleted), pa.string())])
        found: list[dict[str, Any]] = []
        if len(wanted):
            found = self.index.filter(pc.is_in(self.index["key"], wanted)).to_pylist()
        return found

    def check_versions(self) -> None:
        """Read the calls of all sessions of which there are several, so that none counts whose calls are damaged."""
        for number in sorted({row["file"] for row in self._list_versions()} - self.incomplete):
            calls = self.calls_of(self.files[number])
            if calls is not None and self.lake.read(calls) is None:
                self._leave_out(number)

    def _leave_out(self, number: int) -> None:
        """Count other versions of the sessions of a file, because its calls cannot be read."""
        self.incomplete.add(number)
        self.__dict__.pop("losers", None)

    def is_superseded(self, number: int) -> bool:
        """Whether the calls of a file are missing, and other files hold all its sessions with their calls."""
        is_missing = number not in self.unread and self.calls_of(self.files[number]) is None
        return is_missing and not self._keys_of({number}) - self.losers.get(number, set())

    def _keys_of(self, numbers: Iterable[int]) -> set[str]:
        rows = self.index.filter(pc.is_in(self.index["file"], pa.array(sorted(numbers), pa.int32())))
        return set(rows["key"].to_pylist())

    def read_file(self, number: int) -> list[Record] | None:
        """Return the sessions of a file with their calls; None, and a problem, if they cannot be read."""
        file = self.files[number]
        if number in self.unread:
            return None
        calls = self.calls_of(file)
        if calls is None:
            reason = "the file with its calls is missing, so it was left out; ingest its transcripts again"
            self.lake.report([Problem(file.path, reason)])
            return None
        records = read_records(self.lake, file, calls)
        if records is None:
            self._leave_out(number)
        return records

    @cached_property
    def places(self) -> Places:
        """The project and root of every folder, as a store that holds these sessions would settle them."""
        folders = LakeFolders(self.index, self._read_calls)
        ProjectSettler(folders, lambda: 0.0).settle()  # type: ignore[arg-type]
        return folders.placed

    def _read_calls(self, number: int) -> Any:
        calls = self.calls_of(self.files[number])
        return read_table(self.lake, calls, CALL_FACTS) if calls is not None else None

    @cached_property
    def roots(self) -> dict[str, list[str]]:
        """The folders in which each project was worked on."""
        roots: dict[str, set[str]] = {}
        for folder, (project, root) in self.places.items():
            roots.setdefault(project, set()).add(root or folder)
        return {project: sorted(own) for project, own in roots.items()}

    def digest(self, progress: Progress | None = None) -> int:
        """Make the digests that are missing. Returns the number of files whose digests could not be written."""
        units = [unit for _file, unit in self.list_digests() if unit is not None]
        numbers = {file.name: number for number, file in enumerate(self.files)}
        unwritten = ""
        refused = 0
        for done, result in enumerate(self._engine.map(digest_unit, units)):
            if not isinstance(result, FailedUnit):
                self.lake.report(result.problems)
                if result.digests is None:
                    self._leave_out(numbers[result.sessions.name])
                else:
                    self._mend(result.digests)
            elif result.kind == "StoreError":
                unwritten = result.reason.removeprefix(f"{self.lake.url}: ")
                refused += 1
            else:
                path = result.unit.sessions.path
                self.lake.report([Problem(path, f"left out, because no digests could be made: {result.reason}")])
            if progress:
                progress(done, len(units), "digests")
        if refused:
            left_out = f"the digests of {format_count(refused, 'file')} of sessions could not be written"
            self.lake.report([Problem(self.lake.url, f"{unwritten}; {left_out}, so their sessions are not counted")])
        return refused

    def _mend(self, digests: LakeFile) -> None:
        """Note that damaged digests were made again."""
        made_of = digests.name.partition("-")[0]
        for damaged in [file for file in self._damaged.values() if file.name.startswith(made_of)]:
            del self._damaged[damaged.name]
            self.lake.mended.append(Problem(damaged.path, "the file was damaged and was made again"))
            if damaged.path != digests.path:
                self.lake.delete([damaged])

    def list_digests(self) -> Iterator[tuple[LakeFile | None, DigestingUnit | None]]:
        """Yield the digests of every file of sessions, or the unit that makes them; neither if it cannot be read."""
        listed = self.lake.list_files("digests")
        made = {file.name.partition("-")[0]: file for file in listed if file.name not in self._damaged}
        folders = self._folders_of_files()
        forks = self._find_forks()
        for number, file in enumerate(self.files):
            places = {folder: self.places[folder] for folder in folders.get(number, ()) if folder in self.places}
            name = name_digests(file, places)
            calls = self.calls_of(file)
            if name in made or number in self.unread:
                yield made.get(name), None
                continue
            if calls is None or number in self.incomplete:
                if not self.is_superseded(number):
                    self.read_file(number)  # reports why
                yield None, None
                continue
            projects = {project for project, _root in places.values()}
            yield (
                None,
                DigestingUnit(
                    lake=self.lake.url,
                    sessions=file,
                    calls=calls,
                    made_of=name,
                    places=places,
                    roots={project: self.roots[project] for project in projects},
                    forks=forks.get(number, {}),
                ),
            )

    def _folders_of_files(self) -> dict[int, list[str]]:
        folders: dict[int, list[str]] = {}
        pairs = self.index.select(["file", "folder"]).group_by(["file", "folder"]).aggregate([])
        for row in pairs.to_pylist():
            if row["folder"] is not None:
                folders.setdefault(row["file"], []).append(row["folder"])
        return folders

    def _find_forks(self) -> dict[int, dict[str, list[tuple[LakeFile, str]]]]:
        """Return for each file the sessions that begin with the same call as earlier ones, with those."""
        counts = self.index.group_by("opening").aggregate([("opening", "count")])
        shared = counts.filter(pc.greater(counts["opening_count"], 1))["opening"].combine_chunks()
        rows = self.index.filter(pc.is_in(self.index["opening"], shared)).to_pylist() if len(shared) else []
        groups: dict[str, list[tuple[float, str, int]]] = {}
        for row in rows:
            if row["opening"] is not None and row["key"] not in self.losers.get(row["file"], ()):
                groups.setdefault(row["opening"], []).append((row["started"] or 0.0, row["key"], row["file"]))
        forks: dict[int, dict[str, list[tuple[LakeFile, str]]]] = {}
        for members in groups.values():
            earlier: list[tuple[LakeFile, str]] = []
            for _started, key, number in sorted(members):
                if earlier:
                    forks.setdefault(number, {})[key] = list(earlier)
                calls = self.calls_of(self.files[number])
                if calls is not None:
                    earlier.append((calls, key))
        return forks

    def _merge(
        self, kind: str, agent: str | None, project: str | None, since: float | None, progress: Progress | None
    ) -> Iterator[MergedPart]:
        listed = list(self.list_digests())
        files = [(number, file) for number, (file, _unit) in enumerate(listed) if file is not None]
        losers = self.losers
        units = []
        for start in range(0, len(files), _MERGED_FILES):
            share = files[start : start + _MERGED_FILES]
            left_out = frozenset((file.name, key) for number, file in share for key in losers.get(number, ()))
            units.append(
                MergingUnit(
                    lake=self.lake.url,
                    files=tuple(file for _number, file in share),
                    kind=kind,
                    left_out=left_out,
                    agent=agent,
                    project=project,
                    since=since,
                )
            )
        for done, result in enumerate(self._engine.map(merge_unit, units)):
            if progress:
                progress(done, len(units), kind)
            if isinstance(result, FailedUnit):
                self.lake.report(Problem(file.path, f"not counted: {result.reason}") for file in result.unit.files)
            else:
                self._damaged |= {file.name: file for file in result.damaged}
                yield result

    def _has_mended(self, before: Iterable[str], progress: Progress | None) -> bool:
        """Make digests again that turned out to be damaged; whether there were any, so that counting starts again."""
        if not self._damaged.keys() - set(before):
            return False
        self.digest(progress)
        self.lake.report(Problem(file.path, DAMAGED) for file in self._damaged.values())
        return True

    def count_insights(
        self,
        agent: str | None = None,
        project: str | None = None,
        since: float | None = None,
        progress: Progress | None = None,
    ) -> InsightCounts:
        """Return the counts of the wanted sessions for insights."""
        while True:
            total, before = InsightCounts(), set(self._damaged)
            for part in self._merge("insights", agent, project, since, progress):
                total.merge(decode_counts(part.insights))
            if not self._has_mended(before, progress):
                return total

    def count_notes(
        self, project: str | None = None, progress: Progress | None = None
    ) -> dict[tuple[str, str], dict[str, NoteCounts]]:
        """Return the counts of every project and scope, or of one project's, by agent."""
        while True:
            merged: dict[tuple[str, str], dict[str, NoteCounts]] = {}
            before = set(self._damaged)
            for part in self._merge("notes", None, project, None, progress):
                for name, scope, agent, body in part.notes:
                    own = merged.setdefault((name, scope), {}).setdefault(agent, NoteCounts())
                    own.merge(decode_note_counts(body))
            if not self._has_mended(before, progress):
                return dict(sorted(merged.items()))

    def read_records(self) -> Iterator[Record]:
        """Yield the sessions that count, each in its project, file by file; at last versions in place of unreadable ones."""
        wanted: set[str] | None = None  # None: all
        while wanted is None or wanted:
            losers, known = self.losers, set(self.incomplete)
            for number in range(len(self.files)):
                left_out = losers.get(number, set())
                if self.is_superseded(number) or (
                    wanted is not None and not (self._keys_of({number}) - left_out) & wanted
                ):
                    continue
                for record in self.read_file(number) or ():
                    key = record.session.key
                    if key not in left_out and (wanted is None or key in wanted):
                        yield place_row(record, self.places)
            unread = self.incomplete - known
            wanted = {key for number in unread for key in self._keys_of({number}) - losers.get(number, set())}

    def read_sessions(self) -> Iterator[PastSession | None]:
        """Yield the sessions that count, for mining; None for one that cannot be read."""
        for record in self.read_records():
            yield decode_session(record.session, record.calls)


def merge_unit(unit: MergingUnit) -> MergedPart:
    """Merge the digests of some files."""
    lake = open_lake(unit.lake)
    insights = InsightCounts()
    notes: dict[tuple[str, str, str], NoteCounts] = {}
    damaged: list[LakeFile] = []
    body = "figures" if unit.kind == "insights" else "notes"
    for file in unit.files:
        table = read_table(lake, file, ("key", "project", "scope", "agent", "started", body))
        if table is None:
            damaged.append(file)
            continue
        for row in table.to_pylist():
            if (file.name, row["key"]) in unit.left_out or not _is_wanted(unit, row):
                continue
            if unit.kind == "insights":
                insights.merge(read_counts(row["figures"]))
            elif row["project"] and (digest := decode_digest(row["notes"])) is not None:
                notes.setdefault((row["project"], row["scope"], row["agent"]), NoteCounts()).add(digest)
    packed = [(*place, encode_note_counts(counts)) for place, counts in sorted(notes.items())]
    return MergedPart(encode_counts(insights.prune()), packed, damaged)


def _is_wanted(unit: MergingUnit, row: Mapping[str, object]) -> bool:
    started = row["started"]
    return (
        (unit.agent is None or row["agent"] == unit.agent)
        and (unit.project is None or row["project"] == unit.project)
        and (unit.since is None or (isinstance(started, float) and started >= unit.since))
    )
