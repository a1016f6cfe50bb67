"""Send notifications in the background. No submitter waits for a channel, and a failing channel approves nothing: the
failure is shown with the request and recorded in the audit.

Notices lie in the outbox, which is written together with the request, so none is lost by a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from warmstart.confirm.audit.feed import Change
from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.desk.desk import Desk
from warmstart.confirm.model import Delivery, Request
from warmstart.confirm.notify.digest import Pace, write_digest
from warmstart.confirm.notify.messages import Notification, write_message
from warmstart.confirm.notify.sending import GONE, HELD, PAUSES, Channel, Sending, SendOutcome

_AT_ONCE = 500  # notices claimed at a time; many of them become one message
_IDLE = 5.0  # seconds between looks when nothing wakes the notifier


class Notice(NamedTuple):
    """A notification in the outbox."""

    id: int
    request: Request
    channel: str
    attempts: int


class Notifier(Sending[Notice]):
    """Empties the outbox of a desk. `page_of` returns the link to a request."""

    def __init__(
        self,
        desk: Desk,
        channels: Sequence[Channel],
        page_of: Callable[[str], str],
        *,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        super().__init__(desk, channels, name="notify", threads=4, pauses=pauses)
        self._page_of = page_of
        self._paces: dict[str, Pace] = {}
        self._end_listening = desk.feed.listen(self._wake)
        self._thread.start()

    def stop(self) -> None:
        self._end_listening()
        super().stop()

    def _wake(self, _: list[Change]) -> None:
        self._woken.set()

    def _look(self) -> float:
        (due,) = self._desk.feed.store.row("next_notice")
        pause = _IDLE if due is None else min(_IDLE, (due - self._desk.now()) / 1000)
        if pause <= 0:
            for notices in self._desk.change(self._claim).result():
                self._send(notices)
        return pause

    def _claim(self, tx: Transaction) -> list[list[Notice]]:
        """Claim due notices, so that no other daemon sends them at the same time. Each list becomes one message; notices
        beyond a channel's pace are put off, to be sent together."""
        claimed: dict[str, list[Notice]] = {}
        for id, request_id, channel, attempts in tx.store.rows("due_notices", {"now": tx.now, "limit": _AT_ONCE}):
            mine = tx.store.row("claim_notice", {"id": id, "now": tx.now, "until": tx.now + HELD})
            request = tx.find(request_id)
            if mine is None or request is None:
                continue
            notice = Notice(id, request, channel, attempts)
            if channel not in self._channels:
                self._settle(tx, notice, SendOutcome("undeliverable", attempts, GONE))
            elif request.status != "pending" or request.deadline <= tx.now:
                self._settle(tx, notice, SendOutcome("undeliverable", attempts, _explain_too_late(tx, notice)))
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
        parts = [notices] if len(notices) > pace.room(now) else [[notice] for notice in notices]
        for _ in parts:
            pace.note(now)
        return parts

    def _write(self, items: list[Notice], channel: Channel) -> Notification:
        first = items[0].request
        if len(items) == 1:
            return write_message(first, self._page_of(first.id), channel.kind, channel.room)
        page = self._page_of("").removesuffix("request/")
        return write_digest([notice.request for notice in items], page, channel.kind, channel.room)

    def _settle(self, tx: Transaction, item: Notice, outcome: SendOutcome) -> None:
        tx.store.rows("settle_notice", {"id": item.id} | outcome._asdict())
        facts: dict[str, Any] = {"channel": item.channel, "attempts": outcome.attempts, "error": outcome.error}
        tx.log(_EVENTS[outcome.state], "daemon", item.request, **facts)


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
