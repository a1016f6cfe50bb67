"""Waiting for a person's answer from inside a host that wants to see signs of life, and may lose interest.

Who loses interest does not do what was asked about, so a yes that comes later must not be taken up: the thread that asks
is told, and ends by itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from warmstart.confirm.errors import Expired, Unreachable
from warmstart.confirm.model import HumanDecision

GRACE = 10.0  # seconds beyond the wait, for handing in, taking up and a daemon that restarts
_PULSE = 1.0  # seconds between two signs of life

Pulse = Callable[[], str | None]  # called while waiting; a reason ends it, and so does raising
Ask = Callable[[threading.Event], HumanDecision]  # the event is set when nobody wants the answer any more


def wait_while_asking(ask: Ask, seconds: float, pulse: Pulse) -> HumanDecision:
    """What `ask` returns or raises. It runs in a thread of its own; here the host is told, and heard."""
    asking = _Asking(ask)
    deadline = time.monotonic() + seconds + GRACE
    try:
        while not asking.is_done(_PULSE):
            if interruption := pulse():
                raise Expired(interruption)
            if time.monotonic() > deadline:
                raise Unreachable("the confirmation daemon does not answer")
    finally:
        asking.cancel()
    return asking.result()


class _Asking:
    """One question in a thread that does not keep the process alive."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._cancelled = threading.Event()
        self._done = threading.Event()
        self._decision: HumanDecision | None = None
        self._error: BaseException | None = None
        threading.Thread(target=self._run, name="warmstart-asking", daemon=True).start()

    def _run(self) -> None:
        try:
            self._decision = self._ask(self._cancelled)
        except BaseException as error:  # noqa: BLE001 - handed to who waits
            self._error = error
        finally:
            self._done.set()

    def is_done(self, seconds: float) -> bool:
        return self._done.wait(seconds)

    def cancel(self) -> None:
        """Nobody waits any more; after the end it changes nothing."""
        self._cancelled.set()

    def result(self) -> HumanDecision:
        if self._error is not None:
            raise self._error
        if self._decision is None:
            raise Unreachable("no answer")
        return self._decision
