"""Wait for changes in the event loop, without a thread per waiter: bridges the desk's feed into asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from warmstart.confirm.audit.feed import Change, Feed

_MOST_UNREAD = 1_000  # changes that a stream may lag behind before it is ended; the browser reconnects and catches up

TOO_SLOW = Change(0, "")  # ends a stream


class Waiters:
    """The waiters of one event loop; `close` wakes all of them for good."""

    def __init__(self, feed: Feed) -> None:
        self._loop = asyncio.get_running_loop()
        self._events: dict[str, set[asyncio.Event]] = {}
        self._streams: set[asyncio.Queue[Change]] = set()
        self.closed = False
        self._end = feed.listen(self._receive)

    def close(self) -> None:
        self._end()
        self.closed = True
        for events in self._events.values():
            for event in events:
                event.set()
        for stream in self._streams:
            _offer(stream, TOO_SLOW)

    @contextmanager
    def changes_of(self, id: str) -> Iterator[asyncio.Event]:
        """Yield an event that is set whenever the request changes. Enter this before reading the request, or a change may
        be missed."""
        event = asyncio.Event()
        waiting = self._events.setdefault(id, set())
        waiting.add(event)
        try:
            yield event
        finally:
            waiting.discard(event)
            if not waiting:
                self._events.pop(id, None)

    @contextmanager
    def all_changes(self) -> Iterator[asyncio.Queue[Change]]:
        stream: asyncio.Queue[Change] = asyncio.Queue(_MOST_UNREAD)
        self._streams.add(stream)
        try:
            yield stream
        finally:
            self._streams.discard(stream)

    def _receive(self, changes: list[Change]) -> None:
        self._loop.call_soon_threadsafe(self._wake, changes)

    def _wake(self, changes: list[Change]) -> None:
        for id in {change.request for change in changes}:
            for event in self._events.get(id, ()):
                event.set()
        for stream in self._streams:
            for change in changes:
                _offer(stream, change)


def _offer(stream: asyncio.Queue[Change], change: Change) -> None:
    """Queue a change. End a stream that is not read fast enough."""
    if stream.full():
        while not stream.empty():
            stream.get_nowait()
        change = TOO_SLOW
    stream.put_nowait(change)


async def wait_for(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event. Return whether it was set in time."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def next_change(stream: asyncio.Queue[Change], seconds: float) -> Change | None:
    """Wait for a change. Return None if there was none in that time."""
    try:
        async with asyncio.timeout(seconds):
            return await stream.get()
    except TimeoutError:
        return None
