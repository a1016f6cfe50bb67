"""Problems that are open right now. The log reports each one when it begins, changes and ends; logged-in people see what
it means for them, without paths and addresses."""

from __future__ import annotations

import logging
import threading
from typing import Literal

log = logging.getLogger("warmstart.confirm")

Kind = Literal["store", "anchor", "elsewhere", "deadlines", "waiters", "policy"]
_MEANINGS: dict[Kind, str] = {
    "store": "the daemon cannot write: requests and decisions are refused",
    "anchor": "the audit's anchor does not follow the audit: a cut end could not be detected",
    "elsewhere": "the audit's anchor cannot be written to its place elsewhere: an old copy could not be detected",
    "deadlines": "the daemon cannot read deadlines: requests may expire late",
    "waiters": "changes do not reach open pages: reload the page",
    "policy": "another daemon on this database uses a different policy",
}


class OpenProblems:
    """The open problems of a desk, shared by its threads."""

    def __init__(self) -> None:
        self._reasons: dict[Kind, str] = {}
        self._lock = threading.Lock()

    def begin(self, kind: Kind, why: str) -> None:
        with self._lock:
            if self._reasons.get(kind) == why:
                return
            self._reasons[kind] = why
        log.error("%s: %s", _MEANINGS[kind], why)

    def end(self, kind: Kind) -> None:
        if kind not in self._reasons:  # the usual case, checked after every commit without the lock
            return
        with self._lock:
            ended = self._reasons.pop(kind, None)
        if ended is not None:
            log.warning("over: %s", _MEANINGS[kind])

    def has(self, kind: Kind) -> bool:
        return kind in self._reasons

    def describe(self) -> str:
        """Return all open problems as one line for people; empty if there are none."""
        with self._lock:
            return "; ".join(meaning for kind, meaning in _MEANINGS.items() if kind in self._reasons)
