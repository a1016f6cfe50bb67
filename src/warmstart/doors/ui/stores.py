"""Opened stores for requests: each request has one to itself, so that none waits for another's reading."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager

from warmstart.config import Settings
from warmstart.pipeline import Warmstart

KEPT = 6  # opened stores that wait for requests
PATIENCE = 5.0  # seconds that a change waits for another process's write


class OpenStores:
    """A pool of facades on one home."""

    def __init__(self, settings: Settings, patience: float = PATIENCE) -> None:
        self.settings = settings
        self._patience = patience
        self._idle: queue.LifoQueue[Warmstart] = queue.LifoQueue()

    @contextmanager
    def borrow(self) -> Iterator[Warmstart]:
        """Lend a facade. After an error its store is closed: the next request opens the file as it is then."""
        try:
            ws = self._idle.get_nowait()
        except queue.Empty:
            ws = Warmstart(self.settings, patience=self._patience)
        try:
            yield ws
        except BaseException:
            ws.close()
            raise
        if self._idle.qsize() < KEPT:
            self._idle.put(ws)
        else:
            ws.close()

    def close(self) -> None:
        """Close the stores that no request has."""
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return
