"""Waiting for a person's answer from inside a host that wants to see signs of life, and may lose interest."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from warmstart.confirm.errors import Expired, Unreachable
from warmstart.confirm.model import Decision

GRACE = 10.0  # seconds beyond the wait, for handing in, taking up and a daemon that restarts
_PULSE = 1.0  # seconds between two signs of life

Pulse = Callable[[], str | None]  # called while waiting; a reason ends it


def wait_while_asking(ask: Callable[[], Decision], seconds: float, pulse: Pulse) -> Decision:
    """What `ask` returns or raises. It runs in a thread of its own; here the host is told, and heard."""
    asking = _Asking(ask)
    deadline = time.monotonic() + seconds + GRACE
    while not asking.is_done(_PULSE):
        if interruption := pulse():
            raise Expired(interruption)
        if time.monotonic() > deadline:
            raise Unreachable("the confirmation daemon does not answer")
    return asking.result()


class _Asking:
    """One question in a thread that does not keep the process alive."""

    def __init__(self, ask: Callable[[], Decision]) -> None:
        self._ask = ask
        self._done = threading.Event()
        self._decision: Decision | None = None
        self._error: BaseException | None = None
        threading.Thread(target=self._run, name="warmstart-asking", daemon=True).start()

    def _run(self) -> None:
        try:
            self._decision = self._ask()
        except BaseException as error:  # noqa: BLE001 - handed to who waits
            self._error = error
        finally:
            self._done.set()

    def is_done(self, seconds: float) -> bool:
        return self._done.wait(seconds)

    def result(self) -> Decision:
        if self._error is not None:
            raise self._error
        if self._decision is None:
            raise Unreachable("no answer")
        return self._decision
