"""One thread writes; whoever wants a change queues it and gets a Future that is done when it is on the disk.

Changes that come in while the disk is busy are committed together: one wait for the disk serves them all, so that
hundreds a second are durable on a disk that manages a hundred waits. Each is a part of its own: an error in one undoes
only that one.
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
    """Owns a store. `on_commit` is called after every transaction, in the writer's thread."""

    def __init__(
        self, store: ConfirmStore, on_commit: Callable[[], None], troubles: OpenProblems | None = None
    ) -> None:
        self._store = store
        self._on_commit = on_commit
        self._troubles = troubles or OpenProblems()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="confirm-writer", daemon=True)
        self._thread.start()

    def put(self, change: Callable[[], T | Exception]) -> Future[T]:
        """Queue a change. An exception that it returns is for the caller, and what it wrote stays; one that it raises
        undoes what it wrote."""
        future: Future[T] = Future()
        with self._gate:
            if self._closed:
                raise StoreError("the confirmation daemon is stopping; nothing was changed")
            self._jobs.put(_Job(change, future))
        return future

    def stop(self) -> None:
        """Write what is queued, then end."""
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
        """Wait for a change, and take those along that wait behind it."""
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
        except Exception as error:  # noqa: BLE001 - every caller is told
            self._troubles.begin("store", str(error) or type(error).__name__)
            for job in batch:
                job.future.set_exception(error)
            return
        self._troubles.end("store")
        for future, result in done:
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
        self._tell()

    def _apply(self, job: _Job) -> Any:
        try:
            with self._store.part():
                return job.change()
        except StoreError:
            raise  # the disk is full or the file is damaged: the whole transaction is lost
        except Exception as error:  # noqa: BLE001 - the caller is told
            return error

    def _tell(self) -> None:
        try:
            self._on_commit()
            self._troubles.end("waiters")
        except StoreError as error:
            self._troubles.begin("waiters", str(error))
