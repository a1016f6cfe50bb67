"""The anchor follows the audit, a moment behind: a thread of its own, so that nobody who submits waits for it."""

from __future__ import annotations

import threading

from warmstart.confirm.audit.anchor import Anchor
from warmstart.confirm.problems import OpenProblems
from warmstart.confirm.store.protocol import ConfirmStore
from warmstart.errors import StoreError

_EVERY = 0.1  # seconds: what a crash may leave unanchored
_AGAIN = 1.0  # seconds after a failure: the next entry may be long in coming


class Anchorer:
    """Reads from a store of its own: the writer's is busy."""

    def __init__(self, store: ConfirmStore, anchor: Anchor, troubles: OpenProblems) -> None:
        self._store = store
        self._anchor = anchor
        self._troubles = troubles
        self._behind = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="confirm-anchor", daemon=True)
        self._thread.start()

    def call(self) -> None:
        """There is a new entry."""
        self._behind.set()

    def stop(self) -> None:
        """Anchor what there is, then end."""
        self._ending.set()
        self._behind.set()
        self._thread.join()
        self._advance()

    def _run(self) -> None:
        while not self._ending.is_set():
            self._behind.wait(_AGAIN if self._troubles.has("anchor") else None)
            self._behind.clear()
            self._advance()
            self._ending.wait(_EVERY)

    def _advance(self) -> None:
        try:
            self._anchor.advance(self._store)
            self._troubles.end("anchor")
        except StoreError as error:
            self._troubles.begin("anchor", str(error))
