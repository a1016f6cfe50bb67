"""What does not work just now. The log tells it once, when it begins, when it changes and when it is over; people who are
logged in are told what it is about, without paths and addresses."""

from __future__ import annotations

import logging
import threading
from typing import Literal

log = logging.getLogger("warmstart.confirm")

Kind = Literal["store", "anchor", "deadlines", "waiters", "policy"]
_MEANINGS: dict[Kind, str] = {
    "store": "the daemon cannot write: requests and decisions are refused",
    "anchor": "the audit's anchor does not follow the audit: a cut end could not be seen",
    "deadlines": "the daemon cannot see what is due: requests may expire late",
    "waiters": "changes are not told to who waits: load the page again",
    "policy": "another daemon on this database goes by another policy",
}


class OpenProblems:
    """Shared by the threads of a desk."""

    def __init__(self) -> None:
        self._now: dict[Kind, str] = {}
        self._turn = threading.Lock()

    def begin(self, kind: Kind, why: str) -> None:
        with self._turn:
            if self._now.get(kind) == why:
                return
            self._now[kind] = why
        log.error("%s: %s", _MEANINGS[kind], why)

    def end(self, kind: Kind) -> None:
        if kind not in self._now:  # almost always, and asked after every commit
            return
        with self._turn:
            ended = self._now.pop(kind, None)
        if ended is not None:
            log.warning("over: %s", _MEANINGS[kind])

    def has(self, kind: Kind) -> bool:
        return kind in self._now

    def tell(self) -> str:
        """For people; empty while all is well."""
        with self._turn:
            return "; ".join(meaning for kind, meaning in _MEANINGS.items() if kind in self._now)
