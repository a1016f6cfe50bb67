"""Failed logins and refused accesses are recorded, but a flood of them must not fill the disk: the first of a minute
one by one, the rest as a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warmstart.confirm.desk import Desk
from warmstart.confirm.model import Identity

_ONE_BY_ONE = 30
_MINUTE = 60_000


class FailureLog:
    """Used in one thread."""

    def __init__(self, desk: Desk, now: Callable[[], int]) -> None:
        self._desk = desk
        self._now = now
        self._minute = 0
        self._count = 0

    def note(self, event: str, who: Identity | str, **details: Any) -> Any:
        """Record it. A Future that is done when it is on the disk; None where it is only counted."""
        minute = self._now() // _MINUTE
        if minute != self._minute:
            self.close()
            self._minute, self._count = minute, 0
        self._count += 1
        return self._desk.log(event, who, **details) if self._count <= _ONE_BY_ONE else None

    def close(self) -> None:
        """Record how many more there were."""
        if (more := self._count - _ONE_BY_ONE) > 0:
            self._desk.log("more_failures", "daemon", count=more)
        self._count = 0
