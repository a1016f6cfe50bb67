"""What runs beside the daemon's two servers: notifications, alerts about access, and anchors elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from warmstart.confirm.audit.elsewhere import name_audit, open_place
from warmstart.confirm.audit.remote_anchorer import RemoteAnchorer
from warmstart.confirm.desk.desk import Desk
from warmstart.confirm.desk.submit import PUSH
from warmstart.confirm.notify.alerts import Alerter, skip_alerts
from warmstart.confirm.notify.messages import Notification
from warmstart.confirm.notify.notifier import Notifier
from warmstart.confirm.notify.push import (
    PushKey,
    PushSender,
    can_push,
    list_subscriptions,
    load_push_key,
    make_push_channel,
)
from warmstart.confirm.notify.sending import Channel
from warmstart.doors.web.settings import ServerSettings
from warmstart.doors.web.views import Addresses


class _Companion(Protocol):
    def stop(self) -> None: ...


class Companions:
    """Started after the desk, stopped before it is closed."""

    def __init__(self, desk: Desk, addresses: Addresses, settings: ServerSettings, channels: Sequence[Channel]) -> None:
        self._desk = desk
        self._addresses = addresses
        self._channels = list(channels)
        self._lock = threading.Lock()
        self._push_key: PushKey | None = None
        self._notifier: Notifier | None = None
        self._running: list[_Companion] = []
        home, label = desk.anchor.path.parent, name_audit(desk.store)
        places = [open_place(address, home, label) for address in settings.anchors]
        if can_push():
            self._channels.append(make_push_channel(self._send_push))
            desk.channels = (*desk.channels, PUSH)
        if channels or list_subscriptions(desk.store, desk.now()):
            self.start_notifier()
        if channels:
            self._running.append(Alerter(desk, channels, addresses.page))
        else:
            skip_alerts(desk)
        if places:
            self._running.append(RemoteAnchorer(desk.anchor, places, desk.problems))

    def start_notifier(self) -> None:
        """Start to send notices, unless that has begun. A daemon that nobody wants notices from leaves the outbox to
        others on its database."""
        with self._lock:
            if self._notifier is None:
                self._notifier = Notifier(self._desk, self._channels, self._addresses.page_of)
                self._running.append(self._notifier)

    def find_push_key(self) -> str:
        """Return the public key for browsers; empty if there is no push. The key is loaded at first use: loading takes
        longer than the rest of a start."""
        if not can_push():
            return ""
        return self._load_push_key().public

    def _load_push_key(self) -> PushKey:
        with self._lock:
            if self._push_key is None:
                self._push_key = load_push_key(self._desk.anchor.path.parent)
            return self._push_key

    def _send_push(self, message: Notification) -> None:
        PushSender(self._desk, self._load_push_key(), self._addresses.page)(message)

    def stop(self) -> None:
        for companion in self._running:
            companion.stop()
