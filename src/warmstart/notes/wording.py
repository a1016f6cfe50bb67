"""The text of advice: one line, made of the note alone, in which nothing can act as anything but text."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST = 400
OPENING = "[warmstart] "
STOPPED = "[warmstart] stopped: "  # recognised when the transcript is read back: such a call is no error
# Blocks with letters that look like Latin ones: Greek to Armenian, Cherokee, letter-like signs, full width, mathematical.
_LIKE_LATIN = ((0x370, 0x58F), (0x13A0, 0x13FF), (0x2100, 0x214F), (0xFF00, 0xFFEF), (0x1D400, 0x1D7FF))


def state_note(note: dict[str, Any], opening: str = OPENING, closing: str = "") -> str:
    """Return what a note says, with the number of sessions that met it."""
    support = note.get("support", 0)
    count = f" ({support} session{'' if support == 1 else 's'})" if support else ""
    end = make_inert(f"{count}{closing}")
    text = make_inert(str(note.get("text", "")))
    room = LONGEST - len(opening) - len(end)
    if len(text) > room:
        text = text[: room - 1] + "…"
    return opening + text + end


def make_inert(text: str) -> str:
    """Return a text on one line, with control characters, invisible ones and look-alikes of Latin letters escaped."""
    text = text[: 2 * LONGEST]
    if text.isascii() and text.isprintable():
        return text
    return " ".join(_escape_word(word) for word in text.split(" "))


def _escape_word(word: str) -> str:
    mixed = any(char.isascii() and char.isalpha() for char in word)
    return "".join(_escape(char) if _is_hidden(char) or (mixed and _is_like_latin(char)) else char for char in word)


def _is_hidden(char: str) -> bool:
    return not char.isprintable() or 0xFE00 <= ord(char) <= 0xFE0F or char in "\u115f\u1160\u2800\u3164\uffa0"


def _is_like_latin(char: str) -> bool:
    code = ord(char)
    return any(first <= code <= last for first, last in _LIKE_LATIN)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65_536 else f"\\U{code:08x}"
