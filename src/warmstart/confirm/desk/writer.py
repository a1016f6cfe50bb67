"""The writer thread: callers queue changes and get Futures that are done when the change is on disk.

Changes that arrive while the disk is busy are committed together: one fsync serves them all, so a disk that manages a
hundred fsyncs a second makes hundreds of changes durable. Each change is a savepoint of its own: an error undoes only
that change.

A large change is committed by itself, and only while no other waits: a flood of them holds up nobody who decides.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from warmstart.confirm.audit.chain import read_head
from warmstart.confirm.audit.memory import WriterMemory
from warmstart.confirm.problems import OpenProblems
from warmstart.confirm.store.protocol import ConfirmStore
from warmstart.errors import StoreError

T = TypeVar("T")
Change = Callable[[WriterMemory], Any]

LARGE_CHANGE = 16 << 10  # bytes
_MOST = 256  # changes in one transaction
_LONGEST_WAIT = 1.0  # seconds that a large change may wait behind others


class _Job(NamedTuple):
    change: Change
    future: Future[Any]
    is_sure: bool  # it raises nothing after its first write, and may run twice
    since: float


class _Undone(Exception):
    """A change that should have been sure raised an error."""


class Writer:
    """Owns a store. Calls `on_commit` in its thread after every transaction."""

    def __init__(self, store: ConfirmStore, on_commit: Callable[[], None], problems: OpenProblems) -> None:
        self._store = store
        self._on_commit = on_commit
        self._problems = problems
        self._memory = WriterMemory()
        self._jobs: deque[_Job] = deque()
        self._large: deque[_Job] = deque()
        self._arrived = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="confirm-writer", daemon=True)
        self._thread.start()

    def put(
        self, change: Callable[[WriterMemory], T | Exception], *, is_sure: bool = False, is_large: bool = False
    ) -> Future[T]:
        """Queue a change. An exception that it returns goes to the caller and its writes stay; one that it raises undoes
        its writes. A change that `is_sure` raises none after its first write: it needs no savepoint."""
        future: Future[T] = Future()
        with self._arrived:
            if self._closed:
                raise StoreError("the confirmation daemon is stopping; nothing was changed")
            (self._large if is_large else self._jobs).append(_Job(change, future, is_sure, time.monotonic()))
            self._arrived.notify()
        return future

    def stop(self) -> None:
        """Write all queued changes, then end."""
        with self._arrived:
            if self._closed:
                return
            self._closed = True
            self._arrived.notify()
        self._thread.join()

    def _run(self) -> None:
        while jobs := self._gather():
            batch = [job for job in jobs if job.future.set_running_or_notify_cancel()]
            if batch:
                self._commit(batch)

    def _gather(self) -> list[_Job]:
        """Wait for changes and return those to commit together; none to end."""
        with self._arrived:
            while not (self._jobs or self._large or self._closed):
                self._arrived.wait()
            is_late = self._large and time.monotonic() - self._large[0].since > _LONGEST_WAIT
            if self._large and (is_late or not self._jobs):
                return [self._large.popleft()]
            return [self._jobs.popleft() for _ in range(min(_MOST, len(self._jobs)))]

    def _commit(self, batch: list[_Job]) -> None:
        try:
            try:
                results = self._write(batch)
            except _Undone:
                results = self._write([job._replace(is_sure=False) for job in batch])
        except Exception as error:  # noqa: BLE001 - every caller gets it
            self._memory.forget()
            self._problems.begin("store", str(error) or type(error).__name__)
            for job in batch:
                job.future.set_exception(error)
            return
        self._problems.end("store")
        for job, result in zip(batch, results, strict=True):
            if isinstance(result, Exception):
                job.future.set_exception(result)
            else:
                job.future.set_result(result)
        self._notify()

    def _write(self, batch: list[_Job]) -> list[Any]:
        """Make all changes in one transaction and return their results."""
        with self._store.writing():
            self._memory.begin(read_head(self._store))
            return [self._apply_sure(job) if job.is_sure else self._apply(job) for job in batch]

    def _apply_sure(self, job: _Job) -> Any:
        try:
            return job.change(self._memory)
        except StoreError:
            raise
        except Exception as error:
            self._memory.forget()
            raise _Undone from error

    def _apply(self, job: _Job) -> Any:
        try:
            with self._store.part():
                return job.change(self._memory)
        except StoreError:
            raise  # a full disk or a damaged file: the whole transaction is lost
        except Exception as error:  # noqa: BLE001 - the caller gets it
            self._memory.forget()
            self._memory.begin(read_head(self._store))
            return error

    def _notify(self) -> None:
        try:
            self._on_commit()
            self._problems.end("waiters")
        except StoreError as error:
            self._problems.begin("waiters", str(error))
