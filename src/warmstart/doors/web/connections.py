"""Connections that dawdle: a request must arrive, and its answer be read, within a time; and there is room for fewer
connections than the system gives us files, so that no flood of half-open ones keeps people out.

When there is no room, the connection that has gone longest without a complete request gives way to the new one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADERS_WITHIN = 10.0  # seconds for a request's headers
BODY_WITHIN = 20.0  # seconds for its body
READ_WITHIN = 30.0  # seconds in which a client must take some of an answer
_MOST_AT_ONCE = 1_024  # connections that wait to be accepted, and are accepted at a time
_RESERVED = 300  # files for the database, masking processes, notifications, and connections not counted yet
_MOST = 4_000  # connections of one port, however many files there may be
_FEWEST = 32
_CROWD = 300  # connections of one port


class Room:
    """The connections of one port. Those without a complete request are kept in the order in which they began to wait."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._open: set[TimedConnection] = set()
        self._waiting: dict[TimedConnection, None] = {}

    def is_crowded(self) -> bool:
        """Return whether many more connections are open than people and agents need."""
        return len(self._open) > _CROWD

    def enter(self, connection: TimedConnection) -> None:
        """Add a connection. If there is no room, abort the one that has waited longest for a request, perhaps this one."""
        self._open.add(connection)
        self.wait(connection)
        if len(self._open) > self.most:
            next(iter(self._waiting)).abort()

    def wait(self, connection: TimedConnection) -> None:
        """Note that the connection has no complete request from now on."""
        self._waiting.pop(connection, None)
        self._waiting[connection] = None

    def work(self, connection: TimedConnection) -> None:
        """Note that the connection has one."""
        self._waiting.pop(connection, None)

    def leave(self, connection: TimedConnection) -> None:
        self._open.discard(connection)
        self._waiting.pop(connection, None)


class TimedConnection(HttpToolsProtocol):
    """A connection with time limits. `room` is set by `make_protocol`."""

    room: Room

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._limit: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None
        self._is_inside = False  # a request: its headers have begun and its body has not ended
        super().connection_made(transport)
        self._set_limit(HEADERS_WITHIN)
        self.room.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.room.leave(self)
        self._set_limit(None)
        self._set_reading(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._limit is None and not self._is_inside:  # the next request of a connection that was kept
            self._set_limit(HEADERS_WITHIN)
        super().data_received(data)

    def on_message_begin(self) -> None:
        self._is_inside = True
        if self._limit is None:  # right behind the request before
            self._set_limit(HEADERS_WITHIN)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._set_limit(BODY_WITHIN)
        self.room.work(self)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._is_inside = False
        self._set_limit(None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if not self._is_inside and not self.pipeline:
            self.room.wait(self)
        super().on_response_complete()

    def pause_writing(self) -> None:
        self._set_reading(READ_WITHIN)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._set_reading(None)
        super().resume_writing()

    def abort(self) -> None:
        """Drop the connection without a word."""
        self.transport.abort()

    def _set_limit(self, seconds: float | None) -> None:
        self._limit = self._restart(self._limit, seconds)

    def _set_reading(self, seconds: float | None) -> None:
        self._reading = self._restart(self._reading, seconds)

    def _restart(self, timer: asyncio.TimerHandle | None, seconds: float | None) -> asyncio.TimerHandle | None:
        if timer is not None:
            timer.cancel()
        return None if seconds is None else self.loop.call_later(seconds, self.abort)


def make_protocol(room: Room) -> type[TimedConnection]:
    """Make the protocol of one port."""
    members: dict[str, Any] = {"room": room}
    return type("TimedConnection", (TimedConnection,), members)


def find_room(raise_limit: Callable[[], int] | None = None) -> int:
    """Return how many connections one of our two ports may have, after asking the system for more files."""
    files = (raise_limit or raise_file_limit)()
    return max(_FEWEST, min(_MOST, (files - _RESERVED) // 2))


def find_backlog(room: int) -> int:
    """Return how many connections may wait to be accepted. All of them may be accepted before one is counted."""
    return max(_FEWEST, min(_MOST_AT_ONCE, room // 2))


def raise_file_limit() -> int:
    """Raise the limit of open files as far as it goes without rights, and return it."""
    try:
        import resource
    except ImportError:  # Windows
        return 2 * _MOST + _RESERVED
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * _MOST + _RESERVED
    most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    return wanted if soft == resource.RLIM_INFINITY else soft
