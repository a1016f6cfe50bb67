"""Notification channels through apprise: Telegram, Discord, Slack, e-mail, ntfy, the desktop and a hundred more, each
given by an address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from warmstart.confirm.notify.buttons import (
    NTFY,
    TELEGRAM,
    TelegramChat,
    add_ntfy_button,
    can_have_button,
    find_chats,
    send_telegram,
)
from warmstart.confirm.notify.messages import Notification
from warmstart.confirm.notify.sending import Channel, Undelivered
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
        channels.append(Channel(f"{kind}#{number}", kind, room, _choose_sender(kind, address, plugin)))
    return channels


def _choose_sender(kind: str, address: str, plugin: Any) -> Callable[[Notification], None]:
    if kind in NTFY:
        return _NtfySender(address)
    if kind in TELEGRAM and find_chats(plugin):
        return _TelegramSender(address, find_chats(plugin))
    return _Sender(address)


class _NtfySender:
    """Adds the button to the address, which apprise reads it from."""

    def __init__(self, address: str) -> None:
        self._address = address

    def __call__(self, message: Notification) -> None:
        _Sender(add_ntfy_button(self._address, message.link))(message)


class _TelegramSender:
    """Uses Telegram's own interface for the button, and apprise without one."""

    def __init__(self, address: str, chats: list[TelegramChat]) -> None:
        self._chats = chats
        self._plain = _Sender(address)

    def __call__(self, message: Notification) -> None:
        if not can_have_button(message.link):
            self._plain(message)
            return
        for chat in self._chats:
            send_telegram(chat, message)


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
