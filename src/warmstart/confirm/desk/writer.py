"""The writer thread: callers queue changes and get Futures that are done when the change is on disk.

Changes that arrive while the disk is busy are committed together: one fsync serves them all, so a disk that manages a
hundred fsyncs a second makes hundreds of changes durable. Each change is a savepoint of its own: an error undoes only
that change.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from warmstart.confirm.problems import OpenProblems
from warmstart.confirm.store.protocol import ConfirmStore
from warmstart.errors import StoreError

T = TypeVar("T")
Change = Callable[[], Any]

_MOST = 256  # changes in one transaction


class _Job(NamedTuple):
    change: Change
    future: Future[Any]


class Writer:
    """Owns a store. Calls `on_commit` in its thread after every transaction."""

    def __init__(self, store: ConfirmStore, on_commit: Callable[[], None], problems: OpenProblems) -> None:
        self._store = store
        self._on_commit = on_commit
        self._problems = problems
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="confirm-writer", daemon=True)
        self._thread.start()

    def put(self, change: Callable[[], T | Exception]) -> Future[T]:
        """Queue a change. An exception that it returns goes to the caller and its writes stay; one that it raises undoes
        its writes."""
        future: Future[T] = Future()
        with self._gate:
            if self._closed:
                raise StoreError("the confirmation daemon is stopping; nothing was changed")
            self._jobs.put(_Job(change, future))
        return future

    def stop(self) -> None:
        """Write all queued changes, then end."""
        with self._gate:
            if self._closed:
                return
            self._closed = True
            self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        ending = False
        while not ending:
            batch, ending = self._gather()
            if batch:
                self._commit(batch)

    def _gather(self) -> tuple[list[_Job], bool]:
        """Wait for a change and take along those queued behind it. The flag says whether to end afterwards."""
        batch: list[_Job] = []
        job = self._jobs.get()
        while job is not None:
            if job.future.set_running_or_notify_cancel():
                batch.append(job)
            if len(batch) == _MOST:
                return batch, False
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return batch, False
        return batch, True

    def _commit(self, batch: list[_Job]) -> None:
        done: list[tuple[Future[Any], Any]] = []
        try:
            with self._store.writing():
                done = [(job.future, self._apply(job)) for job in batch]
        except Exception as error:  # noqa: BLE001 - every caller gets it
            self._problems.begin("store", str(error) or type(error).__name__)
            for job in batch:
                job.future.set_exception(error)
            return
        self._problems.end("store")
        for future, result in done:
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
        self._notify()

    def _apply(self, job: _Job) -> Any:
        try:
            with self._store.part():
                return job.change()
        except StoreError:
            raise  # a full disk or a damaged file: the whole transaction is lost
        except Exception as error:  # noqa: BLE001 - the caller gets it
            return error

    def _notify(self) -> None:
        try:
            self._on_commit()
            self._problems.end("waiters")
        except StoreError as error:
            self._problems.begin("waiters", str(error))
