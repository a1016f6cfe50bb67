"""Notification channels through apprise: Telegram, Discord, Slack, e-mail, ntfy, the desktop and a hundred more, each
given by an address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warmstart.confirm.notify.messages import Notification
from warmstart.confirm.notify.notifier import Channel, Undelivered
from warmstart.errors import ConfigError

_ROOM = 1_000  # characters, if a plug-in does not state its limit


def make_channels(addresses: Sequence[str]) -> list[Channel]:
    """Make a channel per address. The ConfigError for an unknown address does not repeat it, since it holds secrets."""
    if not addresses:
        return []
    try:
        import apprise
    except ImportError as error:
        raise ConfigError("notifications need apprise; install it with: pip install 'warmstart[confirm]'") from error
    channels = []
    for number, address in enumerate(addresses, 1):
        kind = address.partition(":")[0].lower()
        plugin = apprise.Apprise.instantiate(address, suppress_exceptions=True)
        if plugin is None or not kind.isalnum():
            raise ConfigError(f"notify: apprise does not know address {number}; see its documentation")
        room = int(getattr(plugin, "body_maxlen", 0) or _ROOM)
        channels.append(Channel(f"{kind}#{number}", kind, room, _Sender(address)))
    return channels


class _Sender:
    """Sends plain text through one address, without interpreting markup or escapes."""

    def __init__(self, address: str) -> None:
        import apprise

        self._apprise: Any = apprise.Apprise()
        self._apprise.add(address)
        self._text: Any = apprise.NotifyFormat.TEXT

    def __call__(self, message: Notification) -> None:
        done = self._apprise.notify(
            title=message.title, body=message.body, body_format=self._text, interpret_escapes=False
        )
        complaints = [str(entry.message) for entry in done.logs() if entry.level in ("WARNING", "ERROR")]
        done.close()
        if not done:
            raise Undelivered(complaints[-1] if complaints else "the channel did not take it")
