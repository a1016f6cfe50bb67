"""HTML and SVG made of elements: whatever is not itself markup is escaped, so nothing in a transcript can become some."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from html import escape

from warmstart.doors.render.terminal import clean

_VOID = frozenset(("meta", "wbr"))
_EMPTY: Mapping[str, object] = {}
_BREAK = re.compile(r"(?<=\w[/_.:-])(?=\w)")  # where a long name may go on in the next line


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


def make_document(mark: str, title: str, style: str, *body: Markup) -> str:
    """A whole page with its one style sheet inside, and a content policy that allows nothing but that."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        {},
        element("meta", {"charset": "utf-8"}),
        element("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("meta", {"name": "color-scheme", "content": "light dark"}),
        element("meta", {"name": "referrer", "content": "no-referrer"}),
        element("title", {}, title),
        element("style", {}, Markup(style)),
    )
    return f"{mark}\n{element('html', {'lang': 'en'}, head, element('body', {}, *body))}\n"


def isolate(text: str) -> Markup:
    """Text from a transcript, which may run from right to left: it must not turn its neighbours around."""
    first, *rest = _BREAK.split(clean(text))
    return element("bdi", {}, first, *(join(element("wbr"), part) for part in rest))


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """The numbers of a plot, for those who want them or cannot see it. Columns that begin with # stand right."""
    kinds = ["number" if name.startswith("#") else None for name in columns]
    head = element(
        "tr",
        {},
        *(
            element("th", {"scope": "col", "class": kind}, name.lstrip("#"))
            for name, kind in zip(columns, kinds, strict=True)
        ),
    )
    body = [
        element(
            "tr", {}, *(element("td", {"class": kind}, isolate(cell)) for cell, kind in zip(row, kinds, strict=True))
        )
        for row in rows
    ]
    table = element("table", {}, element("thead", {}, head), element("tbody", {}, *body))
    box = element("div", {"class": "scroll", "tabindex": 0}, table)
    return element("details", {}, element("summary", {}, "The numbers"), box)
