"""What running agents do, as it happens: transcripts that change are read while somebody looks on.

Only while a page listens: every two seconds the files of the last quarter of an hour are read again, as `ingest` reads them,
and the sessions and showings that have changed are sent to all listeners.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

from warmstart.doors.pages.markup import reveal
from warmstart.doors.render.fitted import cut_at_word, flatten
from warmstart.doors.render.terminal import format_iso
from warmstart.doors.ui.stores import OpenStores
from warmstart.errors import SourceError, WarmstartError
from warmstart.formats import find_files
from warmstart.pipeline import Warmstart
from warmstart.plurals import format_count
from warmstart.store import SessionRow

EVERY = 2.0  # seconds between two readings
RECENT = 900.0  # seconds since a transcript's last change
_QUIET = 15.0  # seconds after which a listener hears that the line is open


class LiveFeed:
    """Reads transcripts while there are listeners, and sends what changed to all of them."""

    def __init__(self, stores: OpenStores, clock: Callable[[], float] = time.time) -> None:
        self._stores = stores
        self._clock = clock
        self._lock = threading.Lock()
        self._listeners: set[tuple[asyncio.AbstractEventLoop, asyncio.Queue[dict[str, Any]]]] = set()
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._known: dict[Path, tuple[int, int]] = {}  # recent transcripts as they were read
        self._sent: set[tuple[object, ...]] = set()  # what the last reading sent

    async def follow(self) -> AsyncIterator[dict[str, Any]]:
        """Yield what changes from now on, until the listener goes away."""
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(1_000)
        listener = (asyncio.get_running_loop(), queue)
        with self._lock:
            self._listeners.add(listener)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="warmstart-live", daemon=True)
                self._thread.start()
        try:
            yield {"kind": "open"}
            while not self._stopping.is_set():
                try:
                    yield await asyncio.wait_for(queue.get(), _QUIET)
                except TimeoutError:
                    yield {"kind": "quiet"}
        finally:
            with self._lock:
                self._listeners.discard(listener)

    def close(self) -> None:
        """End the reading and all listeners."""
        self._stopping.set()
        self._send({"kind": "end"})
        thread = self._thread
        if thread is not None:
            thread.join(5)

    def _run(self) -> None:
        since = self._clock()
        self._known, self._sent = {}, set()
        while not self._stopping.is_set():
            with self._lock:
                if not self._listeners:
                    self._thread = None
                    return
            try:
                with self._stores.borrow() as ws:
                    since = self._read(ws, since)
            except (WarmstartError, OSError) as error:
                self._send({"kind": "problem", "text": str(error)})
            self._stopping.wait(EVERY)

    def _read(self, ws: Warmstart, since: float) -> float:
        now = self._clock()
        if changed := self._find_changed(ws, now):
            ws.ingest(*changed)
        sent: set[tuple[object, ...]] = set()  # the next reading begins before this one's changes and finds them again
        for columns in ws.store.rows("changed_sessions", (since,)):
            row = SessionRow.from_columns(columns)
            sent.add(("session", row.key, row.updated))
            if ("session", row.key, row.updated) not in self._sent:
                self._send(describe_change(ws, row))
        for note, session, how, at in ws.store.rows("new_showings", (since,)):
            sent.add(("advice", note, session, how, at))
            if ("advice", note, session, how, at) not in self._sent:
                self._send({"kind": "advice", "note": note, "session": session, "how": how, "at": format_iso(at)})
        self._sent = sent
        return now

    def _find_changed(self, ws: Warmstart, now: float) -> list[Path]:
        """Return the transcripts that changed lately and since the last reading."""
        recent = list_recent(ws, now)
        changed = [file for file, state in recent.items() if self._known.get(file) != state]
        self._known = recent
        return changed

    def _send(self, event: dict[str, Any]) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for loop, queue in listeners:
            try:
                loop.call_soon_threadsafe(_put, queue, event)
            except RuntimeError:  # that loop has ended
                continue


def _put(queue: asyncio.Queue[dict[str, Any]], event: dict[str, Any]) -> None:
    if not queue.full():  # a listener that does not read loses events, never the server's memory
        queue.put_nowait(event)


def list_recent(ws: Warmstart, now: float) -> dict[Path, tuple[int, int]]:
    """Return the transcripts in the agents' usual places that changed lately, with their time and size."""
    recent = {}
    for _agent, place in ws.places():
        for file in _list_files(place):
            try:
                found = file.stat()
            except OSError:
                continue
            if now - found.st_mtime < RECENT:
                recent[file] = (found.st_mtime_ns, found.st_size)
    return recent


def _list_files(place: Path) -> Iterator[Path]:
    try:
        yield from find_files(place)
    except SourceError:
        return


def describe_change(ws: Warmstart, row: SessionRow) -> dict[str, Any]:
    """Describe a session that has changed, with its latest call."""
    last = ws.store.rows("last_call", (row.key,))
    tool, status, cause = last[0] if last else ("", "", "")
    return {
        "kind": "session",
        "key": row.key,
        "agent": reveal(row.agent),
        "task": cut_at_word(flatten(reveal(row.task or "")), 120),
        "project": reveal(row.project or ""),
        "calls": row.calls,
        "errors": row.errors,
        "counts": f"{format_count(row.calls, 'call')}, {format_count(row.errors, 'error')}",
        "tool": reveal(tool),
        "status": status,
        "cause": cut_at_word(flatten(reveal(cause or "")), 160),
        "at": format_iso(row.updated),
    }
