"""Send what lies in a table, in the background: look, claim, send, try again later, give up. Notices of requests and
alerts about access share it."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, NamedTuple, Protocol, TypeVar

from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.desk.desk import Desk
from warmstart.confirm.model import Delivery
from warmstart.confirm.notify.messages import Notification
from warmstart.errors import StoreError

PAUSES = (1, 3, 10, 30, 90)  # seconds before the next attempt; after the last there is none
HELD = 60_000  # milliseconds until another attempt may start while one is in progress
GONE = "the channel is no longer in the settings"
_AGAIN = 5.0  # seconds until the next look after the database failed


class Channel(NamedTuple):
    """A way to reach people."""

    name: str  # kind and position in the settings, such as discord#1; the address itself is a secret
    kind: str
    room: int  # characters per message at most
    send: Callable[[Notification], None]  # raises Undelivered


class Undelivered(Exception):
    """The channel did not accept the message."""


class SendOutcome(NamedTuple):
    """What became of an attempt."""

    state: Delivery
    attempts: int
    error: str = ""
    due: int = 0  # when to try again


class Sendable(Protocol):
    """A row that is to be sent."""

    @property
    def channel(self) -> str: ...
    @property
    def attempts(self) -> int: ...


Item = TypeVar("Item", bound=Sendable)


class Sending(ABC, Generic[Item]):
    """Looks for due rows and sends them in threads of its own."""

    def __init__(
        self, desk: Desk, channels: Sequence[Channel], *, name: str, threads: int, pauses: Sequence[float] = PAUSES
    ) -> None:
        self._desk = desk
        self._channels = {channel.name: channel for channel in channels}
        self._pauses = pauses
        self._woken = threading.Event()
        self._ending = False
        self._senders = ThreadPoolExecutor(threads, f"confirm-{name}")
        self._thread = threading.Thread(target=self._run, name=f"confirm-{name}-looking", daemon=True)

    @abstractmethod
    def _look(self) -> float:
        """Send what is due, and return seconds until the next look."""

    @abstractmethod
    def _write(self, items: list[Item], channel: Channel) -> Notification:
        """Write the message about these rows."""

    @abstractmethod
    def _settle(self, tx: Transaction, item: Item, outcome: SendOutcome) -> None:
        """Store and record what became of a row."""

    def stop(self) -> None:
        """End after the attempts in progress. What is unsent stays in its table."""
        self._ending = True
        self._woken.set()
        self._thread.join()
        self._senders.shutdown(wait=True, cancel_futures=True)

    def _run(self) -> None:
        while not self._ending:
            self._woken.clear()
            try:
                pause = self._look()
            except StoreError:  # it may be over at the next look
                pause = _AGAIN
            if pause > 0:
                self._woken.wait(pause)

    def _send(self, items: list[Item]) -> None:
        """Send these rows, which have one channel, as one message."""
        self._senders.submit(self._deliver, items)

    def _deliver(self, items: list[Item]) -> None:
        channel = self._channels[items[0].channel]
        try:
            channel.send(self._write(items, channel))
            error = ""
        except Undelivered as failure:
            error = self._desk.masker.conceal(str(failure))[:300] or "not delivered"
        except Exception as failure:  # noqa: BLE001 - from an apprise plug-in; recorded like any other failure
            error = f"not delivered: {type(failure).__name__}"
        try:
            self._desk.change(lambda tx: self._conclude(tx, items, error)).result()
        except StoreError:
            return  # they are still in their table and will be sent again

    def _conclude(self, tx: Transaction, items: list[Item], error: str) -> None:
        for item in items:
            attempts = item.attempts + 1
            if not error:
                outcome = SendOutcome("sent", attempts)
            elif attempts > len(self._pauses):
                outcome = SendOutcome("undeliverable", attempts, error)
            else:
                outcome = SendOutcome("queued", attempts, error, tx.now + int(self._pauses[attempts - 1] * 1000))
            self._settle(tx, item, outcome)
