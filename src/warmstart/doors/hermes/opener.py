"""Warmstart inside Hermes: opened when first needed, and shared by all threads of a process."""

from __future__ import annotations

import os
import threading

from warmstart import config
from warmstart.pipeline import Warmstart
from warmstart.store import Store

PATIENCE = 2.0  # seconds to wait for a busy store: an agent waits, and Hermes takes waiting for being stuck


class SharedWarmstart(Warmstart):
    """Opens its store once, whichever thread needs it first."""

    def __init__(self, settings: config.Settings) -> None:
        super().__init__(settings, patience=PATIENCE)
        self._opening = threading.Lock()

    @property
    def store(self) -> Store:
        with self._opening:
            return super().store


class Opener:
    """Returns the process's Warmstart. A forked process gets its own: SQLite connections do not survive a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: tuple[int, Warmstart] | None = None

    def __call__(self) -> Warmstart:
        opened = self._opened
        if opened is None or opened[0] != os.getpid():
            opened = self._open(os.getpid())
        return opened[1]

    def close(self) -> None:
        """Close the store: the process ends. The one of a parent process is left to it."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None and opened[0] == os.getpid():
            opened[1].close()

    def _open(self, pid: int) -> tuple[int, Warmstart]:
        with self._lock:
            if self._opened is None or self._opened[0] != pid:
                self._opened = (pid, SharedWarmstart(config.load()))
            return self._opened
