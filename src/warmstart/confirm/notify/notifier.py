"""Send notifications in the background. No submitter waits for a channel, and a failing channel approves nothing: the
failure is shown with the request and recorded in the audit.

Notices lie in the outbox, which is written together with the request, so none is lost by a restart.
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
from warmstart.confirm.notify.digest import SINGLE, Pace, write_digest
from warmstart.confirm.notify.messages import Notification, write_message
from warmstart.errors import StoreError

PAUSES = (1, 3, 10, 30, 90)  # seconds before the next attempt; after the last there is none
_HELD = 60_000  # milliseconds until another attempt may start while one is in progress
_AT_ONCE = 500  # notices claimed at a time; many of them become one message
_IDLE = 5.0  # seconds between looks when nothing wakes the notifier


class Channel(NamedTuple):
    """A way to reach people."""

    name: str  # kind and position in the settings, such as discord#1; the address itself is a secret
    kind: str
    room: int  # characters per message at most
    send: Callable[[Notification], None]  # raises Undelivered


class Undelivered(Exception):
    """The channel did not accept the message."""


class Notice(NamedTuple):
    """A notification in the outbox."""

    id: int
    request: Request
    channel: str
    attempts: int


class Notifier:
    """Empties the outbox of a desk in threads of its own. `page_of` returns the link to a request."""

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
        self._paces: dict[str, Pace] = {}
        self._woken = threading.Event()
        self._ending = False
        self._end_listening = desk.feed.listen(self._wake)
        self._senders = ThreadPoolExecutor(4, "confirm-notify")
        self._thread = threading.Thread(target=self._run, name="confirm-notifier", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End after the attempts in progress. Unsent notices stay in the outbox."""
        self._end_listening()
        self._ending = True
        self._woken.set()
        self._thread.join()
        self._senders.shutdown(wait=True, cancel_futures=True)

    def _wake(self, _: list[Change]) -> None:
        self._woken.set()

    def _run(self) -> None:
        while not self._ending:
            self._woken.clear()
            try:
                pause = self._time_to_next()
                if pause <= 0:
                    for notices in self._desk.change(self._claim).result():
                        self._senders.submit(self._deliver, notices)
            except StoreError:  # it may be over at the next look
                pause = _IDLE
            if pause > 0:
                self._woken.wait(pause)

    def _time_to_next(self) -> float:
        """Return seconds until the next notice is due."""
        (due,) = self._desk.feed.store.row("next_notice")
        return _IDLE if due is None else min(_IDLE, (due - self._desk.now()) / 1000)

    def _claim(self, tx: Transaction) -> list[list[Notice]]:
        """Claim due notices, so that no other daemon sends them at the same time. Each list becomes one message; notices
        beyond a channel's pace are put off, to be sent together."""
        claimed: dict[str, list[Notice]] = {}
        for id, request_id, channel, attempts in tx.store.rows("due_notices", {"now": tx.now, "limit": _AT_ONCE}):
            mine = tx.store.row("claim_notice", {"id": id, "now": tx.now, "until": tx.now + _HELD})
            request = tx.find(request_id)
            if mine is None or request is None:
                continue
            notice = Notice(id, request, channel, attempts)
            if channel not in self._channels:
                _settle(tx, notice, "undeliverable", attempts, "the channel is no longer in the settings")
            elif request.status != "pending" or request.deadline <= tx.now:
                _settle(tx, notice, "undeliverable", attempts, _explain_too_late(tx, notice))
            else:
                claimed.setdefault(channel, []).append(notice)
        return [part for name, notices in claimed.items() for part in self._pace(tx, name, notices)]

    def _pace(self, tx: Transaction, channel: str, notices: list[Notice]) -> list[list[Notice]]:
        """Return what a channel is sent now: single messages, one for all, or nothing yet."""
        pace, now = self._paces.setdefault(channel, Pace()), tx.now / 1000
        if (wait := pace.wait(len(notices), now)) > 0:
            for notice in notices:
                due = tx.now + int(wait * 1000)
                change = {"id": notice.id, "state": "queued", "attempts": notice.attempts, "due": due, "error": ""}
                tx.store.rows("settle_notice", change)
            return []
        parts = [notices] if len(notices) > SINGLE else [[notice] for notice in notices]
        for _ in parts:
            pace.note(now)
        return parts

    def _deliver(self, notices: list[Notice]) -> None:
        channel, first = self._channels[notices[0].channel], notices[0].request
        if len(notices) == 1:
            message = write_message(first, self._page_of(first.id), channel.kind, channel.room)
        else:
            page = self._page_of("").removesuffix("request/")
            message = write_digest([notice.request for notice in notices], page, channel.kind, channel.room)
        try:
            channel.send(message)
            error = ""
        except Undelivered as failure:
            error = self._desk.masker.conceal(str(failure))[:300] or "not delivered"
        except Exception as failure:  # noqa: BLE001 - from an apprise plug-in; recorded like any other failure
            error = f"not delivered: {type(failure).__name__}"
        try:
            self._desk.change(lambda tx: self._conclude_all(tx, notices, error)).result()
        except StoreError:
            return  # it is still in the outbox and will be sent again

    def _conclude_all(self, tx: Transaction, notices: list[Notice], error: str) -> None:
        for notice in notices:
            self._conclude(tx, notice, error)

    def _conclude(self, tx: Transaction, notice: Notice, error: str) -> None:
        attempts = notice.attempts + 1
        if not error:
            _settle(tx, notice, "sent", attempts, "")
        elif attempts > len(self._pauses):
            _settle(tx, notice, "undeliverable", attempts, error)
        else:
            due = tx.now + int(self._pauses[attempts - 1] * 1000)
            _settle(tx, notice, "queued", attempts, error, due)


def _explain_too_late(tx: Transaction, notice: Notice) -> str:
    """Say that the request ended first, with the last delivery error, which somebody has to fix."""
    decided = notice.request.status not in ("pending", "expired")
    why = f"{'decided' if decided else 'expired'} before it was delivered"
    rows = tx.store.rows("notices", {"request": notice.request.id})
    error = next((error for channel, _, _, error in rows if channel == notice.channel and error), "")
    return f"{why}: {error}" if error else why


_EVENTS: dict[Delivery, str] = {
    "sent": "notified",
    "queued": "notification_failed",
    "undeliverable": "notification_undeliverable",
}


def _settle(tx: Transaction, notice: Notice, state: Delivery, attempts: int, error: str, due: int = 0) -> None:
    change = {"id": notice.id, "state": state, "attempts": attempts, "due": due, "error": error}
    tx.store.rows("settle_notice", change)
    tx.log(_EVENTS[state], "daemon", notice.request, channel=notice.channel, attempts=attempts, error=error)
