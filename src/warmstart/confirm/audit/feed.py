"""Wakes listeners when a request changes. The audit is the feed: every change has an entry, whichever process made it,
so the entries since the last look show which requests changed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from warmstart.confirm.audit.chain import read_head
from warmstart.confirm.store.protocol import ConfirmStore

_AT_ONCE = 1_000


class Change(NamedTuple):
    """A new audit entry about a request."""

    sequence: int
    request: str


Listener = Callable[[list[Change]], None]


class Feed:
    """Calls listeners in the thread that looks; they must be quick."""

    def __init__(self, store: ConfirmStore) -> None:
        self.store = store
        self._looking = threading.Lock()
        self._listeners: list[Listener] = []
        self._seen = read_head(store).sequence
        self._version = store.version()

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call the listener with every change from now on. Return a function that ends this."""
        with self._looking:
            self._listeners.append(listener)

        def end() -> None:
            with self._looking:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return end

    def look(self) -> bool:
        """Pass new changes to the listeners. Return whether anything was written since the last look."""
        with self._looking:
            if (version := self.store.version()) == self._version:
                return False
            self._version = version
            while changes := self.read(self._seen):
                self._seen = changes[-1].sequence
                for listener in self._listeners:
                    listener(changes)
                if len(changes) < _AT_ONCE:
                    break
            return True

    def read(self, since: int) -> list[Change]:
        """Return changes after a sequence, oldest first."""
        rows = self.store.rows("changed_requests", {"since": since, "limit": _AT_ONCE})
        return [Change(sequence, request) for sequence, request in rows]
