"""class Warmstart: what every door calls. Stages stay pure; here they meet the store, the clock and the settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from warmstart import config
from warmstart.ingest.queue import Queue
from warmstart.ports import Progress
from warmstart.store import SessionRow, SqliteStore, TrialRow, TrialStore, UsageStore, open_store

if TYPE_CHECKING:
    from warmstart.dialects.compose import Seed
    from warmstart.ingest.read import Ingested
    from warmstart.ingest.records import Record
    from warmstart.insights import Insights
    from warmstart.model import Task
    from warmstart.review import Reviews
    from warmstart.templates.library import Learned, LearnedTemplate, TemplateLibrary
    from warmstart.trials.experiments import Experiments
    from warmstart.trials.report import Report
    from warmstart.usage.accounts import UsageAccounts


class Warmstart:
    """Remembers sessions and, from them, starts others experienced. Use as a context manager, or close() it."""

    def __init__(
        self, settings: config.Settings, clock: Callable[[], float] = time.time, *, patience: float = 60.0
    ) -> None:
        """`patience`: seconds that a call waits for another process's write."""
        self.settings = settings
        self._clock = clock
        self._patience = patience
        self._store: SqliteStore | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    @property
    def store(self) -> SqliteStore:
        """The store, opened when first needed."""
        if self._store is None:
            self._store = open_store(self.settings.store_url, patience=self._patience)
        return self._store

    def places(self) -> list[tuple[str, Path]]:
        """Where agents left transcripts on this machine: `(agent, path)`."""
        from warmstart.formats.places import usual_places

        return list(usual_places(self.settings.user_home, self.settings.places))

    def ingest(self, *paths: Path | str, progress: Progress | None = None) -> Ingested:
        """Read and remember; without a path, what agents left in their usual places and what their hooks queued.

        Doing it again changes nothing.
        """
        if paths:
            return self._ingest(paths, progress)
        return self._ingest_queued([path for _agent, path in self.places()], progress)

    def catch_up(self) -> Ingested:
        """Read only what agents' hooks have queued."""
        return self._ingest_queued([])

    def _ingest_queued(self, places: list[Path], progress: Progress | None = None) -> Ingested:
        queue = Queue(self.settings.home)
        taken = queue.take()
        waiting = [entry.transcript for entry in taken]
        elsewhere = [path for path in waiting if not any(path.is_relative_to(place) for place in places)]
        report = self._ingest([*places, *elsewhere], progress)
        queue.forget(taken)
        return report

    def _ingest(self, paths: Iterable[Path | str], progress: Progress | None = None) -> Ingested:
        from warmstart.ingest.read import Ingest
        from warmstart.ingest.records import Recorder

        run = Ingest(self.store, Recorder(self.settings.secrets), self.settings.tools, self._clock)
        report = run.run(paths, progress)
        if TrialStore(self.store).closable():
            closed = self.experiments.close()
            report.trials, report.retired, report.promoted = closed.trials, closed.retired, closed.promoted
        return report

    def sessions(self, **filters: Any) -> list[SessionRow]:
        """What is known: newest first. Filters: limit, offset, agent, verdict, project, since."""
        return self.store.list_sessions(**filters)

    def session(self, name: str) -> Record:
        """One session by its id, or by the unique beginning of its id or key."""
        from warmstart.ingest.records import Record

        row = self.store.find_session(name)
        return Record(row, tuple(self.store.calls_of(row.key)), tuple(UsageStore(self.store).spent_of(row.key)))

    def learn(self, **filters: Any) -> Learned:
        """Mine the remembered sessions for templates. What is well supported and unsuspicious becomes active.

        Filters: agent, since, project, verdict, limits (min_calls, max_error_rate, skip_end_reasons, max_examples), progress.
        """
        return self.templates.learn(**filters)

    def capture(self, session: str, **wishes: Any) -> LearnedTemplate:
        """One session into a template; raises Refused with the reason why not."""
        return self.templates.capture(session, **wishes)

    def insights(self, *, top: int = 10, **filters: Any) -> Insights:
        """What the remembered sessions tell: repeated errors, rates, the course of sessions, costs.

        Filters: agent, project, since, progress.
        """
        from warmstart.ingest.history import read_history
        from warmstart.insights import gather_insights

        return gather_insights(read_history(self.store, **filters), top=top)

    @property
    def templates(self) -> TemplateLibrary:
        """The templates: find, show, approve, retire, revoke, delete, import_, export, stats."""
        from warmstart.templates.library import TemplateLibrary

        return TemplateLibrary(self.store, self.settings, self._clock)

    @property
    def experiments(self) -> Experiments:
        """What seeds do: start, stop, list, close, record, report, weigh, power."""
        from warmstart.trials.experiments import Experiments

        return Experiments(self.store, self.settings, self._clock)

    @property
    def usage(self) -> UsageAccounts:
        """Tokens and costs: report, and set and add for callers that report them live."""
        from warmstart.usage.accounts import UsageAccounts

        return UsageAccounts(self.store, self.settings, self._clock)

    @property
    def reviews(self) -> Reviews:
        """A second look at sessions: review, list, show, apply, discard."""
        from warmstart.review import Reviews

        return Reviews(self.store, self.settings, self._clock)

    def record(self, session: str, path: Path | str) -> TrialRow:
        """Close a session's trial by hand with its transcript."""
        return self.experiments.record(session, path)

    def report(self, experiment: str | None = None) -> Report:
        """What seeds have done so far, compared with cold sessions."""
        return self.experiments.report(experiment)

    def provision(self, task: Task) -> Seed:
        """The seed for a task: chosen once a session and then the same for ever; without a session a preview."""
        from warmstart.seeds.provision import Provisioner

        return Provisioner(self.store, self.settings, self._clock).provision(task)
