"""Long text cut to head and tail, with the number of characters left out.

A cut avoids falling inside a word-like run: redaction comes after the cut and would not recognise half a secret.
"""

from __future__ import annotations

import re
from typing import Any

RESULT, ARGUMENT, MESSAGE = 400, 600, 4_000  # characters kept of a result, of a string in arguments, of a message

_SEAM = re.compile(r"[^A-Za-z0-9+/=_.%\\:@~$-]")
_GAP = "\n[... "
_REACH = 400  # how far a cut may move to find a seam
_SCALARS = frozenset((int, float, bool, type(None)))
_MAX_DEPTH = 12
_MAX_ITEMS = 200


def cut(text: str, limit: int) -> str:
    """Cut a text to about `limit` characters: two thirds head, one third tail, and the size of the gap."""
    if len(text) <= limit:
        return text
    head, tail = _head(text, limit * 2 // 3), _tail(text, len(text) - limit // 3)
    gap = len(text) - len(head) - len(tail)
    return f"{head}{_GAP}{gap} characters left out ...]\n{tail}"


def before_gap(text: str) -> str:
    """Return a text up to the place where `cut` left something out."""
    return text.partition(_GAP)[0]


def first(text: str, limit: int) -> str:
    """Cut a text to its head."""
    return text if len(text) <= limit else _head(text, limit) + " [...]"


def _head(text: str, end: int) -> str:
    newline = text.rfind("\n", max(0, end - _REACH // 2), end)
    if newline > 0:
        return text[:newline]
    for at in range(end, max(end // 2, end - _REACH), -1):
        if _SEAM.match(text[at]):
            return text[:at]
    return text[: max(end // 2, end - _REACH)]  # inside one long run; redaction still recognises a piece this long


def _tail(text: str, start: int) -> str:
    newline = text.find("\n", start, start + _REACH)
    if newline >= 0:
        return text[newline + 1 :]
    seam = _SEAM.search(text, start)
    return text[seam.end() :] if seam else ""


def cut_value(value: Any, limit: int, depth: int = 0) -> Any:
    """Cut the long strings inside a JSON-like value, and lists, objects and depths over their limits."""
    if isinstance(value, str):
        return value if len(value) <= limit else cut(value, limit)
    if isinstance(value, dict):
        if _is_short(value, limit):
            return value if len(value) <= _MAX_ITEMS else dict(list(value.items())[:_MAX_ITEMS])
        if depth >= _MAX_DEPTH:
            return "[...]"
        items = list(value.items())[:_MAX_ITEMS] if len(value) > _MAX_ITEMS else value.items()
        return {str(k)[:200]: cut_value(v, limit, depth + 1) for k, v in items}
    if isinstance(value, list):
        if depth >= _MAX_DEPTH:
            return "[...]"
        kept = [cut_value(v, limit, depth + 1) for v in value[:_MAX_ITEMS]]
        if len(value) > _MAX_ITEMS:
            kept.append(f"[... {len(value) - _MAX_ITEMS} items left out ...]")
        return kept
    return value


def _is_short(value: dict[Any, Any], limit: int) -> bool:
    """Return whether an object holds only numbers and short strings, as the arguments of most calls do."""
    for inner in value.values():
        kind = type(inner)
        if (len(inner) > limit) if kind is str else kind not in _SCALARS:
            return False
    return True
