"""Notify people of new logins, devices and tokens, whoever made them: also those made on the database, while the daemon
was down.

The audit is read from a mark that lies in the database; alerts lie in a table until they are sent. An alert says how to
undo what it is about.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from warmstart.confirm.audit.chain import read_head
from warmstart.confirm.audit.expected_rows import Details, read_details
from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.desk.desk import Desk
from warmstart.confirm.model import AuditEntry
from warmstart.confirm.notify.messages import Notification, escape
from warmstart.confirm.notify.sending import GONE, HELD, PAUSES, Channel, Sending, SendOutcome

_EVERY = 1.0  # seconds between looks
_AT_ONCE = 50
_OLD = 86_400_000  # milliseconds: nobody is alerted of what happened longer ago
MARK = "alerts"


class Alert(NamedTuple):
    """An alert in the table."""

    entry: AuditEntry  # of which only the sequence, time, event, actor and details are read
    channel: str
    attempts: int


def skip_alerts(desk: Desk) -> None:
    """Mark everything so far as seen: without a channel nobody is alerted, later neither."""
    desk.change(lambda tx: tx.store.rows("set_mark", {"name": MARK, "sequence": read_head(tx.store).sequence})).result()


class Alerter(Sending[Alert]):
    """Looks for new access and sends alerts."""

    def __init__(
        self, desk: Desk, channels: Sequence[Channel], page_url: str, *, pauses: Sequence[float] = PAUSES
    ) -> None:
        super().__init__(desk, channels, name="alert", threads=2, pauses=pauses)
        self._page_url = page_url
        self._seen = -1  # the newest entry that was looked at
        self._thread.start()

    def _look(self) -> float:
        store = self._desk.feed.store
        head = read_head(store).sequence
        if head != self._seen:
            (mark,) = store.row("mark", {"name": MARK})
            if store.row("access_entries", {"since": mark, "limit": 1}) is not None:
                self._desk.change(self._queue).result()
            self._seen = head
        (due,) = store.row("next_alert")
        if due is not None and due <= self._desk.now():
            for alert in self._desk.change(self._claim).result():
                self._send([alert])
        return _EVERY

    def _queue(self, tx: Transaction) -> None:
        """Queue an alert per channel for all new access."""
        (mark,) = tx.store.row("mark", {"name": MARK})
        for row in tx.store.rows("access_entries", {"since": mark, "limit": _AT_ONCE}):
            entry = AuditEntry(*row)
            mark = entry.sequence
            if entry.at > tx.now - _OLD:
                for channel in self._channels:
                    tx.store.rows("put_alert", {"sequence": entry.sequence, "channel": channel, "due": tx.now})
        tx.store.rows("set_mark", {"name": MARK, "sequence": mark})

    def _claim(self, tx: Transaction) -> list[Alert]:
        claimed = []
        for sequence, channel, attempts, at, event, actor, details in tx.store.rows(
            "due_alerts", {"now": tx.now, "limit": _AT_ONCE}
        ):
            mine = {"sequence": sequence, "channel": channel, "now": tx.now, "until": tx.now + HELD}
            if tx.store.row("claim_alert", mine) is None:
                continue
            alert = Alert(AuditEntry(sequence, at, event, "", "", actor, "", details, "", ""), channel, attempts)
            if channel in self._channels:
                claimed.append(alert)
            else:
                self._settle(tx, alert, SendOutcome("undeliverable", attempts, GONE))
        return claimed

    def _write(self, items: list[Alert], channel: Channel) -> Notification:
        return write_alert(items[0].entry, channel.kind, self._page_url)

    def _settle(self, tx: Transaction, item: Alert, outcome: SendOutcome) -> None:
        alert: dict[str, Any] = {"sequence": item.entry.sequence, "channel": item.channel}
        tx.store.rows("settle_alert", alert | outcome._asdict())
        if outcome.state == "undeliverable":
            facts: dict[str, Any] = {
                "entry": item.entry.sequence,
                "channel": item.channel,
                "attempts": outcome.attempts,
                "error": outcome.error,
            }
            tx.log("alert_undeliverable", "daemon", **facts)


def write_alert(entry: AuditEntry, kind: str, page_url: str) -> Notification:
    """Write the message about new access."""
    details = read_details(entry)
    title, body = _TEXTS[entry.event](_Words(entry, details, kind))
    at = datetime.fromtimestamp(entry.at / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Notification(title, f"{body} ({at})", page_url)


class _Words:
    """The names in an entry, escaped for a channel."""

    def __init__(self, entry: AuditEntry, details: Details, kind: str) -> None:
        self.actor = escape(entry.actor, kind)
        self.subject, self.name, self.scopes, self.token, self.passkey = (
            escape(str(details.get(name, "")), kind)[:200] for name in ("subject", "name", "scopes", "token", "passkey")
        )
        self.is_first = bool(details.get("first"))


def _write_login(words: _Words) -> tuple[str, str]:
    return "New login", f"{words.actor} logged in on the page. Not you? warmstart confirm logout {words.actor}"


def _write_token(words: _Words) -> tuple[str, str]:
    undo = f"warmstart confirm token revoke {words.token}"
    return "New token", f"{words.actor} made a token for {words.subject} ({words.scopes}). Not you? {undo}"


def _write_passkey(words: _Words) -> tuple[str, str]:
    state = "It is the first, so it is trusted" if words.is_first else "It is not trusted yet"
    undo = f"warmstart confirm passkey remove {words.passkey[:12]}"
    return "New device", f"{words.actor} set up a passkey on {words.name}. {state}. Not you? {undo}"


def _write_vouched(words: _Words) -> tuple[str, str]:
    undo = f"warmstart confirm passkey remove {words.passkey[:12]}"
    return "Device trusted", f"{words.actor} vouched for {words.name} of {words.subject}. Not you? {undo}"


_TEXTS = {
    "login": _write_login,
    "token_created": _write_token,
    "passkey_added": _write_passkey,
    "passkey_vouched": _write_vouched,
}
