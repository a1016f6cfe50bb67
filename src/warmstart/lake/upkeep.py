"""Keep a lake small and delete sessions from it. A file that cannot be read is never rewritten: it may be repaired."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pyarrow.compute as pc
from msgspec import Struct, field

from warmstart.errors import NotFound, Refused
from warmstart.lake.files import Lake, LakeFile, TableName, name_folder
from warmstart.lake.history import LakeHistory
from warmstart.lake.tables import encode_table, read_table
from warmstart.lake.units import write_records
from warmstart.model import Problem
from warmstart.plurals import format_count
from warmstart.ports import Progress

Members = list[tuple[int, LakeFile]]  # files of sessions of one project's month, with their numbers


class Compacted(Struct, kw_only=True):
    """The result of one compaction."""

    before: int = 0  # files
    after: int = 0
    dropped: int = 0  # older versions, copies and deleted sessions
    left_alone: int = 0  # months of projects with files that cannot be read
    problems: list[Problem] = field(default_factory=list)


class FoundSession(Struct, frozen=True):
    """A session of a lake."""

    key: str
    id: str  # the agent's own; empty: the session is deleted already
    agent: str


class DeletedRows(Struct, kw_only=True):
    """What was deleted of a session, by table."""

    key: str
    rows: dict[TableName, int]
    files: dict[TableName, int]  # that held them: rewritten without them; digests are deleted and made again
    problems: list[Problem] = field(default_factory=list)  # files that cannot be read and may still hold it

    def count(self, table: TableName, rows: int, files: int = 1) -> None:
        self.rows[table] += rows
        self.files[table] += files


def compact(lake: Lake, open_history: Callable[[], LakeHistory], progress: Progress | None = None) -> Compacted:
    """Rewrite each project's month as one file, without older versions, copies and deleted sessions."""
    history = open_history()
    history.check_versions()
    report = Compacted(before=len(history.files))
    months: dict[tuple[str, str], Members] = {}
    for number, file in enumerate(history.files):
        months.setdefault((file.project, file.month), []).append((number, file))
    left_out = history.losers
    left_alone = {(file.project, file.month) for number, file in enumerate(history.files) if number in history.unread}
    for done, (place, members) in enumerate(sorted(months.items())):
        if progress:
            progress(done, len(months), place[1])
        is_wanted = len(members) > 1 or any(number in left_out for number, _file in members)
        if is_wanted and (place in left_alone or not _merge_month(lake, history, members, left_out, report)):
            left_alone.add(place)
    after = open_history()
    after.digest(progress)
    _clear(lake, after, left_alone)
    report.after = len(after.files)
    report.left_alone = len(left_alone)
    report.problems = lake.problems
    return report


def _merge_month(
    lake: Lake, history: LakeHistory, members: Members, left_out: Mapping[int, set[str]], report: Compacted
) -> bool:
    """Write the rows of some files as one, then delete these files; nothing, if one of them cannot be read.

    A crash in between leaves copies, which count once.
    """
    records = []
    dropped = 0
    for number, _file in members:
        losers = left_out.get(number, set())
        if history.is_superseded(number):
            dropped += len(losers)
            continue
        found = history.read_file(number)
        if found is None:
            return False
        kept = [record for record in found if record.session.key not in losers]
        dropped += len(found) - len(kept)
        records += kept
    _project, place = members[0]
    written = write_records(lake, place.project, place.month, records).name if records else ""
    old = [file for _number, file in members if file.name != written]
    lake.delete([*old, *(calls for file in old if (calls := history.calls_of(file)) is not None)])
    report.dropped += dropped
    return True


