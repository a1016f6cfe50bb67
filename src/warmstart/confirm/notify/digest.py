"""Several requests in one message: a flood of requests must not become a flood of messages, which teaches people to switch
them off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from warmstart.confirm.model import Request
from warmstart.confirm.notify.messages import Notification, escape
from warmstart.plurals import format_count

SINGLE = 3  # messages that a channel gets one by one within the time below; further requests are collected
COLLECT_FOR = 60.0  # seconds
_MOST_LINES = 8


class Pace:
    """Decides for one channel whether requests are announced one by one, together, or later."""

    def __init__(self) -> None:
        self._sent: list[float] = []  # when the latest messages were sent, in seconds

    def wait(self, count: int, now: float) -> float:
        """Return the seconds for which `count` requests should wait to be announced together; 0: announce them now."""
        return 0.0 if count and self.room(now) > 0 else COLLECT_FOR - (now - self._sent[0])

    def room(self, now: float) -> int:
        """Return how many messages may be sent now."""
        self._sent = [at for at in self._sent if now - at < COLLECT_FOR]
        return SINGLE - len(self._sent)

    def note(self, now: float) -> None:
        self._sent.append(now)


def write_digest(requests: Sequence[Request], page_url: str, kind: str, room: int) -> Notification:
    """Write one message about several requests: how many of which action and by whom, the high-risk ones first."""
    risky = sum(request.high_risk for request in requests)
    title = f"{format_count(len(requests), 'approval')} needed" + (f" ({risky} high risk)" if risky else "")
    groups = Counter((not request.high_risk, request.action, request.subject) for request in requests)
    lines = [
        f"{count} x {escape(action, kind)}, asked by {escape(subject, kind)}{'' if usual else ' (HIGH RISK)'}"
        for (usual, action, subject), count in sorted(groups.items(), key=lambda item: (item[0][0], -item[1]))
    ]
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], f"and {len(lines) - _MOST_LINES + 1} other kinds"]
    tail = f"Decide at {page_url}"
    while lines and sum(map(len, [title, *lines, tail])) + len(lines) + 8 > room:
        lines.pop()
    return Notification(title, "\n".join([*lines, tail]))
