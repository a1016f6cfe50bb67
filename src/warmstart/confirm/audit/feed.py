"""Who waits for a change hears of it at once. The audit is the feed: every change has its entry there, whichever
process made it; one look at the entries since the last look tells which requests changed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from warmstart.confirm.audit.chain import read_head
from warmstart.confirm.store.protocol import ConfirmStore

_AT_ONCE = 1_000


class Change(NamedTuple):
    """A request has an entry more in the audit."""

    sequence: int
    request: str


Listener = Callable[[list[Change]], None]


class Feed:
    """Listeners are called in the thread that looks; they must be quick."""

    def __init__(self, store: ConfirmStore) -> None:
        self.store = store
        self._looking = threading.Lock()
        self._listeners: list[Listener] = []
        self._seen = read_head(store).sequence
        self._version = store.version()

    @property
    def seen(self) -> int:
        return self._seen

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call it with every change from now on. Call what is returned to end that."""
        with self._looking:
            self._listeners.append(listener)

        def end() -> None:
            with self._looking:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return end

    def look(self) -> bool:
        """Tell the listeners what is new. Whether anything is."""
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
        """Changes after a sequence, the oldest first."""
        found = self.store.rows("changed_requests", {"since": since, "limit": _AT_ONCE})
        return [Change(sequence, request) for sequence, request in found]
