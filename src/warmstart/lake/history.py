"""The sessions of a lake: which version of each counts, which project each folder belongs to, and their merged counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from warmstart.engines import Engine, FailedUnit, InProcess
from warmstart.ingest.projects import ProjectSettler
from warmstart.ingest.records import Record
from warmstart.insights.gather import InsightCounts, decode_counts, encode_counts, read_counts
from warmstart.lake.files import Lake, LakeFile, open_lake
from warmstart.lake.tables import read_records, read_table
from warmstart.lake.units import DigestingUnit, UnitReport, digest_unit, name_digests, place_row
from warmstart.model import PastSession, Problem
from warmstart.notes.counts import NoteCounts, decode_note_counts, encode_note_counts
from warmstart.notes.digest import decode_digest
from warmstart.ports import Progress
from warmstart.store import ProjectNameRow
from warmstart.store.history import decode_session
from warmstart.store.projects import SettledFolder

_INDEX = ("key", "digest", "messages", "calls", "results", "folder", "remote", "started", "opening")
_EVIDENCE = 40  # sessions of a folder whose calls are evidence, as in the store
_MERGED_FILES = 64  # digests files of one unit

Places = dict[str, tuple[str, str | None]]  # folder -> project and root


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
    problems: list[Problem] = []


class LakeHistory:
    """What a lake's files hold, as one history."""

    def __init__(self, lake: Lake, engine: Engine | None = None) -> None:
        self.lake = lake
        self._engine = engine or InProcess()
        self.files = list(lake.list_files("sessions"))
        self._calls = {file.name.partition("-")[0]: file for file in lake.list_files("calls")}

    def calls_of(self, sessions: LakeFile) -> LakeFile | None:
        """Return the file with the calls of a file of sessions."""
        return self._calls.get(sessions.name)

    @cached_property
    def index(self) -> pa.Table:
        """The facts of all versions of all sessions that decide about versions, projects and forks."""
        tables = []
        for number, file in enumerate(self.files):
            table = read_table(self.lake, file, _INDEX)
            if table is not None:
                tables.append(table.append_column("file", pa.array([number] * table.num_rows, pa.int32())))
        if not tables:
            return pa.table({name: pa.array([], pa.string()) for name in (*_INDEX, "file")})
        return pa.concat_tables(tables)

    @cached_property
    def losers(self) -> dict[int, set[str]]:
        """The sessions of each file that do not count: older versions, copies, and what a person deleted."""
        losers: dict[int, set[str]] = {}
        deleted = self.lake.list_deleted()
        counts = self.index.group_by("key").aggregate([("key", "count")])
        doubled = counts.filter(pc.greater(counts["key_count"], 1))["key"]
        wanted = pa.concat_arrays([doubled.combine_chunks(), pa.array(sorted(deleted), pa.string())])
        rows = self.index.filter(pc.is_in(self.index["key"], wanted)).to_pylist() if len(wanted) else []
        best: dict[str, tuple[int, str, int]] = {}
        ranked = []
        for row in rows:
            rank = (row["messages"] + row["calls"] + row["results"], row["digest"], -row["file"])
            best[row["key"]] = max(rank, best.get(row["key"], rank))
            ranked.append((row["key"], rank))
        for key, rank in ranked:
            if rank != best[key] or key in deleted:
                losers.setdefault(-rank[2], set()).add(key)
        return losers

    @cached_property
    def places(self) -> Places:
        """The project and root of every folder, as a store that holds these sessions would settle them."""
        folders = _LakeFolders(self)
        ProjectSettler(folders, lambda: 0.0).settle()  # type: ignore[arg-type]
        return folders.placed

    @cached_property
    def roots(self) -> dict[str, list[str]]:
        """The folders in which each project was worked on."""
        roots: dict[str, set[str]] = {}
        for folder, (project, root) in self.places.items():
            roots.setdefault(project, set()).add(root or folder)
        return {project: sorted(own) for project, own in roots.items()}

    def digest(self, progress: Progress | None = None) -> UnitReport:
        """Make the digests that are missing."""
        report = UnitReport()
        units = [unit for _file, unit in self.list_digests() if unit is not None]
        for done, result in enumerate(self._engine.map(digest_unit, units)):
            if isinstance(result, FailedUnit):
                report.problems.append(Problem(result.unit.sessions.path, f"no digests were made: {result.reason}"))
            else:
                report.add(result)
            if progress:
                progress(done, len(units), "digests")
        return report

    def list_digests(self) -> Iterator[tuple[LakeFile | None, DigestingUnit | None]]:
        """Yield the digests of every file of sessions, or the unit that makes them."""
        made = {file.name.partition("-")[0]: file for file in self.lake.list_files("digests")}
        folders = self._folders_of_files()
        forks = self._find_forks()
        for number, file in enumerate(self.files):
            places = {folder: self.places[folder] for folder in folders.get(number, ()) if folder in self.places}
            name = name_digests(file, places)
            if name in made:
                yield made[name], None
                continue
            projects = {project for project, _root in places.values()}
            yield (
                None,
                DigestingUnit(
                    lake=self.lake.url,
                    sessions=file,
                    calls=self.calls_of(file),
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
                self.lake.problems.append(Problem(result.unit.files[0].path, f"not counted: {result.reason}"))
            else:
                self.lake.problems += result.problems
                yield result

    def count_insights(
        self,
        agent: str | None = None,
        project: str | None = None,
        since: float | None = None,
        progress: Progress | None = None,
    ) -> InsightCounts:
        """Return the counts of the wanted sessions for insights."""
        total = InsightCounts()
        for part in self._merge("insights", agent, project, since, progress):
            total.merge(decode_counts(part.insights))
        return total

    def count_notes(
        self, project: str | None = None, progress: Progress | None = None
    ) -> dict[tuple[str, str], dict[str, NoteCounts]]:
        """Return the counts of every project and scope, or of one project's, by agent."""
        merged: dict[tuple[str, str], dict[str, NoteCounts]] = {}
        for part in self._merge("notes", None, project, None, progress):
            for name, scope, agent, body in part.notes:
                own = merged.setdefault((name, scope), {}).setdefault(agent, NoteCounts())
                own.merge(decode_note_counts(body))
        return dict(sorted(merged.items()))

    def read_records(self) -> Iterator[Record]:
        """Yield the sessions that count, each in its project, file by file."""
        for number, file in enumerate(self.files):
            left_out = self.losers.get(number, ())
            for record in read_records(self.lake, file, self.calls_of(file)):
                if record.session.key not in left_out:
                    yield place_row(record, self.places)

    def read_sessions(self) -> Iterator[PastSession | None]:
        """Yield the sessions that count, for mining; None for one that cannot be read."""
        for record in self.read_records():
            yield decode_session(record.session, record.calls)


def merge_unit(unit: MergingUnit) -> MergedPart:
    """Merge the digests of some files."""
    lake = open_lake(unit.lake)
    insights = InsightCounts()
    notes: dict[tuple[str, str, str], NoteCounts] = {}
    body = "figures" if unit.kind == "insights" else "notes"
    for file in unit.files:
        table = read_table(lake, file, ("key", "project", "scope", "agent", "started", body))
        if table is None:
            continue
        for row in table.to_pylist():
            if (file.name, row["key"]) in unit.left_out or not _is_wanted(unit, row):
                continue
            if unit.kind == "insights":
                insights.merge(read_counts(row["figures"]))
            elif row["project"] and (digest := decode_digest(row["notes"])) is not None:
                notes.setdefault((row["project"], row["scope"], row["agent"]), NoteCounts()).add(digest)
    packed = [(*place, encode_note_counts(counts)) for place, counts in sorted(notes.items())]
    return MergedPart(encode_counts(insights.prune()), packed, lake.problems)


def _is_wanted(unit: MergingUnit, row: Mapping[str, object]) -> bool:
    started = row["started"]
    return (
        (unit.agent is None or row["agent"] == unit.agent)
        and (unit.project is None or row["project"] == unit.project)
        and (unit.since is None or (isinstance(started, float) and started >= unit.since))
    )


class _LakeFolders:
    """The folders of a lake, for the same settler that gives a store's folders their projects."""

    def __init__(self, history: LakeHistory) -> None:
        self._history = history
        self.placed: Places = {}

    def names(self) -> dict[str, ProjectNameRow]:
        return {}

    def remotes(self) -> dict[str, str | None]:
        """Return the folders of all sessions, each with the latest remote that a transcript records."""
        index = self._history.index.select(["folder", "remote", "started"])
        pairs = index.group_by(["folder", "remote"]).aggregate([("started", "max")]).to_pylist()
        latest: dict[str, str | None] = {}
        for row in sorted(pairs, key=lambda row: (row["started_max"] or 0.0, row["remote"] or "")):
            if row["folder"] is not None:
                latest[row["folder"]] = row["remote"] or latest.get(row["folder"])
        return latest

    def calls_in(self, folder: str) -> list[tuple[str, str]]:
        """Return tool and arguments of calls in a folder that did not fail, of its earliest sessions."""
        index = self._history.index
        rows = index.filter(pc.equal(index["folder"], folder)).select(["key", "started", "file"]).to_pylist()
        rows.sort(key=lambda row: (row["started"] is not None, row["started"], row["key"]))
        wanted: dict[int, set[str]] = {}
        for row in rows[:_EVIDENCE]:
            wanted.setdefault(row["file"], set()).add(row["key"])
        calls: list[tuple[str, str]] = []
        for number, keys in wanted.items():
            file = self._history.calls_of(self._history.files[number])
            table = None
            if file is not None:
                table = read_table(self._history.lake, file, ("session_key", "tool", "arguments", "status"))
            for row in table.to_pylist() if table is not None else ():
                if row["session_key"] in keys and row["status"] != "error":
                    calls.append((row["tool"], row["arguments"]))
        return calls

    def place(self, _rows: Iterable[ProjectNameRow], folders: Sequence[SettledFolder]) -> int:
        self.placed = {one.folder: (one.project, one.root) for one in folders}
        return 0