def _clear(lake: Lake, history: LakeHistory, left_alone: Iterable[tuple[str, str]]) -> None:
    """Delete digests and calls that belong to no file of sessions, and give digests the folder of their sessions.

    Nothing is deleted beside files that cannot be read. Earlier versions encoded the folders of digests twice.
    """
    wanted = set()
    for sessions, (digests, _unit) in zip(history.files, history.list_digests(), strict=True):
        if digests is not None and digests.project != sessions.project and (body := lake.read(digests)) is not None:
            made_of = digests.name.partition("-")[0]
            digests = lake.write("digests", sessions.project, sessions.month, body, made_of)
        if digests is not None:
            wanted.add(digests.path)
    known = {file.name for file in history.files}
    kept = {(folder, month) for project, month in left_alone for folder in (project, name_folder(project))}
    old = [file for file in lake.list_files("digests") if file.path not in wanted]
    old += [file for file in lake.list_files("calls") if file.name.partition("-")[0] not in known]
    lake.delete(file for file in old if (file.project, file.month) not in kept)


def find_session(lake: Lake, name: str) -> FoundSession:
    """Find a session by its key or the agent's id, or by a unique prefix of either, as in a store."""
    found: dict[str, FoundSession] = {}
    for file in lake.list_files("sessions"):
        table = read_table(lake, file, ("key", "id", "agent"))
        for row in table.to_pylist() if table is not None and name else ():
            if row["key"].startswith(name) or row["id"].startswith(name):
                found[row["key"]] = FoundSession(row["key"], row["id"], row["agent"])
    if name in found:
        return found[name]
    matches = [one for one in found.values() if one.id == name] or sorted(found.values(), key=lambda one: one.key)
    if len(matches) > 1:
        listed = ", ".join(f"{one.key[:12]} ({one.agent} {one.id})" for one in matches[:5])
        raise Refused(f"{name} matches several sessions: {listed}{', ...' if len(matches) > 5 else ''}")
    if matches:
        return matches[0]
    if name in lake.list_deleted():
        return FoundSession(name, "", "")
    unread = f"; {format_count(len(lake.problems), 'file')} could not be read" if lake.problems else ""
    raise NotFound(f"no session {name!r} in {lake.url}{unread}; see: warmstart sessions list")


def delete_session(lake: Lake, history: LakeHistory, key: str) -> DeletedRows:
    """Delete the rows of a session from every file that holds it, and mark it so that no writer adds it again."""
    lake.mark_deleted(key)
    report = DeletedRows(key=key, rows=dict.fromkeys(_TABLES, 0), files=dict.fromkeys(_TABLES, 0))
    holders = set(history.index.filter(pc.equal(history.index["key"], key))["file"].to_pylist())
    for number in sorted(holders):
        _drop_rows(lake, history, number, report)
    known = {file.name for file in history.files}
    orphans = [file for file in lake.list_files("calls") if file.name.partition("-")[0] not in known]
    for file in (*orphans, *lake.list_files("digests")):
        column = "key" if file.table == "digests" else "session_key"
        table = read_table(lake, file, (column,))
        rows = table[column].to_pylist().count(key) if table is not None else 0
        if rows:
            report.count(file.table, rows)
            lake.delete([file])
    report.problems = lake.problems
    return report


_TABLES: tuple[TableName, ...] = ("sessions", "calls", "digests")


def _drop_rows(lake: Lake, history: LakeHistory, number: int, report: DeletedRows) -> None:
    """Rewrite a file of sessions and its calls without a session."""
    file = history.files[number]
    calls = history.calls_of(file)
    if calls is None:  # its other sessions stay incomplete, so that their transcripts are ingested again
        table = read_table(lake, file)
        if table is None:
            return
        others = table.filter(pc.not_equal(table["key"], report.key))
        if others.num_rows:
            lake.write("sessions", file.project, file.month, encode_table(others))
    else:
        found = history.read_file(number)
        if found is None:
            return
        kept = [record for record in found if record.session.key != report.key]
        report.count("calls", sum(len(record.calls) for record in found if record.session.key == report.key))
        if kept:
            write_records(lake, file.project, file.month, kept)
        lake.delete([calls])
    report.count("sessions", 1)
    lake.delete([file])
