"""Failed logins and refused accesses are recorded, but a flood of them must not fill the disk: the first of a minute
one by one, the rest as a number.

Nobody's flood hides what somebody else does: who is known has a count of their own, for each route. Otherwise an agent
could send thirty junk tokens and then try, unseen, to approve itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from warmstart.confirm.desk.desk import Desk
from warmstart.confirm.model import Identity

_ONE_BY_ONE = 30
_MINUTE = 60_000
_MOST_KINDS = 1_000  # a minute; what comes after those shares a count


class _Kind(NamedTuple):
    """What is counted together."""

    who: Identity | str
    event: str
    route: str


class FailureLog:
    """Used in one thread."""

    def __init__(self, desk: Desk, now: Callable[[], int]) -> None:
        self._desk = desk
        self._now = now
        self._minute = 0
        self._counts: Counter[_Kind] = Counter()

    def note(self, event: str, who: Identity | str, route: str = "", **details: Any) -> Any:
        """Record it. A Future that is done when it is on the disk; None where it is only counted."""
        minute = self._now() // _MINUTE
        if minute != self._minute:
            self.close()
            self._minute = minute
        kind = self._find_kind(event, who, route)
        self._counts[kind] += 1
        return self._desk.log(event, who, **details) if self._counts[kind] <= _ONE_BY_ONE else None

    def close(self) -> None:
        """Record how many more there were, of whom and where."""
        for kind, count in self._counts.items():
            if (more := count - _ONE_BY_ONE) > 0:
                self._desk.log("more_failures", kind.who, what=kind.event, route=kind.route, count=more)
        self._counts.clear()

    def _find_kind(self, event: str, who: Identity | str, route: str) -> _Kind:
        kind = _Kind(who, event, route if isinstance(who, Identity) else "")
        is_one_too_many = kind not in self._counts and len(self._counts) >= _MOST_KINDS
        return _Kind("daemon", event, "") if is_one_too_many else kind
