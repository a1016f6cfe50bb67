"""Long work started from a page: it goes on when the page is closed, one at a time, in a process of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

from warmstart.config import Settings
from warmstart.doors.ui.background import BackgroundProcess, Compute
from warmstart.errors import Refused, WarmstartError
from warmstart.pipeline import Warmstart
from warmstart.plurals import format_count
from warmstart.ports import Progress

WorkKind = Literal["ingest", "learn"]


class WorkState(Struct):
    """How far a piece of work is."""

    kind: WorkKind
    started: float  # seconds since the epoch
    done: int = 0
    total: int | None = None  # None: not known yet
    ended: float | None = None  # None: it runs
    result: str = ""
    problem: str = ""  # why it failed


class Work:
    """Runs long work."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self._process = BackgroundProcess(settings)
        self._clock = clock
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.state: WorkState | None = None  # of the latest work; None: none was started

    def start(self, kind: WorkKind) -> WorkState:
        """Begin. Raise Refused while other work runs."""
        with self._lock:
            if self.state is not None and self.state.ended is None:
                raise Refused(f"{self.state.kind} is running; start it again when that has ended")
            self.state = WorkState(kind, self._clock())
            self._thread = threading.Thread(target=self._run, args=(self.state,), name="warmstart-work", daemon=True)
            self._thread.start()
            return self.state

    def close(self) -> None:
        """End the work that runs: what it has stored stays, and the next one goes on from there."""
        self._process.close()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the latest work has ended."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self, state: WorkState) -> None:
        def report(done: int, total: int | None, what: str) -> None:
            state.done, state.total = done, total

        try:
            state.result = self._process.run(_WORK[state.kind], report)
        except WarmstartError as error:
            state.problem = str(error)
        except Exception as error:  # noqa: BLE001 - the page reports it
            state.problem = f"{type(error).__name__}: {error}"
        finally:
            state.ended = self._clock()


def _ingest(ws: Warmstart, progress: Progress) -> str:
    report = ws.ingest(progress=progress)
    problems = f"; {format_count(len(report.problems), 'problem')}" if report.problems else ""
    return f"{format_count(report.sessions, 'session')} read: {report.new} new, {report.updated} updated{problems}"


def _learn(ws: Warmstart, progress: Progress) -> str:
    learned = ws.learn(progress=progress)
    notes = learned.notes.notes + learned.notes.proposed if learned.notes else 0
    return f"{format_count(len(learned.templates), 'template')} and {format_count(notes, 'note')}"


_WORK: Mapping[WorkKind, Compute] = {"ingest": _ingest, "learn": _learn}
