"""The frame of every page, and the pieces that pages are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode

from msgspec import Struct

from warmstart.doors.pages.markup import Markup, element, isolate, join
from warmstart.doors.render.terminal import format_iso, format_time
from warmstart.doors.ui.access import Viewer
from warmstart.doors.ui.figures import Figure

GUEST_PAGES = ("errors", "notes", "effect")  # templates quote requests, which may hold personal data
_NAVIGATION = (
    ("home", "Home", "/"),
    ("sessions", "Sessions", "/sessions"),
    ("live", "Live", "/live"),
    ("errors", "Errors", "/errors"),
    ("notes", "Notes", "/notes"),
    ("templates", "Templates", "/templates"),
    ("effect", "Effect", "/effect"),
    ("usage", "Usage", "/usage"),
    ("projects", "Projects", "/projects"),
    ("review", "Review", "/review"),
    ("confirm", "Confirm", "/confirm"),
    ("settings", "Settings", "/settings"),
)


class Content(Struct, frozen=True, kw_only=True):
    """What a page shows inside the frame."""

    title: str
    body: Sequence[Markup | None]
    heading: Markup | None = None  # the title with its code marked; None: as it is
    lead: str = ""
    json: str | None = None  # address of the same as JSON
    status: int = 200


def make_page(content: Content, section: str, viewer: Viewer | None) -> bytes:
    """Return a whole page."""
    head = element(
        "head",
        {},
        element("meta", {"charset": "utf-8"}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("meta", {"name": "color-scheme", "content": "light dark"}),
        element("title", {}, f"{content.title} · Warmstart"),
        element("link", {"rel": "icon", "href": "/assets/icon.svg"}),
        element("link", {"rel": "stylesheet", "href": "/assets/insights.css"}),
        element("link", {"rel": "stylesheet", "href": "/assets/ui.css"}),
        element("script", {"type": "module", "src": "/assets/ui.js"}),
    )
    beside = link(content.json, "JSON", {"class": "beside"}) if content.json else None
    main = element(
        "main",
        {"id": "main"},
        element("div", {"class": "title"}, element("h1", {}, content.heading or isolate(content.title)), beside),
        element("p", {"class": "lead"}, content.lead) if content.lead else None,
        *content.body,
    )
    body = element(
        "body",
        {},
        link("#main", "Skip to the content", {"class": "skip"}),
        _make_header(section, viewer),
        main,
        element("div", {"id": "said", "role": "status", "aria-live": "polite"}),
    )
    return f"<!doctype html>\n{element('html', {'lang': 'en'}, head, body)}\n".encode("utf-8", "replace")


def _make_header(section: str, viewer: Viewer | None) -> Markup:
    if viewer is None:
        return element("header", {"class": "top"}, element("span", {"class": "brand"}, "Warmstart"))
    shown = [entry for entry in _NAVIGATION if viewer.role == "owner" or entry[0] in GUEST_PAGES]
    links = (
        element("li", {}, link(address, name, {"aria-current": "page"} if key == section else {}))
        for key, name, address in shown
    )
    search = element(
        "form",
        {"action": "/sessions", "role": "search", "class": "search"},
        element(
            "input",
            {"type": "search", "name": "q", "aria-label": "Search the sessions", "placeholder": "Search the sessions"},
        ),
    )
    return element(
        "header",
        {"class": "top"},
        element("span", {"class": "brand"}, "Warmstart"),
        element("nav", {"aria-label": "Pages"}, element("ul", {}, *links)),
        search if viewer.role == "owner" else element("span", {"class": "note"}, "read-only"),
    )


# Addresses


def make_address(path: str, *parts: str, **query: object) -> str:
    """Return an address of ours; parameters that are None or empty are left out."""
    place = "/".join((path, *(quote(part, safe="") for part in parts)))
    wanted = {name: str(value) for name, value in query.items() if value is not None and value != ""}
    return f"{place}?{urlencode(wanted)}" if wanted else place


def link(address: str, text: str, attributes: Mapping[str, object] | None = None) -> Markup:
    return element("a", {"href": address, **(attributes or {})}, text)


def link_session(key: str, text: str, call: int | None = None) -> Markup:
    """Link to a session, or to one of its calls (numbered from 0)."""
    if call is None:
        return link(make_address("/sessions", key), text)
    return link(make_address("/sessions", key, call=call) + f"#call-{call}", text)


# Pieces


def make_part(title: str, *content: Markup | None, lead: str = "", name: str | None = None) -> Markup | None:
    """Return a section with its heading; None without content."""
    kept = [piece for piece in content if piece is not None]
    if not kept:
        return None
    intro = element("p", {"class": "lead"}, lead) if lead else None
    return element("section", {"id": name}, element("h2", {}, title), intro, *kept)


def make_table(columns: Sequence[str], rows: Sequence[Sequence[str | Markup]], label: str) -> Markup:
    """Return a table. Columns whose name starts with # are aligned right. Plain text is isolated."""
    kinds = ["number" if name.startswith("#") else None for name in columns]
    head = element(
        "tr",
        {},
        *(
            element("th", {"scope": "col", "class": kind}, name.lstrip("#"))
            for name, kind in zip(columns, kinds, strict=True)
        ),
    )
    body = (
        element(
            "tr",
            {},
            *(
                element("td", {"class": kind}, cell if isinstance(cell, Markup) else isolate(cell))
                for cell, kind in zip(row, kinds, strict=True)
            ),
        )
        for row in rows
    )
    table = element("table", {}, element("thead", {}, head), element("tbody", {}, *body))
    css = "scroll narrow" if len(columns) <= 4 else "scroll"
    return element("div", {"class": css, "tabindex": 0, "role": "region", "aria-label": label}, table)


