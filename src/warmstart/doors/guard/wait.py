"""Wait for a decision inside a host that wants to see activity and may give up.

A host that gave up does not run the call, so a later approval must not be used: the asking thread is cancelled and ends
by itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from warmstart.confirm.errors import Expired, Unreachable
from warmstart.confirm.model import HumanDecision

GRACE = 10.0  # seconds beyond the wait, for submission, execution and a restart of the daemon
_PULSE = 1.0  # seconds between two calls of `pulse`

Pulse = Callable[[], str | None]  # called during the wait; returning a reason or raising ends it
Ask = Callable[[threading.Event], HumanDecision]  # the event is set when the host has given up


def wait_while_asking(ask: Ask, seconds: float, pulse: Pulse) -> HumanDecision:
    """Run `ask` in a thread of its own and return or raise what it does. Call `pulse` meanwhile."""
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
        except BaseException as error:  # noqa: BLE001 - passed to the waiting thread
            self._error = error
        finally:
            self._done.set()

    def is_done(self, seconds: float) -> bool:
        return self._done.wait(seconds)

    def cancel(self) -> None:
        """Give the request up. Has no effect after the end."""
        self._cancelled.set()

    def result(self) -> HumanDecision:
        if self._error is not None:
            raise self._error
        if self._decision is None:
            raise Unreachable("no answer")
        return self._decision
