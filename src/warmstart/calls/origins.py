"""Which sessions are independent of each other: forks and subagents share the origin of the session they came from.

Every count of sessions that support something (a repeated error, a fix, a correction, guidance) counts origins.
"""

from __future__ import annotations

from collections.abc import Collection

from warmstart.model import PastSession


class Origins:
    """The origins of the sessions seen so far. A subagent may be seen before the session that started it."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}  # origin of a session's subagents -> origin of that session

    def add(self, session: PastSession) -> str:
        """Remember a session and return its origin, which `settle` makes final."""
        origin = find_origin(session)
        if not session.parent:
            name = child_of(session.agent, session.id)
            self._parents[name] = min(origin, self._parents.get(name, origin))
        return origin

    def find_root(self, origin: str) -> str:
        """Return the origin of the session that started a subagent; any other origin as it is."""
        return self._parents.get(origin, origin)

    def settle(self, origins: Collection[str]) -> set[str]:
        """Return the independent origins among these."""
        return {self.find_root(origin) for origin in origins}


def child_of(agent: str, parent: str) -> str:
    """Return the origin of a session's subagents."""
    return f"sent by {agent} {parent}"


def find_origin(session: PastSession) -> str:
    """Return the origin of a session. A fork repeats the first call of another session; a subagent works for one."""
    if session.parent:
        return child_of(session.agent, session.parent)
    start = session.calls[0] if session.calls else None
    if start and start.at is not None and start.call_id:
        return f"{start.call_id} {start.at}"
    return session.key
