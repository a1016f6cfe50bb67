"""Opened stores for requests: each request has one to itself, so that none waits for another's reading."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager

from warmstart.config import Settings
from warmstart.errors import StoreError
from warmstart.pipeline import Warmstart
from warmstart.store import Store, locate_store

KEPT = 6  # opened stores that wait for requests
PATIENCE = 5.0  # seconds that a change waits for another process's write


class KeptWarmstart(Warmstart):
    """A facade for many requests: it notices when its store was replaced, and makes no new one where one was moved away."""

    def __init__(self, stores: OpenStores, patience: float) -> None:
        super().__init__(stores.settings, patience=patience)
        self._stores = stores

    @property
    def store(self) -> Store:
        if self._store is None:
            self._stores.check_place()
        opened = super().store
        self._stores.was_there = True
        return opened

    def is_current(self) -> bool:
        """Return whether it would open what it has open."""
        return self._store is None or self._store.is_current()


class OpenStores:
    """A pool of facades on one home."""

    def __init__(self, settings: Settings, patience: float = PATIENCE) -> None:
        self.settings = settings
        self._patience = patience
        self._idle: queue.LifoQueue[KeptWarmstart] = queue.LifoQueue()
        self._path = locate_store(settings.store_url)
        self.was_there = False  # whether a store was opened

    def open(self) -> KeptWarmstart:
        """Return a facade that is not lent to requests."""
        return KeptWarmstart(self, self._patience)

    def check_place(self) -> None:
        """Raise StoreError if the store's file was there and is gone: a new one would hide that."""
        if self.was_there and self._path is not None and not self._path.exists():
            raise StoreError(f"{self._path}: no longer there. Put it back, or make a new one: warmstart ingest")

    @contextmanager
    def borrow(self) -> Iterator[Warmstart]:
        """Lend a facade. After an error its store is closed: the next request opens the file as it is then."""
        ws = self._take()
        try:
            yield ws
        except BaseException:
            ws.close()
            raise
        if self._idle.qsize() < KEPT:
            self._idle.put(ws)
        else:
            ws.close()

    def _take(self) -> KeptWarmstart:
        """Return a facade on what is at the store's place now."""
        while True:
            try:
                ws = self._idle.get_nowait()
            except queue.Empty:
                return self.open()
            if ws.is_current():
                return ws
            ws.close()

    def close(self) -> None:
        """Close the stores that no request has."""
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return
