"""HTML and SVG made of elements: whatever is not itself markup is escaped, so nothing in a transcript can become some."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

_VOID = frozenset(("meta", "wbr"))
_EMPTY: Mapping[str, object] = {}


class Markup(str):
    """Text that is markup already. Only `element` and `join` make it."""

    __slots__ = ()


def element(name: str, attributes: Mapping[str, object] = _EMPTY, *children: str | None) -> Markup:
    """One element. Attributes that are None are left out, and so are children."""
    told = "".join(f' {key}="{escape(str(value))}"' for key, value in attributes.items() if value is not None)
    if name in _VOID:
        return Markup(f"<{name}{told}>")
    return Markup(f"<{name}{told}>{join(*children)}</{name}>")


def join(*parts: str | None) -> Markup:
    """Parts one after the other; plain text is escaped."""
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in parts if part is not None))
