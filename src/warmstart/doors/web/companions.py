"""What runs beside the daemon's two servers: notifications, alerts about access, and anchors elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from warmstart.confirm.audit.elsewhere import name_audit, open_place
from warmstart.confirm.audit.remote_anchorer import RemoteAnchorer
from warmstart.confirm.desk.desk import Desk
from warmstart.confirm.notify.alerts import Alerter, skip_alerts
from warmstart.confirm.notify.notifier import Channel, Notifier
from warmstart.confirm.notify.push import PUSH, PushSender, load_push_key, make_push_channel
from warmstart.doors.web.settings import ServerSettings
from warmstart.doors.web.views import Addresses


class _Companion(Protocol):
    def stop(self) -> None: ...


class Companions:
    """Started after the desk, stopped before it is closed."""

    def __init__(self, desk: Desk, addresses: Addresses, settings: ServerSettings, channels: Sequence[Channel]) -> None:
        push_key = load_push_key(desk.anchor.path.parent)
        every = list(channels)
        if push_key is not None:
            every.append(make_push_channel(PushSender(desk, push_key, addresses.page)))
            desk.channels = (*desk.channels, PUSH)
        self.push_public = push_key.public if push_key else ""
        self._running: list[_Companion] = []
        if every:
            self._running.append(Notifier(desk, every, addresses.page_of))
        if channels:
            self._running.append(Alerter(desk, channels, addresses.page))
        else:
            skip_alerts(desk)
        home, label = desk.anchor.path.parent, name_audit(desk.store)
        places = [open_place(address, home, label) for address in settings.anchors]
        if places:
            self._running.append(RemoteAnchorer(desk.anchor, places, desk.problems))

    def stop(self) -> None:
        for companion in self._running:
            companion.stop()
