"""Buttons under notifications, where a channel has them: ntfy and Telegram. A button opens the request on the page; none
decides anything, since everybody in the channel could press it."""

from __future__ import annotations

import http.client
import json
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, urlopen

from warmstart.confirm.notify.messages import Notification
from warmstart.confirm.notify.sending import Undelivered

LABEL = "Open the request"
NTFY, TELEGRAM = ("ntfy", "ntfys"), ("tgram",)
TELEGRAM_API = "https://api.telegram.org"
_PATIENCE = 20  # seconds
_LOCAL = ("127.0.0.1", "localhost", "::1")


def add_ntfy_button(address: str, link: str) -> str:
    """Return an ntfy address of apprise whose message opens the link when it is pressed, unless the address says
    otherwise itself."""
    given = urlsplit(address).query
    wanted = {"click": link, "actions": f"view, {LABEL}, {link}, clear=true"}
    more = {name: value for name, value in wanted.items() if f"{name}=" not in given}
    if not link or not more:
        return address
    return f"{address}{'&' if given else '?'}{urlencode(more, quote_via=quote)}"


class TelegramChat(NamedTuple):
    """Where a bot writes."""

    token: str
    chat: str
    topic: int | None
    silent: bool


def find_chats(plugin: Any) -> list[TelegramChat]:
    """Return the chats of apprise's Telegram plug-in; none if it has to find out its owner's chat itself."""
    targets = [target if isinstance(target, tuple) else (target, None) for target in plugin.targets]
    return [
        TelegramChat(plugin.bot_token, str(chat), topic if topic is not None else plugin.topic, bool(plugin.silent))
        for chat, topic in targets
    ]


def can_have_button(link: str) -> bool:
    """Return whether Telegram accepts a link for a button: not one to this machine."""
    parts = urlsplit(link)
    return parts.scheme == "https" and parts.hostname not in _LOCAL


def send_telegram(chat: TelegramChat, message: Notification, api: str = TELEGRAM_API) -> None:
    """Send a plain text with a button. Raise Undelivered if Telegram does not accept it; the token is in no error."""
    body: dict[str, Any] = {
        "chat_id": chat.chat,
        "text": f"{message.title}\n{message.body}",
        "disable_notification": chat.silent,
        "link_preview_options": {"is_disabled": True},
        "reply_markup": {"inline_keyboard": [[{"text": LABEL, "url": message.link}]]},
    }
    if chat.topic is not None:
        body["message_thread_id"] = chat.topic
    request = Request(
        f"{api}/bot{chat.token}/sendMessage",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
        method="POST",
    )
    try:
        with urlopen(request, timeout=_PATIENCE) as answer:
            answer.read(1 << 16)
    except HTTPError as error:
        raise Undelivered(f"Telegram answered {error.code}: {_read_reason(error)}") from None
    except (URLError, OSError, http.client.HTTPException) as error:
        raise Undelivered(f"Telegram cannot be reached: {type(error).__name__}") from None


def _read_reason(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read(1 << 12)).get("description", ""))[:200]
    except (ValueError, OSError, AttributeError):
        return error.reason
