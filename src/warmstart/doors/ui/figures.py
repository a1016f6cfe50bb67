"""Figures that need the whole history: computed in the background, and kept while the store stays the same.

A page waits a moment for them. If they take longer it says so, shows the last ones with their time, and asks again. A figure
is never shown as current after the store has changed. Of a small store threads compute them; of a large one processes of
their own, because threads would take the interpreter from the pages.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Literal

from msgspec import Struct

from warmstart.doors.ui.background import BackgroundProcess, Compute
from warmstart.doors.ui.stores import OpenStores
from warmstart.errors import Refused, WarmstartError
from warmstart.ports import Progress

MOMENT = 0.15  # seconds that a page waits
LARGE = 2_000  # sessions from which processes compute the figures
_KEPT = 40  # figures


FigureCost = Literal["light", "quick", "slow"]  # light: independent of the store's size; slow: reads the whole history


class Figure(Struct):
    """A figure as far as it is known."""

    key: str  # for asking how far it is
    value: Any = None
    made: float | None = None  # seconds since the epoch; None: not computed yet
    is_current: bool = False
    done: int = 0  # of the computation that runs
    total: int | None = None
    problem: str = ""  # why it cannot be computed


class _Entry(Struct):
    figure: Figure
    state: int = -1  # of the store when the computation began
    running: threading.Event | None = None
    cost: FigureCost = "quick"


class Figures:
    """Computes figures, each once for each state of the store; the slow ones in a queue of their own."""

    def __init__(self, stores: OpenStores, clock: Callable[[], float] = time.time, *, large: int = LARGE) -> None:
        self._stores = stores
        self._clock = clock
        self._large = large
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._is_closed = False
        self._processes: list[BackgroundProcess] = []
        self._quick = self._start_workers(1)
        self._slow = self._start_workers(2)  # of their own, so that no quick figure waits for a slow one
        self._watch = stores.open()  # never writes: its view of others' changes counts them

    def get(
        self, name: Hashable, compute: Compute, *, wait: float | None = MOMENT, cost: FigureCost = "quick"
    ) -> Figure:
        """Return a figure; compute it unless it is current. `wait`: seconds; None: until it is there."""
        key = repr(name)
        with self._lock:
            if not self._watch.is_current():  # what was computed is about another store
                self._watch.close()
                self._entries.clear()
            state = self._watch.store.read_version()
            entry = self._entries.setdefault(key, _Entry(Figure(key)))
            self._entries.move_to_end(key)
            if entry.state != state and entry.running is None:
                entry.running = threading.Event()
                entry.state = state
                entry.cost = cost
                (self._slow if cost == "slow" else self._quick).put((entry, compute))
            running = entry.running
            while len(self._entries) > _KEPT:
                self._entries.popitem(last=False)
        if running is not None:
            running.wait(wait)
        figure = entry.figure
        current = entry.running is None and entry.state == state
        return Figure(
            key, figure.value, figure.made, current and not figure.problem, figure.done, figure.total, figure.problem
        )

    def look_up(self, key: str) -> Figure | None:
        """Return how far a figure is, without computing it; None if nobody asked for it."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        figure = entry.figure
        return Figure(key, None, figure.made, entry.running is None, figure.done, figure.total, figure.problem)

    def close(self) -> None:
        """End. A computation that runs is not waited for: it stops at its next step, or with its process."""
        self._is_closed = True
        for process in self._processes:
            process.close()
        for waiting in (self._quick, self._slow, self._slow):
            waiting.put(None)
        self._watch.close()

    def _start_workers(self, number: int) -> queue.SimpleQueue[tuple[_Entry, Compute] | None]:
        """Start threads that compute what is put into a queue. They never keep the program from ending."""
        waiting: queue.SimpleQueue[tuple[_Entry, Compute] | None] = queue.SimpleQueue()

        def work(process: BackgroundProcess) -> None:
            while (task := waiting.get()) is not None and not self._is_closed:
                self._run(process, *task)

        for _number in range(number):
            self._processes.append(BackgroundProcess(self._stores.settings))
            threading.Thread(target=work, args=(self._processes[-1],), name="warmstart-figures", daemon=True).start()
        return waiting

    def _run(self, process: BackgroundProcess, entry: _Entry, compute: Compute) -> None:
        figure = entry.figure

        def report(done: int, total: int | None, what: str) -> None:
            if self._is_closed:
                raise Refused("the server has ended")
            figure.done, figure.total = done, total

        try:
            figure.value = self._compute(process, entry, compute, report)
            figure.made, figure.problem = self._clock(), ""
        except WarmstartError as error:
            figure.problem = str(error)
        except Exception as error:  # noqa: BLE001 - the page reports it
            figure.problem = f"cannot be computed: {type(error).__name__}: {error}"
        finally:
            running, entry.running = entry.running, None
            if running is not None:
                running.set()

    def _compute(self, process: BackgroundProcess, entry: _Entry, compute: Compute, progress: Progress) -> Any:
        with self._stores.borrow() as ws:
            if entry.cost == "light" or ws.count_sessions() < self._large:
                before = ws.store.read_version()
                value = compute(ws, progress)
                with self._lock:
                    state = self._watch.store.read_version()
                    if ws.store.read_version() == before:  # only the computation itself wrote, to be faster next time
                        entry.state = state
                return value
        return process.run(compute, progress)
