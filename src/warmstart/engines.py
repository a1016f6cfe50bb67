"""Engines: where the units of a large piece of work run. The work knows only `Engine`; engines know nothing of the work."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from warmstart.errors import ConfigError, WarmstartError

_PATIENCE = 10  # seconds to wait for a scheduler
_U = TypeVar("_U")
_R = TypeVar("_R")


class FailedUnit(Struct, Generic[_U]):
    """A unit of work that could not be done, and why."""

    unit: _U
    reason: str
    kind: str = ""  # name of the exception


class Engine(Protocol):
    """Runs a function on units of work, somewhere."""

    def map(self, function: Callable[[_U], _R], units: Iterable[_U]) -> Iterator[_R | FailedUnit[_U]]:
        """Yield the result of each unit as soon as it is done, or why it failed. A lost worker's unit runs again."""

    def close(self) -> None:
        """Stop the workers that this engine started."""


class InProcess:
    """Runs units one after the other, in this process."""

    def map(self, function: Callable[[_U], _R], units: Iterable[_U]) -> Iterator[_R | FailedUnit[_U]]:
        for unit in units:
            try:
                yield function(unit)
            except Exception as error:  # noqa: BLE001 - the edge of a unit: one that fails must not stop the others
                yield _describe(unit, error)

    def close(self) -> None:
        return None


class Processes:
    """Runs units in processes of this machine. A unit whose process dies runs again by itself; then it is reported.

    Units are taken as processes get free, so that there may be any number of them. Without a unit no process starts.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._pools: list[ProcessPoolExecutor] = []

    def map(self, function: Callable[[_U], _R], units: Iterable[_U]) -> Iterator[_R | FailedUnit[_U]]:
        waiting = iter(units)
        while lost := (yield from self._run(function, waiting, self._jobs, 2 * self._jobs)):
            suspects = iter(lost)  # the process of one of them died, and the others ran or waited beside it
            while dead := (yield from self._run(function, suspects, 1, 1)):
                yield from (FailedUnit(unit, "the process that read it was killed, twice") for unit in dead)

    def _run(
        self, function: Callable[[_U], _R], units: Iterator[_U], jobs: int, most: int
    ) -> Generator[_R | FailedUnit[_U], None, list[_U]]:
        """Run units, at most so many at a time, until there are no more or a process dies; return the units then lost."""
        lost: list[_U] = []
        running: dict[Future[_R], _U] = {}
        pool: ProcessPoolExecutor | None = None
        try:
            while True:
                for unit in islice(units, 0 if lost else most - len(running)):
                    pool = pool or self._start(jobs)
                    try:
                        running[pool.submit(function, unit)] = unit
                    except BrokenProcessPool:
                        lost.append(unit)
                if not running:
                    return lost
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    unit = running.pop(future)
                    error = future.exception()
                    if isinstance(error, BrokenProcessPool):
                        lost.append(unit)
                    else:
                        yield _describe(unit, future.result() if error is None else error)
        finally:
            if pool is not None:
                _stop(pool)
                self._pools.remove(pool)

    def _start(self, jobs: int) -> ProcessPoolExecutor:
        pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_follow_parent)
        self._pools.append(pool)
        return pool

    def close(self) -> None:
        for pool in self._pools:
            _stop(pool)


def _describe(unit: _U, result: _R | BaseException) -> _R | FailedUnit[_U]:
    if not isinstance(result, BaseException):
        return result
    kind = type(result).__name__
    return FailedUnit(unit, str(result) if isinstance(result, WarmstartError) else f"{kind}: {result}", kind)


def _stop(pool: ProcessPoolExecutor) -> None:
    """End a pool's processes, whatever they are doing."""
    workers = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join(5)


def _follow_parent() -> None:
    """End this worker together with the process that started it; Ctrl-C is that process's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def end_with_parent() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


class DaskEngine:
    """Runs units on a Dask cluster, which gives a lost worker's units to others."""

    def __init__(self, url: str) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise ConfigError("--engine needs Dask; install it: pip install 'warmstart[engine]'") from error
        try:
            connect: Any = Client
            self._client = connect(url, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise ConfigError(f"no Dask scheduler answers at {url}: {error}") from error

    def map(self, function: Callable[[_U], _R], units: Iterable[_U]) -> Iterator[_R | FailedUnit[_U]]:
        from distributed import as_completed as take_done

        next_done: Any = take_done
        every = list(units)
        futures = {
            future.key: (future, unit)
            for unit, future in zip(every, self._client.map(function, every, pure=False), strict=True)
        }
        for future in next_done([future for future, _unit in futures.values()], loop=self._client.loop):
            _future, unit = futures.pop(future.key)
            yield _describe(unit, future.exception() if future.status == "error" else future.result())

    def close(self) -> None:
        self._client.close()


def open_engine(url: str | None = None, jobs: int = 1) -> Engine:
    """Return the engine at an address (tcp://host:8786, tls://...), else processes of this machine."""
    if url is not None:
        return DaskEngine(url)
    return Processes(jobs) if jobs > 1 else InProcess()