def make_facts(facts: Sequence[tuple[str, str | Markup]]) -> Markup:
    """Return names with their values; empty values are left out."""
    pairs = (
        element(
            "div",
            {},
            element("dt", {}, name),
            element("dd", {}, value if isinstance(value, Markup) else isolate(value)),
        )
        for name, value in facts
        if value
    )
    return element("dl", {"class": "facts"}, *pairs)


def make_badge(status: str, kind: str | None = None) -> Markup:
    """Return a status word in the colour of its kind; the word itself says it too."""
    good, bad = ("ok", "success", "active", "applied", "better", "works"), ("error", "failure", "worse", "harms")
    kind = kind or ("good" if status in good else "bad" if status in bad else "plain")
    return element("span", {"class": f"badge {kind}"}, status.replace("_", " "))


def keep_together(name: str) -> Markup:
    """Show a short name on one line; a long one may break."""
    return element("span", {"class": "together"}, name) if len(name) <= 24 else isolate(name)


def make_time(seconds: float | None) -> Markup:
    if seconds is None:
        return Markup("")
    return element("time", {"datetime": format_iso(seconds)}, format_time(seconds))


def make_note(text: str) -> Markup:
    return element("p", {"class": "note"}, text)


def make_warning(text: str) -> Markup:
    return element("p", {"class": "warning", "role": "alert"}, isolate(text))


def make_pager(
    address: str, query: Mapping[str, object], *, total: int, limit: int, offset: int, is_more: bool = False
) -> Markup | None:
    """Return links to the neighbouring parts of a long list. `is_more`: it is longer than `total`."""
    if total <= limit and not offset:
        return None
    whole = f"more than {total:,}" if is_more else f"{total:,}"
    parts = [f"{min(offset + 1, total):,} to {min(offset + limit, total):,} of {whole}"]
    links = []
    if offset > 0:
        links.append(link(make_address(address, **{**query, "offset": max(0, offset - limit) or None}), "Previous"))
    if offset + limit < total or is_more:
        links.append(link(make_address(address, **{**query, "offset": offset + limit}), "Next"))
    return element("nav", {"class": "pager", "aria-label": "More"}, element("span", {}, *parts), *links)


def make_choice(name: str, label: str, options: Sequence[tuple[str, str]], chosen: str) -> Markup:
    """Return a labelled list of options as (value, text)."""
    items = (
        element("option", {"value": value, "selected": "" if value == chosen else None}, text)
        for value, text in options
    )
    return element("label", {}, label, element("select", {"name": name}, *items))


def make_field(name: str, label: str, value: str = "", **attributes: object) -> Markup:
    return element("label", {}, label, element("input", {"name": name, "value": value, **attributes}))


def make_filter(address: str, *fields: Markup) -> Markup:
    """Return a form whose fields become the address: it works without scripts."""
    return element("form", {"action": address, "class": "filter"}, *fields, element("button", {}, "Show"))


def make_action(action: str, label: str, fixed: Mapping[str, str], *fields: Markup, css: str = "") -> Markup:
    """Return a form for a change. Scripts send it with the second secret; without them it stays disabled."""
    hidden = (element("input", {"type": "hidden", "name": name, "value": value}) for name, value in fixed.items())
    button = element("button", {"type": "submit", "disabled": "", "class": css or None}, label)
    return element("form", {"class": "action", "data-action": action}, *hidden, *fields, button)


def make_pending(figure: Figure) -> Markup | None:
    """Return a line about a figure that is not current: it is being computed, or cannot be."""
    if figure.problem:
        return make_warning(figure.problem)
    if figure.is_current:
        return None
    older = f"Computed {format_time(figure.made)} UTC; the store has changed since. " if figure.made else ""
    far = f"{figure.done:,} of {figure.total:,} sessions read" if figure.total else "reading the sessions"
    bar = element("progress", {"max": figure.total, "value": figure.done if figure.total else None, "aria-label": far})
    text = element("span", {}, f"{older}Being computed: {far}. This page shows it as soon as it is ready.")
    return element("p", {"class": "pending", "data-pending": figure.key, "role": "status"}, text, bar)


def join_with(between: str, parts: Sequence[Markup]) -> Markup:
    """Concatenate parts with a text between them."""
    joined: list[str] = []
    for part in parts:
        joined += [between, part] if joined else [part]
    return join(*joined)
