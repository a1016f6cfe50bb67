"""People are told in the background. Nobody who submits waits for a channel, and a channel that fails approves nothing:
its failure stands in the request and in the audit.

What is to be told lies in the outbox, written together with the request, so that a restart forgets nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from warmstart.confirm.audit.feed import Change
from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.desk.desk import Desk
from warmstart.confirm.model import Delivery, Request
from warmstart.confirm.notify.messages import Notification, write_message
from warmstart.errors import StoreError

PAUSES = (1, 3, 10, 30, 90)  # seconds before the next attempt; after the last there is none
_HELD = 60_000  # milliseconds that an attempt may take before another may be made
_AT_ONCE = 20
_IDLE = 5.0  # seconds between looks when nothing calls


class Channel(NamedTuple):
    """A way to reach people."""

    name: str  # kind and place in the settings, such as discord#1; the address itself is a secret
    kind: str
    room: int  # characters that it takes
    send: Callable[[Notification], None]  # raises Undelivered


class Undelivered(Exception):
    """The channel did not take it."""


class Notice(NamedTuple):
    """Something to be told, from the outbox."""

    id: int
    request: Request
    channel: str
    attempts: int


class Notifier:
    """Empties the outbox of a desk, in threads of its own. `page_of` gives the link to a request."""

    def __init__(
        self,
        desk: Desk,
        channels: Sequence[Channel],
        page_of: Callable[[str], str],
        *,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        self._desk = desk
        self._channels = {channel.name: channel for channel in channels}
        self._page_of = page_of
        self._pauses = pauses
        self._called = threading.Event()
        self._ending = False
        self._end_listening = desk.feed.listen(self._hear)
        self._senders = ThreadPoolExecutor(4, "confirm-notify")
        self._thread = threading.Thread(target=self._run, name="confirm-notifier", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """What is not sent yet stays in the outbox."""
        self._end_listening()
        self._ending = True
        self._called.set()
        self._thread.join()
        self._senders.shutdown(wait=True, cancel_futures=True)

    def _hear(self, _: list[Change]) -> None:
        self._called.set()

    def _run(self) -> None:
        while not self._ending:
            self._called.clear()
            try:
                pause = self._time_to_next()
                if pause <= 0:
                    for notice in self._desk.change(self._claim).result():
                        self._senders.submit(self._deliver, notice)
            except StoreError:  # a full disk may be a free one in a moment
                pause = _IDLE
            if pause > 0:
                self._called.wait(pause)

    def _time_to_next(self) -> float:
        """Seconds until something in the outbox is due."""
        (due,) = self._desk.feed.store.row("next_notice")
        return _IDLE if due is None else min(_IDLE, (due - self._desk.now()) / 1000)

    def _claim(self, turn: Transaction) -> list[Notice]:
        """Take what is due, so that nobody else tries it at the same time."""
        claimed = []
        for id, request_id, channel, attempts, *_ in turn.store.rows(
            "due_notices", {"now": turn.now, "limit": _AT_ONCE}
        ):
            mine = turn.store.row("claim_notice", {"id": id, "now": turn.now, "until": turn.now + _HELD})
            request = turn.find(request_id)
            if mine is None or request is None:
                continue
            notice = Notice(id, request, channel, attempts)
            if channel not in self._channels:
                _settle(turn, notice, "undeliverable", attempts, "the channel is no longer in the settings")
            elif request.status != "pending" or request.deadline <= turn.now:
                _settle(turn, notice, "undeliverable", attempts, _say_too_late(turn, notice))
            else:
                claimed.append(notice)
        return claimed

    def _deliver(self, notice: Notice) -> None:
        channel = self._channels[notice.channel]
        message = write_message(notice.request, self._page_of(notice.request.id), channel.kind, channel.room)
        try:
            channel.send(message)
            error = ""
        except Undelivered as failure:
            error = self._desk.masker.conceal(str(failure))[:300] or "not delivered"
        except Exception as failure:  # noqa: BLE001 - a plug-in of apprise: recorded like any other failure
            error = f"not delivered: {type(failure).__name__}"
        try:
            self._desk.change(lambda turn: self._conclude(turn, notice, error)).result()
        except StoreError:
            return  # still in the outbox: it is tried again

    def _conclude(self, turn: Transaction, notice: Notice, error: str) -> None:
        attempts = notice.attempts + 1
        if not error:
            _settle(turn, notice, "sent", attempts, "")
        elif attempts > len(self._pauses):
            _settle(turn, notice, "undeliverable", attempts, error)
        else:
            due = turn.now + int(self._pauses[attempts - 1] * 1000)
            _settle(turn, notice, "queued", attempts, error, due)


def _say_too_late(turn: Transaction, notice: Notice) -> str:
    """Why it is not tried any more, and why it was not delivered before: that is what somebody has to mend."""
    decided = notice.request.status not in ("pending", "expired")
    why = f"{'decided' if decided else 'expired'} before it was delivered"
    told = turn.store.rows("notices", {"request": notice.request.id})
    error = next((error for channel, _, _, error, *_ in told if channel == notice.channel and error), "")
    return f"{why}: {error}" if error else why


_EVENTS: dict[Delivery, str] = {
    "sent": "notified",
    "queued": "notification_failed",
    "undeliverable": "notification_undeliverable",
}


def _settle(turn: Transaction, notice: Notice, state: Delivery, attempts: int, error: str, due: int = 0) -> None:
    change = {"id": notice.id, "state": state, "attempts": attempts, "due": due, "error": error}
    turn.store.rows("settle_notice", change)
    turn.log(_EVENTS[state], "daemon", notice.request, channel=notice.channel, attempts=attempts, error=error)
