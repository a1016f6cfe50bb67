"""HTML and SVG made of elements: all text that is not markup is escaped, so no transcript can inject any, and characters that
hide or turn text are written out."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from html import escape

_SPOKEN = frozenset(("aria-label", "title", "placeholder", "content"))  # attributes that people read; others stay exact
_TURNING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_HIDING = (0x00AD, 0x180E, 0x200B, 0x2028, 0x2029, *range(0x2060, 0x2066), *range(0x206A, 0x2070), 0xFEFF)
_TAGS = range(0xE0000, 0xE0080)  # letters that nobody sees and models read
_CONTROL = (*range(9), *range(11, 32), *range(127, 160))
_REVEALED: dict[int, str | None] = {number: f"[U+{number:04X}]" for number in (*_TURNING, *_HIDING, *_TAGS)}
_REVEALED |= dict.fromkeys(_CONTROL, "\N{REPLACEMENT CHARACTER}")
_VOID = frozenset(("input", "link", "meta", "wbr"))
_EMPTY: Mapping[str, object] = {}
_BREAK = re.compile(
    r"(?<=\w[/_.:-])(?<!\d[.:-])(?=\w)|(?<=\d[.:-])(?=[^\W\d])"
)  # where a name may break; no number does


class Markup(str):
    """Text that is markup. Only `element` and `join` make it."""

    __slots__ = ()


def element(name: str, attributes: Mapping[str, object] = _EMPTY, *children: str | None) -> Markup:
    """Return one element, without attributes and children that are None."""
    written = "".join(
        f' {key}="{escape(reveal(str(value)) if key in _SPOKEN else str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*parts: str | None) -> Markup:
    """Concatenate parts; escape plain text."""
    return Markup(
        "".join(part if isinstance(part, Markup) else escape(reveal(part)) for part in parts if part is not None)
    )


def reveal(text: str) -> str:
    """Write out characters that turn the direction of text or cannot be seen, such as [U+202E]; control codes become a mark."""
    return text if text.isascii() and text.isprintable() else text.translate(_REVEALED)


def make_document(mark: str, title: str, style: str, *body: Markup) -> str:
    """Return a whole page with its style sheet inside and a content policy that allows nothing else."""
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


def make_section(title: str, lead: str, content: Markup | None) -> Markup | None:
    """Return a section with its heading and an introduction, or None without content."""
    if content is None:
        return None
    intro = element("p", {"class": "lead"}, lead) if lead else None
    return element("section", {}, element("h2", {}, title), intro, content)


def isolate(text: str) -> Markup:
    """Isolate text from a transcript: if it runs from right to left, its neighbours must not turn around."""
    first, *rest = _BREAK.split(reveal(text))
    return element("bdi", {}, first, *(join(element("wbr"), part) for part in rest))


def typeset_code(text: str) -> Markup:
    """Isolate text, with what stands between backticks as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one is not closed
        return isolate(text)
    return join(
        *(element("code", {}, isolate(part)) if at % 2 else isolate(part) for at, part in enumerate(parts) if part)
    )


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """Return the numbers of a plot as a folded table. Columns whose name starts with # are aligned right."""
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
