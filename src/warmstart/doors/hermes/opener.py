"""Warmstart inside Hermes: opened when first needed, one for all threads of a process, impatient."""

from __future__ import annotations

import os
import threading

from warmstart import config
from warmstart.pipeline import Warmstart
from warmstart.store import SqliteStore, open_store

PATIENCE = 2.0  # seconds: an agent is waiting, and its host takes waiting for being stuck


class HurriedWarmstart(Warmstart):
    """Gives up on a store that another process keeps busy, instead of holding up the agent."""

    def __init__(self, settings: config.Settings) -> None:
        super().__init__(settings)
        self._opening = threading.Lock()

    @property
    def store(self) -> SqliteStore:
        if self._store is None:
            with self._opening:  # threads of several sessions may come at once
                if self._store is None:
                    self._store = open_store(self.settings.store_url, patience=PATIENCE)
        return self._store


class Opener:
    """Call it for the process's Warmstart. A forked process gets its own: SQLite's connections do not survive a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: tuple[int, Warmstart] | None = None

    def __call__(self) -> Warmstart:
        opened = self._opened
        if opened is None or opened[0] != os.getpid():
            opened = self._open(os.getpid())
        return opened[1]

    def _open(self, pid: int) -> tuple[int, Warmstart]:
        with self._lock:
            if self._opened is None or self._opened[0] != pid:
                self._opened = (pid, HurriedWarmstart(config.load()))
            return self._opened
