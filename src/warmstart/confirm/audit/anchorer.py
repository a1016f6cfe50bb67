"""A thread that keeps the anchor up to date, so that no submitter waits for it."""

from __future__ import annotations

import threading

from warmstart.confirm.audit.anchor import Anchor
from warmstart.confirm.problems import OpenProblems
from warmstart.confirm.store.protocol import ConfirmStore
from warmstart.errors import StoreError

_EVERY = 0.1  # seconds: the longest that an entry stays unanchored if the daemon crashes
_AGAIN = 1.0  # seconds until the next attempt after a failure, even without a new entry


class Anchorer:
    """Advances the anchor after new entries. Reads through a store of its own because the writer's is busy."""

    def __init__(self, store: ConfirmStore, anchor: Anchor, problems: OpenProblems) -> None:
        self._store = store
        self._anchor = anchor
        self._problems = problems
        self._behind = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="confirm-anchor", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Anchor soon: there is a new entry."""
        self._behind.set()

    def stop(self) -> None:
        """Anchor the newest entry, then end."""
        self._ending.set()
        self._behind.set()
        self._thread.join()
        self._advance()

    def _run(self) -> None:
        while not self._ending.is_set():
            self._behind.wait(_AGAIN if self._problems.has("anchor") else None)
            self._behind.clear()
            self._advance()
            self._ending.wait(_EVERY)

    def _advance(self) -> None:
        try:
            self._anchor.advance(self._store)
            self._problems.end("anchor")
        except StoreError as error:
            self._problems.begin("anchor", str(error))
