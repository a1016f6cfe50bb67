"""Record failed logins and refused accesses without letting a flood of them fill the disk: the first of each minute one
by one, the rest as a count.

Known callers have a count of their own per route, so that no flood hides what somebody else does. Otherwise an agent
could send thirty junk tokens and then try, unrecorded, to approve its own request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from warmstart.confirm.desk.desk import Desk
from warmstart.confirm.model import Identity

_ONE_BY_ONE = 30
_MINUTE = 60_000
_MOST_KINDS = 1_000  # per minute; further kinds share a count


class _Kind(NamedTuple):
    """Failures that are counted together."""

    who: Identity | str
    event: str
    route: str


class FailureLog:
    """Records failures of one daemon. Use it in one thread."""

    def __init__(self, desk: Desk, now: Callable[[], int]) -> None:
        self._desk = desk
        self._now = now
        self._minute = 0
        self._counts: Counter[_Kind] = Counter()

    def note(self, event: str, who: Identity | str, route: str = "", **details: Any) -> Any:
        """Record a failure. Return a Future that is done when it is on disk, or None if it is only counted."""
        minute = self._now() // _MINUTE
        if minute != self._minute:
            self.close()
            self._minute = minute
        kind = self._find_kind(event, who, route)
        self._counts[kind] += 1
        return self._desk.log(event, who, **details) if self._counts[kind] <= _ONE_BY_ONE else None

    def has_noted(self, event: str, who: Identity, route: str) -> bool:
        """Return whether this caller has failed like this within the minute."""
        return _Kind(who, event, route) in self._counts

    def close(self) -> None:
        """Record how many failures of each kind were only counted."""
        for kind, count in self._counts.items():
            if (more := count - _ONE_BY_ONE) > 0:
                self._desk.log("more_failures", kind.who, what=kind.event, route=kind.route, count=more)
        self._counts.clear()

    def _find_kind(self, event: str, who: Identity | str, route: str) -> _Kind:
        kind = _Kind(who, event, route if isinstance(who, Identity) else "")
        is_one_too_many = kind not in self._counts and len(self._counts) >= _MOST_KINDS
        return _Kind("daemon", event, "") if is_one_too_many else kind
