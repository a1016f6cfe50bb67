"""What people do with a lake: fill it, ask it, compact it, delete from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import structs

from warmstart.config import Settings
from warmstart.engines import Engine, FailedUnit, InProcess
from warmstart.insights.errors import NoteFinder
from warmstart.insights.types import Insights
from warmstart.lake.files import open_lake
from warmstart.lake.history import LakeHistory
from warmstart.lake.tables import read_sessions
from warmstart.lake.units import ReadingUnit, UnitReport, list_sources, read_unit, split_sources
from warmstart.lake.upkeep import Compacted, DeletedRows, FoundSession, compact, delete_session, find_session
from warmstart.model import PastSession, Problem
from warmstart.notes.counts import NoteCounts
from warmstart.plurals import format_count
from warmstart.ports import Progress
from warmstart.store.usage import to_spent
from warmstart.usage.amounts import day_of
from warmstart.usage.prices import PriceList
from warmstart.usage.report import Account, Groups, UsageQuery, UsageReport


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
        self.lake.problems, self.lake.mended = [], []
        with_calls = {file.name.partition("-")[0] for file in self.lake.list_files("calls")}
        known = tuple(file for file in self.lake.list_files("sessions") if file.name in with_calls)
        deleted = frozenset(self.lake.list_deleted())
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
        refused = ""
        for result in self._engine.map(read_unit, units):
            if isinstance(result, FailedUnit):
                done += len(result.unit.sources)
                if result.kind == "StoreError":
                    refused = result.reason.removeprefix(f"{self.lake.url}: ")
                    report.unwritten += len(result.unit.sources)
                else:
                    report.add(self._read_one_by_one(result))
            else:
                report.add(result)
                done += len(units[0].sources) if units else 0
            if progress:
                progress(min(done, len(sources)), len(sources), "transcripts")
        if refused:
            left_out = f"not all sessions of {format_count(report.unwritten, 'transcript')} were written"
            self.lake.report([Problem(self.lake.url, f"{refused}; {left_out}; mend that, and run the command again")])
        report.unwritten += self.history().digest(progress)
        report.problems += self.lake.problems
        report.problems.sort(key=lambda problem: (problem.path, problem.line or 0))
        return report

    def _read_one_by_one(self, failed: FailedUnit[ReadingUnit]) -> UnitReport:
        """Report the transcripts of a unit that could not be done; the others of the run are not affected."""
        names = [source.name for source in failed.unit.sources]
        return UnitReport(problems=[Problem(name, f"not read: {failed.reason}") for name in names])

    def _begin(self) -> None:
        """Forget what earlier questions left out, and make sure that there is a lake."""
        self.lake.problems, self.lake.mended = [], []
        self.lake.check_exists()

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
        found = history.count_insights(agent, project, since, progress).freeze(top, find_note=find_note)
        return structs.replace(found, unread_files=len(self.lake.problems))

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
        self._begin()
        prices = PriceList(self._settings.prices)
        groups = Groups(query, prices.cost)
        for account in self._list_accounts():
            groups.take(account)
        report = groups.report(f"{prices.table.source}, {prices.table.date}")
        return structs.replace(report, unread_files=len(self.lake.problems))

    def _list_accounts(self) -> Iterator[Account]:
        history = self.history()
        for number, file in enumerate(history.files):
            left_out = history.losers.get(number, ())
            for record in read_sessions(self.lake, file) or ():
                row = record.session
                if row.key in left_out:
                    continue
                project, _root = history.places.get(row.folder or "", (row.project, None))
                day = day_of(row.started if row.started is not None else row.ended)
                spent = [to_spent(part) for part in record.spent]
                yield Account(row.id, row.agent, row.model or "", project, day, spent)

    def _digested(self, progress: Progress | None) -> LakeHistory:
        self._begin()
        history = self.history()
        history.digest(progress)
        return history

    def compact(self, progress: Progress | None = None) -> Compacted:
        """Rewrite each project's month as one file, without older versions, copies and deleted sessions.

        A project's month with files that cannot be read is left alone.
        """
        self._begin()
        return compact(self.lake, self.history, progress)

    def find_session(self, name: str) -> FoundSession:
        """Find a session of the lake by its key or the agent's id, or by a unique prefix of either."""
        self._begin()
        return find_session(self.lake, name)

    def delete(self, session: str | FoundSession) -> DeletedRows:
        """Delete a session: its rows now, from every file that holds it, and for good."""
        found = self.find_session(session) if isinstance(session, str) else session
        return delete_session(self.lake, self.history(), found.key)
