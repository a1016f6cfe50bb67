"""The desk's watch thread: expires due requests, notices changes by other processes, and ends problems that are over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from warmstart.confirm.desk import decide
from warmstart.confirm.desk.presence import Presence
from warmstart.errors import StoreError

if TYPE_CHECKING:
    from warmstart.confirm.desk.desk import Desk

_EVERY = 0.05  # seconds between looks at deadlines and at changes by other processes
_AROUND_EVERY = 1.0  # seconds between looks at a full disk and at other daemons


class Watch:
    """Runs the thread. Calls `on_news` after another process has written."""

    def __init__(self, desk: Desk, on_news: Callable[[], None]) -> None:
        self.presence: Presence | None = None  # set if the desk belongs to a daemon
        self._desk = desk
        self._on_news = on_news
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="confirm-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        self._thread.join()
        if self.presence is not None:
            with suppress(StoreError):
                self._desk.change(self.presence.stop).result()

    def _run(self) -> None:
        looked_around = 0.0
        while not self._ending.wait(_EVERY):
            try:
                self._look()
                if time.monotonic() - looked_around > _AROUND_EVERY:
                    looked_around = time.monotonic()
                    self._look_around()
                self._desk.problems.end("deadlines")
            except StoreError as error:  # it may be over at the next look
                self._desk.problems.begin("deadlines", str(error))

    def _look(self) -> None:
        """Pass on changes by other processes and expire due requests."""
        desk = self._desk
        if desk.feed.look():
            self._on_news()
        (due,) = desk.feed.store.row("next_deadline")
        if due is not None and due <= desk.now():
            desk.change(decide.expire_due).result()

    def _look_around(self) -> None:
        """Try to write again after a failure, and look for daemons with other policies."""
        desk, presence = self._desk, self.presence
        with suppress(StoreError):  # the writer reports it
            if desk.problems.has("store"):
                desk.log("writing_again", "daemon").result()
            if presence is not None and presence.look(desk.feed.store):
                desk.change(presence.report).result()
        if presence is not None and presence.others:
            desk.problems.begin("policy", presence.others)
        else:
            desk.problems.end("policy")
