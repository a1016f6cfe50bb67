"""The class Warmstart, which every door calls: it connects the pure stages with the store, the clock and settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec import structs

from warmstart import config
from warmstart.errors import Refused, WarmstartError, explain
from warmstart.model import Brief, Problem, TaskType, Verdict
from warmstart.ports import Progress
from warmstart.store import SessionRow, Store, TrialRow, may_exist, open_store

if TYPE_CHECKING:
    from warmstart.archive.library import TranscriptArchive
    from warmstart.bundles.library import Bundles
    from warmstart.dialects.compose import Seed
    from warmstart.exports.formats import ExportFormat
    from warmstart.exports.otlp import SentSpans
    from warmstart.ingest.parallel import Workers
    from warmstart.ingest.project_book import ProjectBook
    from warmstart.ingest.records import Record
    from warmstart.ingest.run import Ingested
    from warmstart.insights import Insights
    from warmstart.insights.errors import NoteFinder
    from warmstart.lake.library import LakeLibrary
    from warmstart.model import Task
    from warmstart.notes.adviser import Adviser
    from warmstart.notes.briefs import ProjectBriefs
    from warmstart.notes.library import NoteLibrary
    from warmstart.notes.sharing import ProjectSharing
    from warmstart.notes.types import Advice, CallEvent
    from warmstart.notes.where import Where
    from warmstart.projects.gate import ProjectGate
    from warmstart.review import Reviews
    from warmstart.scopes import Border
    from warmstart.stats.designs import DesignPower
    from warmstart.store.copying import CopiedStore
    from warmstart.store.search import FoundCalls
    from warmstart.store.words import FoundSessions
    from warmstart.templates.forget import Forgotten
    from warmstart.templates.library import Learned, TemplateLibrary
    from warmstart.templates.mine import LearnLimits
    from warmstart.templates.register import LearnedTemplate
    from warmstart.trials.experiments import Experiments
    from warmstart.trials.report import Report
    from warmstart.usage.accounts import UsageAccounts


class Warmstart:
    """Stores sessions and starts new ones experienced. Use it as a context manager, or close() it."""

    def __init__(
        self, settings: config.Settings, clock: Callable[[], float] = time.time, *, patience: float = 60.0
    ) -> None:
        """`patience`: seconds that a call waits for another process's write."""
        self.settings = settings
        self._clock = clock
        self._patience = patience
        self._store: Store | None = None
        self._advisers: dict[tuple[bool, bool], Adviser] = {}  # by whether they check the disk and keep files

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the store, if it is open."""
        if self._store is not None:
            self._store.close()
            self._store = None

    @property
    def store(self) -> Store:
        """The store, opened when first needed."""
        if self._store is None:
            self._store = open_store(self.settings.store_url, patience=self._patience)
        return self._store

    def places(self) -> list[tuple[str, Path]]:
        """Return the folders and files with agents' transcripts on this machine, as `(agent, path)`."""
        from warmstart.formats.places import find_current_folder, usual_places

        return list(usual_places(self.settings.user_home, self.settings.places, find_current_folder()))

    def ingest(
        self,
        *paths: Path | str,
        projects: Iterable[str] | None = None,
        progress: Progress | None = None,
        jobs: int = 1,
    ) -> Ingested:
        """Read transcripts and store their sessions. Reading the same transcripts again changes nothing.

        Without a path, read the usual places of agents and the transcripts that their hooks queued. `projects`: store only
        their sessions ("*": all). Without it a file takes all, and a server, which others may read, `store_projects`. `jobs`:
        processes that read new and changed files, while this one stores what they read; the result is the same. A script that
        asks for several needs `if __name__ == "__main__":`, because each of them imports it.
        """
        if paths or projects is not None:
            places = paths or [path for _agent, path in self.places()]
            return self._ingest(places, progress, jobs=jobs, gate=self._open_gate(projects))
        report = self._ingest_queued([path for _agent, path in self.places()], progress, jobs)
        self.index_words(progress)
        return report

    def catch_up(self) -> Ingested:
        """Read only the transcripts that agents' hooks queued."""
        return self._ingest_queued([])

    def _ingest_queued(self, places: list[Path], progress: Progress | None = None, jobs: int = 1) -> Ingested:
        from warmstart.ingest.queue import Queue, split_session

        queue = Queue(self.settings.home)
        taken = queue.take()
        waiting = [entry.transcript for entry in taken]
        files = [Path(split_session(str(path))[0]) for path in waiting]
        elsewhere = [
            path
            for path, file in zip(waiting, files, strict=True)
            if not any(file.is_relative_to(place) for place in places)
        ]
        report = self._ingest([*places, *elsewhere], progress, jobs=jobs, gate=self._open_gate())
        report.problems += self._archive_queued(files)
        queue.forget(taken)
        return report

    def _archive_queued(self, files: list[Path]) -> list[Problem]:
        """Archive transcripts if the settings say so. A fault in the archive must not stop reading and learning."""
        if self.settings.archive == "off" or not files:
            return []
        try:
            return self.archive.add(files, redacted=self.settings.archive == "redacted").problems
        except OSError as error:
            return [Problem(str(self.settings.home / "archive"), explain(error))]

    def ingest_archive(self, progress: Progress | None = None, *, jobs: int = 1) -> Ingested:
        """Read the archived transcripts that are no longer in their old places, and store their sessions.

        A redacted copy of a stored session is left out: where a secret was in the request, the copy has another key.
        """
        gone = [
            entry
            for entry in self.archive.entries.list()
            if not Path(entry.path).exists()
            and not (entry.redacted and any(self.store.rows("session_by_key", (one.key,)) for one in entry.sessions))
        ]
        with self.archive.unpack(gone) as copies:
            origins = {copy: Path(entry.path) for copy, entry in copies.items()}
            return self._ingest(copies, progress, origins, jobs=jobs, gate=self._open_gate())

    def _ingest(
        self,
        paths: Iterable[Path | str],
        progress: Progress | None = None,
        origins: Mapping[Path, Path] | None = None,
        jobs: int = 1,
        gate: ProjectGate | None = None,
    ) -> Ingested:
        from warmstart.ingest.records import Recorder
        from warmstart.ingest.run import Ingest
        from warmstart.store import TrialStore

        recorder = Recorder(self.settings.secrets, self.settings.home)
        workers = self._start_workers(jobs) if jobs > 1 else None
        run = Ingest(self.store, recorder, self.settings.tools, self._clock, origins, workers, gate)
        report = run.run(paths, progress)
        if TrialStore(self.store).has_unmeasured():
            closed = self.experiments.close()
            report.trials, report.retired, report.promoted = closed.trials, closed.retired, closed.promoted
        self.notes.close_occurrences()
        return report

    def _start_workers(self, jobs: int) -> Workers:
        """Return processes that read for `ingest`; they start when there is something to read."""
        from warmstart.engines import Processes
        from warmstart.formats.places import find_current_folder
        from warmstart.ingest.parallel import Workers
        from warmstart.ingest.units import ReaderSetup

        settings = self.settings
        setup = ReaderSetup(
            store=settings.store_url,
            secrets=settings.secrets,
            home=settings.home,
            tools=settings.tools,
            folder=find_current_folder(),
        )
        return Workers(Processes(jobs), setup)

    def _open_gate(self, projects: Iterable[str] | None = None) -> ProjectGate | None:
        """Return the projects whose sessions the store takes: those that are named, or the settings'; None: all."""
        from warmstart.projects.gate import ProjectGate, open_gate
        from warmstart.scopes import EVERYWHERE
        from warmstart.store.projects import ProjectStore

        if projects is None:
            return open_gate(self.settings, lambda: ProjectStore(self.store))
        named = tuple(projects)
        return None if EVERYWHERE in named else ProjectGate(named, lambda: ProjectStore(self.store))

    def _admits(self, folder: str | None, scope: str) -> bool:
        gate = self._open_gate()
        return gate is None or gate.admits(folder, scope=scope)

    def sessions(
        self,
        *,
        limit: int | None = 50,
        offset: int = 0,
        agent: str | None = None,
        verdict: Verdict | None = None,
        project: str | None = None,
        since: float | None = None,
        source: str | None = None,
    ) -> list[SessionRow]:
        """Return stored sessions, newest first. `since`: seconds since the epoch."""
        project = self._find_project(project)
        return self.store.list_sessions(
            limit, offset, agent=agent, verdict=verdict, project=project, since=since, source=source
        )

    def count_sessions(
        self,
        *,
        agent: str | None = None,
        verdict: Verdict | None = None,
        project: str | None = None,
        since: float | None = None,
        source: str | None = None,
    ) -> int:
        """Return the number of stored sessions that match."""
        ((number,),) = self.store.rows("count_sessions", (agent, verdict, self._find_project(project), since, source))
        return int(number)

    def find_sessions(
        self,
        text: str,
        *,
        limit: int = 50,
        offset: int = 0,
        agent: str | None = None,
        verdict: Verdict | None = None,
        project: str | None = None,
        since: float | None = None,
        source: str | None = None,
    ) -> FoundSessions:
        """Return the sessions whose task, tools, commands, paths and errors have every word of a text, newest first.

        The last word may be the beginning of one. Results of calls are not searched; see `search_calls`.
        """
        from warmstart.store.words import SessionFilter, SessionWords

        wanted = SessionFilter(
            agent=agent, verdict=verdict, project=self._find_project(project), since=since, source=source
        )
        return SessionWords(self.store).find(text, wanted, limit=limit, offset=offset)

    def index_words(self, progress: Progress | None = None) -> int:
        """Make the sessions searchable that an older Warmstart stored; return how many."""
        from warmstart.store.words import SessionWords

        words = SessionWords(self.store)
        return words.complete(progress) if words.count_missing() else 0

    def search_calls(
        self,
        text: str,
        *,
        tool: str | None = None,
        errors: bool = False,
        agent: str | None = None,
        project: str | None = None,
        since: float | None = None,
        limit: int = 50,
    ) -> FoundCalls:
        """Return the calls that contain a text in their arguments, intent, cause or result, newest sessions first."""
        from warmstart.store.search import search_calls

        keys = self.store.rows("session_keys", (agent, self._find_project(project), since, None, None))
        return search_calls(self.store, text, tool=tool, errors=errors, keys={key for (key,) in keys}, limit=limit)

    def session(self, name: str) -> Record:
        """Return one session with its calls, by its id or by a unique prefix of its id or key."""
        from warmstart.ingest.records import Record
        from warmstart.store import UsageStore

        row = self.store.find_session(name)
        return Record(row, tuple(self.store.calls_of(row.key)), tuple(UsageStore(self.store).spent_of(row.key)))

    def export_sessions(
        self, rows: Iterable[SessionRow], format: ExportFormat
    ) -> Iterator[tuple[SessionRow, dict[str, Any] | None]]:
        """Yield stored sessions, redacted, in a format that other programs read; None where the transcript is gone.

        The store keeps no messages: each transcript is read again, from its place or from the archive.
        """
        from warmstart.exports.formats import FORMATS
        from warmstart.exports.redacted import redact_session
        from warmstart.exports.transcripts import read_again
        from warmstart.redact import Redactor

        redactor = Redactor(self.settings.secrets, share=True)
        for row, session in read_again(rows, self.archive):
            yield row, FORMATS[format](redact_session(session, redactor)) if session else None

    def send_spans(self, rows: Iterable[SessionRow], url: str) -> SentSpans:
        """Send the tool calls of stored sessions to an OpenTelemetry collector: names, times and outcomes."""
        from warmstart.exports.otlp import SpanSender
        from warmstart.redact import Redactor

        sender = SpanSender(url, Redactor(self.settings.secrets, share=True))
        return sender.send((row, self.store.calls_of(row.key)) for row in rows)

    def delete_session(self, name: str) -> Forgotten:
        """Delete a session, the templates and notes mined from it alone, and its examples in other templates.

        Its archived transcript is deleted too, unless that holds other sessions.
        """
        from warmstart.templates.forget import forget_session

        forgotten = forget_session(self.store, name, self._clock())
        self.notes.forget_unsupported()
        self.store.erase()
        deleted, others = self.archive.forget(forgotten.key)
        return structs.replace(forgotten, archived=len(deleted), still_archived=tuple(entry.id for entry in others))

    def learn(
        self,
        *,
        agent: str | None = None,
        since: float | None = None,
        project: str | None = None,
        verdict: Verdict | None = None,
        source: str | None = None,
        limits: LearnLimits | None = None,
        progress: Progress | None = None,
    ) -> Learned:
        """Mine stored sessions for templates. Those with enough support and nothing suspicious become active.

        `source`: only sessions that their agent ran for this place (Hermes: cli, telegram, cron ...).
        """
        project = self._find_project(project)
        learned = self.templates.learn(
            agent=agent, since=since, project=project, verdict=verdict, source=source, limits=limits, progress=progress
        )
        return structs.replace(learned, notes=self.notes.learn(project=project))

    def lake(self, url: str, *, engine: str | None = None, jobs: int = 1) -> LakeLibrary:
        """Open a lake at a folder or address: ingest, insights, usage, compact, delete.

        `engine`: address of a Dask scheduler that runs the work; without one, `jobs` processes of this machine do.
        """
        from warmstart.engines import open_engine
        from warmstart.lake.library import LakeLibrary

        return LakeLibrary(url, self.settings, open_engine(engine, jobs))

    def insights_of(
        self,
        lake: LakeLibrary,
        *,
        top: int = 10,
        agent: str | None = None,
        project: str | None = None,
        since: float | None = None,
        progress: Progress | None = None,
    ) -> Insights:
        """Return the insights of a lake's sessions, with this store's notes about errors."""
        notes = self.find_known_notes()
        return lake.insights(top=top, agent=agent, project=project, since=since, find_note=notes, progress=progress)

    def learn_from(self, lake: LakeLibrary, *, progress: Progress | None = None) -> Learned:
        """Mine a lake's sessions for templates and notes of this store. What was learned of other sessions stays."""
        merged = lake.count_notes(progress=progress)
        learned = self.templates.learn(history=lake.sessions(), progress=progress)
        notes = self.notes.learn(merged=merged)
        return structs.replace(learned, notes=notes, unread_files=len(lake.lake.problems))

    def capture(
        self,
        session: str,
        *,
        name: str | None = None,
        task_type: TaskType | None = None,
        max_examples: int | None = None,
        description: str | None = None,
        tags: tuple[str, ...] = (),
        anyway: bool = False,
        approve: bool = False,
    ) -> LearnedTemplate:
        """Make a template of one session. Raises Refused with the numbers if the session is not worth it.

        `anyway` and `approve` are a person's decisions, recorded as such: to overrule the gate, and to use the template.
        """
        return self.templates.capture(
            session,
            name=name,
            task_type=task_type,
            max_examples=max_examples,
            description=description,
            tags=tags,
            anyway=anyway,
            approve=approve,
        )

    def insights(
        self,
        *,
        top: int = 10,
        agent: str | None = None,
        project: str | None = None,
        since: float | None = None,
        show: int | None = None,
        progress: Progress | None = None,
        border: Border | None = None,
    ) -> Insights:
        """Return repeated errors, error rates, errors along sessions, and costs of the stored sessions.

        With `show`, the occurrences of the repeated error in that row are listed too.
        `border` limits them to what a session may see; None is for the machine's owner.
        """
        from warmstart.notes.merging import MergedDigests, WantedSessions

        wanted = WantedSessions(agent, self._find_project(project), since, border)
        merged = MergedDigests(self.store)
        counts = merged.count_insights(wanted, progress)
        occurrences = merged.find_occurrences(wanted, show, counts) if show is not None else []
        return counts.freeze(top, find_note=self.find_known_notes(), show=show, occurrences=occurrences)

    def find_known_notes(self) -> NoteFinder | None:
        """Return what finds the note about an error; without any notes there is nothing to find."""
        from warmstart.notes.of_errors import ErrorNotes

        notes = self.notes.list()
        return ErrorNotes(notes) if notes else None

    @property
    def archive(self) -> TranscriptArchive:
        """The archived transcripts: add, entries, restore, verify, delete."""
        from warmstart.archive.library import TranscriptArchive

        return TranscriptArchive(
            self.settings.home, self.settings.secrets, self._clock, lambda key: self.store.is_forgotten(key)
        )

    @property
    def projects(self) -> ProjectBook:
        """The projects: find, list, merge, alias, split."""
        from warmstart.ingest.project_book import ProjectBook

        return ProjectBook(self.store, self._clock)

    @property
    def sharing(self) -> ProjectSharing:
        """Whose a project's notes and templates are: list, share, unshare."""
        from warmstart.notes.sharing import ProjectSharing

        return ProjectSharing(self.store, self.notes, self.templates)

    def draw_border(self, scope: str, folder: str | None) -> Border:
        """Return what a session of a scope, in a working folder, may see. "*" stands for every project."""
        from warmstart.projects.resolve import resolve_project
        from warmstart.scopes import EVERYWHERE, Border
        from warmstart.store import ProjectStore

        if not folder or folder == EVERYWHERE:
            return Border(scope, folder or None)
        return Border(scope, resolve_project(ProjectStore(self.store), folder).name)

    def _find_project(self, text: str | None) -> str | None:
        """Return the identity of the project that a caller names; None for all projects."""
        return None if text is None else self.projects.find(text).name

    @property
    def templates(self) -> TemplateLibrary:
        """The templates: find, show, approve, retire, revoke, delete, build, import_, export, stats."""
        from warmstart.templates.library import TemplateLibrary

        return TemplateLibrary(self.store, self.settings, self._clock)

    @property
    def notes(self) -> NoteLibrary:
        """What projects know: list, show, approve, retire, edit, share, delete, brief, publish."""
        from warmstart.notes.library import NoteLibrary

        return NoteLibrary(self.store, self.settings, self._clock)

    @property
    def bundles(self) -> Bundles:
        """Notes and templates shared with a team: push, pull, check, waiting, trusted, key."""
        from warmstart.bundles.library import Bundles

        return Bundles(self.store, self.settings, self._clock, self.notes, self.templates)

    @property
    def _briefs(self) -> ProjectBriefs:
        from warmstart.notes.briefs import ProjectBriefs

        return ProjectBriefs(self.store, self.settings, self._clock)

    def brief_project(
        self,
        project: str | None,
        folder: Path | None = None,
        task: str = "",
        *,
        agent: str | None = None,
        scope: str = "",
        budget: int | None = None,
    ) -> Brief:
        """Return the brief of a project, or of the project at a folder, checked on that folder's disk."""
        place = self.projects.find(project or str(folder)) if project or folder else None
        root = Path(place.root) if place and place.root and folder else folder
        return self._briefs.brief(
            project=place.name if place else None,
            task=task,
            agent=agent,
            scope=scope,
            root=root,
            budget=self.settings.brief if budget is None else budget,
        )

    def brief(self, task: Task) -> Brief:
        """Return what the task's project knows, in a few lines for the start of its session."""
        place = self.projects.find(task.project) if task.project else None
        root = task.root or (place.root if place else None)
        return self._briefs.brief(
            project=place.name if place else None,
            task=task.text,
            agent=task.agent,
            scope=task.scope,
            root=Path(root) if root else None,
            budget=self.settings.brief if task.brief is None else task.brief,
            adds=task.adds,
        )

    def where(
        self,
        text: str,
        *,
        project: str | None = None,
        folder: Path | None = None,
        scope: str = "",
        limit: int = 10,
    ) -> Where:
        """Return the files that earlier requests like this one led to, in a project or in the project at a folder.

        Files that the folder no longer has are left out. Nothing is named where the request names its files itself, or
        where no earlier request is similar; `silent` then says why.
        """
        place = self.projects.find(project or str(folder)) if project or folder else None
        root = Path(place.root) if place and place.root and folder else folder
        return self._briefs.where(text, project=place.name if place else None, scope=scope, root=root, limit=limit)

    def _write_brief(self, task: Task) -> Brief:
        """Return the brief of a seed; a fault in notes must not cost a session its examples."""
        try:
            return self.brief(task)
        except (WarmstartError, OSError, ValueError):
            return Brief()

    def advise(self, event: CallEvent, *, disk: bool = True, kept: bool = False) -> Advice:
        """Return what to do about a call that an agent is about to make, or has made.

        Each session is shown a note once, and the showing is recorded; a session of a cold arm gets nothing. `disk`: check
        on the real disk that a note still holds; without it the call is taken for a replay, and nothing is recorded.
        `kept`: remember in files which notes sessions were shown, for callers that open Warmstart anew for each call.
        """
        if (disk, kept) not in self._advisers:
            self._advisers[disk, kept] = self._make_adviser(disk=disk, kept=kept)
        return self._advisers[disk, kept].advise(event)

    def _make_adviser(self, *, disk: bool, kept: bool) -> Adviser:
        from warmstart.notes.adviser import Adviser
        from warmstart.notes.exposure import Exposure
        from warmstart.notes.index_files import list_levels

        home, levels = self.settings.home, list_levels(self.settings.advice)
        exposure = Exposure(home, self.find_arm, self._clock, self.find_withholding) if disk else None
        return Adviser(home, levels, disk=disk, exposure=exposure, kept=kept)

    def now(self) -> float:
        """Return the time, in seconds since the epoch."""
        return self._clock()

    def find_arm(self, session: str) -> str | None:
        """Return the arm that a session runs in; None if it was never provisioned. No store is made for that."""
        if self._store is None and not may_exist(self.settings.store_url):
            return None
        from warmstart.redact.identifiers import IdentifierRedactor
        from warmstart.store import TrialStore

        trial = TrialStore(self.store).trial(IdentifierRedactor(self.settings.secrets).identify(session))
        return trial.given if trial else None

    def find_withholding(self) -> tuple[str, float, str] | None:
        """Return how notes are tried now: the experiment, the share of occurrences withheld, and the salt; None: not at all.

        The standing holdout applies unless an experiment runs; one that compares sessions withholds no occurrence.
        """
        if self._store is None and not may_exist(self.settings.store_url):
            return None
        from warmstart.arms import HOLDOUT, STANDING, find_withheld
        from warmstart.store import TrialStore

        running = TrialStore(self.store).running()
        if running is None:
            share = min(self.settings.holdout, STANDING)
            return (HOLDOUT, share, "warmstart withheld") if share > 0 else None
        share = find_withheld(running.shares) if running.design == "occurrence" else 0.0
        return (running.name, share, running.salt) if share > 0 else None

    @property
    def experiments(self) -> Experiments:
        """The effect of seeds: start, stop, list, close, record, report, weigh, power."""
        from warmstart.trials.experiments import Experiments

        return Experiments(self.store, self.settings, self._clock)

    def compare_designs(
        self, *, cold_share: float = 0.5, power: float = 0.8, since: float | None = None
    ) -> list[DesignPower]:
        """Return for each design of experiments how many weeks it takes at this store's traffic; sessions first."""
        from warmstart.trials.power import plan_sessions

        designs = list(self.notes.plan_trials(cold_share=cold_share, power=power, since=since))
        try:
            sessions = plan_sessions(self.experiments.power(cold_share=cold_share, power=power, since=since))
        except Refused:  # too few sessions, or no errors
            return designs
        return [sessions, *designs]

    @property
    def usage(self) -> UsageAccounts:
        """Tokens and costs: report; set and add for callers that report them live."""
        from warmstart.usage.accounts import UsageAccounts

        return UsageAccounts(self.store, self.settings, self._clock)

    @property
    def reviews(self) -> Reviews:
        """A second look at sessions: review, list, show, apply, discard."""
        from warmstart.notes.for_review import ReviewedNotes
        from warmstart.review import Reviews
        from warmstart.store.notes import NoteStore

        notes = ReviewedNotes(self.notes, NoteStore(self.store).roots)
        return Reviews(self.store, self.settings, self._clock, notes)

    def copy_store(
        self,
        source: str,
        target: str,
        *,
        projects: Iterable[str] | None = None,
        personal: bool = True,
        progress: Progress | None = None,
    ) -> CopiedStore:
        """Copy one store into another, empty one, and verify it. `projects`: only these; `personal`: also personal scopes."""
        from warmstart.ingest.project_book import ProjectBook
        from warmstart.store.copying import CopyChoice, StoreCopy

        if not may_exist(source):
            raise Refused(f"there is no store at {source}")
        with open_store(source) as opened:
            names = None
            if projects is not None:
                book = ProjectBook(opened, self._clock)
                names = [book.find_known(name) for name in projects]
            with open_store(target) as other:
                return StoreCopy(opened, other, CopyChoice(names, personal=personal)).run(progress)

    def record(self, session: str, path: Path | str) -> TrialRow:
        """Measure a session's trial with a transcript that you name."""
        return self.experiments.record(session, path)

    def report(self, experiment: str | None = None, *, metric: str | None = None) -> Report:
        """Return the measured effect of seeds so far, compared with cold sessions; `metric` puts another one first."""
        return self.experiments.report(experiment, metric=metric)

    def place_session(
        self, session: str, agent: str, folder: str | None, scope: str = "", *, summary: str = ""
    ) -> None:
        """Record where an agent's session runs and whose it is, for agents whose files do not say. The first place counts.

        `summary`: digest of the summary with which the conversation began, if it began with one.
        """
        from warmstart.redact.identifiers import IdentifierRedactor
        from warmstart.store import PlaceRow, PlaceStore

        clean = IdentifierRedactor(self.settings.secrets).clean
        if not session.strip() or clean(session) != session:  # its session is stored under another id
            return
        if not self._admits(folder, scope):
            return
        PlaceStore(self.store).put(
            PlaceRow(
                session=session,
                agent=agent,
                folder=clean(folder) if folder else None,
                scope=scope,
                summary=summary,
                at=self._clock(),
            )
        )

    def withdraw_seed(self, session: str, why: str, *, shown: bool = False) -> bool:
        """Empty a session's seed for good, because its provider refuses it or its context is full; True if it had one.

        The session keeps its arm. `shown`: it has run with the seed; otherwise its trial counts as not seeded.
        """
        from warmstart.seeds.provision import Provisioner

        return Provisioner(self.store, self.settings, self._clock).withdraw(session, why, shown=shown)

    def find_withdrawn(self, session: str) -> str:
        """Return why a session's seed was withdrawn; empty if it was not."""
        from warmstart.seeds.provision import Provisioner

        seed = Provisioner(self.store, self.settings, self._clock).find_withdrawn(session)
        return seed.withdrawn if seed is not None else ""

    def provision(self, task: Task) -> Seed:
        """Return the seed for a task: chosen once per session, then repeated unchanged; a preview without a session.

        A shared store records no trial of a session whose project it does not take (`store_projects`): its seed is empty.
        """
        from warmstart.seeds.provision import Provisioner, check_texts, decline

        check_texts(task)
        if task.session is not None and not self._admits(task.project, task.scope):
            return decline(task, "this store is shared, and store_projects does not name the project")
        return Provisioner(self.store, self.settings, self._clock, self._write_brief).provision(task)
