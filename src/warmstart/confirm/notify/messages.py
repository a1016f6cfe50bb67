"""Write the notification of a request: short, plain, and without anything that a channel could interpret.

An agent wrote the description. In a chat it must not mention everybody, show a link of its own or hide behind another
text. No link in the message decides anything; the only link opens the request on the page.
"""

from __future__ import annotations

import html
import re
from typing import NamedTuple

from warmstart.confirm.masking.masker import is_turned, strip_hidden
from warmstart.confirm.model import Request
from warmstart.plurals import format_count

_GAP = "\u200b"  # zero-width space, breaks mentions and links
_LONGEST = 1_500  # characters of a message, however much the channel takes
_SHORTEST = 40  # characters of a description worth showing
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|~<>:])")

_TURNED = "(has letters written from right to left, so its words may be in another order here)"

# Kinds of channels by their scheme. A kind in none of these sets is treated as one that reads markdown.
_PLAIN = frozenset(
    "mailto mailtos ntfy ntfys json jsons xml xmls form forms gotify gotifys pover syslog sns push".split()
)
_ESCAPED_BY_APPRISE = frozenset(("slack", "tgram"))  # apprise escapes &, < and > for them
_DESKTOP = frozenset("dbus kde glib qt gnome macosx windows growl growls".split())
_NO_TAGS = str.maketrans({"<": "‹", ">": "›", "&": "＆"})


class Notification(NamedTuple):
    title: str
    body: str
    link: str = ""  # to the page; also in the body


def write_message(request: Request, page_url: str, kind: str, room: int) -> Notification:
    """Write the message for a kind of channel within `room` characters. The description may be cut, the link never."""
    title = "Approval needed (high risk)" if request.high_risk else "Approval needed"
    head = f"{escape(request.action, kind)}, asked by {escape(request.subject, kind)}"
    if is_turned(request.description):
        head += f" {_TURNED}"
    minutes = max(1, round(request.timeout / 60))
    tail = f"Decide within {format_count(minutes, 'minute')}: {page_url}"
    left = min(room, _LONGEST) - len(head) - len(tail) - len(title) - 8
    parts = [head, cut(request.description, kind, left), tail] if left >= _SHORTEST else [tail]
    return Notification(title, "\n".join(parts), page_url)


def escape(text: str, kind: str) -> str:
    """Escape an agent's text so that this kind of channel shows it literally."""
    text = " ".join(strip_hidden(text).split())
    text = text.replace("://", f":{_GAP}//").replace("www.", f"www{_GAP}.")  # the only link is ours
    if kind in _PLAIN:
        return text
    if kind in _DESKTOP:
        return text.translate(_NO_TAGS)
    if kind not in _ESCAPED_BY_APPRISE:
        text = _MARKDOWN.sub(r"\\\1", text)
    return text.replace("@", f"@{_GAP}").replace("<", f"<{_GAP}").replace("!", f"!{_GAP}")


def cut(text: str, kind: str, room: int) -> str:
    """Escape as much of a text as fits, without cutting an escape in two."""
    if _measure(text, kind) <= room:
        return escape(text, kind)
    plain = " ".join(strip_hidden(text).split())
    low, high = 0, min(len(plain), room)
    while low < high:
        middle = (low + high + 1) // 2
        if _measure(plain[:middle], kind) <= room - 1:
            low = middle
        else:
            high = middle - 1
    return escape(plain[:low], kind) + "…"


def _measure(text: str, kind: str) -> int:
    """Return a text's length as it is sent."""
    escaped = escape(text, kind)
    return len(html.escape(escaped, quote=False) if kind in _ESCAPED_BY_APPRISE else escaped)
