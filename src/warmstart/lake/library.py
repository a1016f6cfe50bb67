"""What people do with a lake: fill it, ask it, compact it, delete from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from warmstart.config import Settings
from warmstart.engines import Engine, FailedUnit, InProcess
from warmstart.insights.errors import NoteFinder
from warmstart.insights.types import Insights
from warmstart.lake.files import LakeFile, open_lake
from warmstart.lake.history import LakeHistory
from warmstart.lake.tables import read_records, read_table
from warmstart.lake.units import ReadingUnit, UnitReport, list_sources, read_unit, split_sources, write_records
from warmstart.model import PastSession, Problem
from warmstart.notes.counts import NoteCounts
from warmstart.ports import Progress
from warmstart.store.usage import to_spent
from warmstart.usage.amounts import day_of
from warmstart.usage.prices import PriceList
from warmstart.usage.report import Account, Groups, UsageQuery, UsageReport


class Compacted(Struct, kw_only=True):
    """The result of one compaction."""

    before: int = 0  # files
    after: int = 0
    dropped: int = 0  # older versions, copies and deleted sessions
    problems: list[Problem] = []


class LakeLibrary:
    """A lake, and the engine that works on it."""

    def __init__(self, url: str, settings: Settings, engine: Engine | None = None) -> None:
        self.lake = open_lake(url)
        self._settings = settings
        self._engine = engine or InProcess()

    def ingest(
        self, paths: Iterable[Path | str], *, personal: bool = False, progress: Progress | None = None
    ) -> UnitReport:
        """Read transcripts and add the sessions that the lake does not hold; then make their digests.

        `personal`: add sessions of agents' other profiles, chats and people too; else only the machine's own user's.
        """
        report = UnitReport()
        sources = list_sources(paths, report.skip, report.problems)
        known, deleted = tuple(self.lake.list_files("sessions")), frozenset(self.lake.list_deleted())
        units = [
            ReadingUnit(
                lake=self.lake.url,
                sources=share,
                secrets=self._settings.secrets,
                home=str(self._settings.home),
                tools=self._settings.tools,
                personal=personal,
                known=known,
                deleted=deleted,
            )
            for share in split_sources(sources)
        ]
        done = 0
        for result in self._engine.map(read_unit, units):
            if isinstance(result, FailedUnit):
                done += len(result.unit.sources)
                report.add(self._read_one_by_one(result))
            else:
                report.add(result)
                done += len(units[0].sources) if units else 0
            if progress:
                progress(min(done, len(sources)), len(sources), "transcripts")
        report.problems += self.history().digest(progress).problems
        report.problems.sort(key=lambda problem: (problem.path, problem.line or 0))
        return report

    def _read_one_by_one(self, failed: FailedUnit[ReadingUnit]) -> UnitReport:
        """Report the transcripts of a unit that could not be done; the others of the run are not affected."""
        names = [source.name for source in failed.unit.sources]
        return UnitReport(problems=[Problem(name, f"not read: {failed.reason}") for name in names])

    def close(self) -> None:
        """Stop the engine's workers."""
        self._engine.close()

    def history(self) -> LakeHistory:
        """Return what the lake holds now."""
        return LakeHistory(self.lake, self._engine)

    def insights(
        self,
        *,
        top: int = 10,
        agent: str | None = None,
        project: str | None = None,
        since: float | None = None,
        find_note: NoteFinder | None = None,
        progress: Progress | None = None,
    ) -> Insights:
        """Return repeated errors, error rates and costs of the lake's sessions."""
        history = self._digested(progress)
        return history.count_insights(agent, project, since, progress).freeze(top, find_note=find_note)

    def count_notes(
        self, project: str | None = None, progress: Progress | None = None
    ) -> dict[tuple[str, str], dict[str, NoteCounts]]:
        """Return what the sessions of every project met, for mining notes."""
        return self._digested(progress).count_notes(project, progress)

    def sessions(self) -> Iterator[PastSession | None]:
        """Yield the lake's sessions, for mining templates."""
        return self.history().read_sessions()

    def usage(self, query: UsageQuery) -> UsageReport:
        """Report tokens and costs of the lake's sessions."""
        prices = PriceList(self._settings.prices)
        groups = Groups(query, prices.cost)
        for account in self._list_accounts():
            groups.take(account)
        return groups.report(f"{prices.table.source}, {prices.table.date}")

    def _list_accounts(self) -> Iterator[Account]:
        history = self.history()
        for number, file in enumerate(history.files):
            left_out = history.losers.get(number, ())
            for record in read_records(self.lake, file, None):
                row = record.session
                if row.key in left_out:
                    continue
                project, _root = history.places.get(row.folder or "", (row.project, None))
                day = day_of(row.started if row.started is not None else row.ended)
                spent = [to_spent(part) for part in record.spent]
                yield Account(row.id, row.agent, row.model or "", project, day, spent)

    def _digested(self, progress: Progress | None) -> LakeHistory:
        history = self.history()
        self.lake.problems += history.digest(progress).problems
        return history

    def compact(self, progress: Progress | None = None) -> Compacted:
        """Rewrite each project's month as one file, without older versions, copies and deleted sessions."""
        history = self.history()
        losers = history.losers
        report = Compacted(before=len(history.files))
        folders: dict[tuple[str, str], list[tuple[int, LakeFile]]] = {}
        for number, file in enumerate(history.files):
            folders.setdefault((file.project, file.month), []).append((number, file))
        for done, ((_project, month), members) in enumerate(sorted(folders.items())):
            if progress:
                progress(done, len(folders), month)
            if len(members) > 1 or any(number in losers for number, _file in members):
                self._rewrite(history, members, report, lambda number: losers.get(number, set()))
        after = self.history()
        after.digest(progress)
        wanted = {file.name for file, _unit in after.list_digests() if file is not None}
        known = {file.name for file in after.files}
        self.lake.delete(file for file in self.lake.list_files("digests") if file.name not in wanted)
        self.lake.delete(file for file in self.lake.list_files("calls") if file.name.partition("-")[0] not in known)
        report.after = len(after.files)
        report.problems = self.lake.problems
        return report

    def delete(self, key: str) -> int:
        """Delete a session: its rows now, from every file that holds it, and for good. Returns the number of files."""
        self.lake.mark_deleted(key)
        history = self.history()
        report = Compacted()
        holders = [
            (number, file)
            for number, file in enumerate(history.files)
            if (table := read_table(self.lake, file, ("key",))) is not None and key in table["key"].to_pylist()
        ]
        for number, file in holders:
            self._rewrite(history, [(number, file)], report, lambda _number: {key})
        return len(holders)

    def _rewrite(
        self,
        history: LakeHistory,
        members: list[tuple[int, LakeFile]],
        report: Compacted,
        find_left_out: Callable[[int], set[str]],
    ) -> None:
        """Write the rows of some files as one, then delete these files. A crash in between leaves copies, which count once."""
        records = []
        for number, file in members:
            left_out = find_left_out(number)
            for record in read_records(self.lake, file, history.calls_of(file)):
                if record.session.key in left_out:
                    report.dropped += 1
                else:
                    records.append(record)
        project = next((r.session.remote or r.session.folder or "" for r in records), "")
        name = write_records(self.lake, project, members[0][1].month, records) if records else ""
        old = [file for _number, file in members if file.name != name]
        calls = [call for file in old if (call := history.calls_of(file)) is not None]
        listed = list(history.list_digests())
        digests = [digest for number, file in members if file in old and (digest := listed[number][0]) is not None]
        self.lake.delete([*old, *calls, *digests])
