"""One request for a page: whose it is, what it asks for, and the means to answer it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, cast, get_args

from msgspec import Struct, field

from warmstart.doors.pages.markup import Markup
from warmstart.doors.render.times import read_since
from warmstart.doors.ui.access import Viewer
from warmstart.doors.ui.background import Compute
from warmstart.doors.ui.figures import MOMENT, Figure, FigureCost, Figures
from warmstart.doors.ui.layout import Content
from warmstart.doors.ui.work import Work
from warmstart.errors import NotFound, Refused
from warmstart.model import Verdict
from warmstart.pipeline import Warmstart
from warmstart.scopes import EVERYWHERE, Border


class PageRequest(Struct, frozen=True, kw_only=True):
    """A request for a page or its JSON."""

    ws: Warmstart
    figures: Figures
    work: Work
    viewer: Viewer
    name: str = ""  # of the one thing that a page is about; empty: the list
    query: Mapping[str, str] = {}
    is_json: bool = False
    began: float = field(default_factory=time.monotonic)

    @property
    def border(self) -> Border | None:
        """The border of what may be shown; None for the machine's owner."""
        return None if self.viewer.role == "owner" else Border("", EVERYWHERE)

    @property
    def may_change(self) -> bool:
        return self.viewer.role == "owner"

    def figure(self, name: tuple[object, ...], compute: Compute, *, cost: FigureCost = "quick") -> Figure:
        """Return a figure about the whole history. Programs wait for it; a page shows that it is being computed.

        `compute` may run in another process: it is a function of a module, or a partial of one.
        """
        wait = (
            None if self.is_json else max(0.0, self.began + MOMENT - time.monotonic())
        )  # for all its figures together
        figure = self.figures.get((self.viewer.role, *name), compute, wait=wait, cost=cost)
        if self.is_json and figure.problem:
            raise Refused(figure.problem)
        return figure

    def text(self, name: str) -> str | None:
        """Return a parameter; None if it is missing or empty."""
        return self.query.get(name, "").strip()[:500] or None

    def number(self, name: str, default: int, most: int = 1_000_000) -> int:
        """Return a parameter that is a number from 0 on."""
        text = self.text(name)
        if text is None:
            return default
        if not text.isdecimal() or int(text) > most:
            raise Refused(f"{name}: {text!r} is not a number from 0 to {most:,}")
        return int(text)

    def since(self) -> float | None:
        """Return the beginning of the wanted time: a number of days, or a date."""
        text = self.text("since")
        try:
            return None if text is None else read_since(text)
        except ValueError as error:
            raise Refused(f"since: {error}") from error

    def verdict(self) -> Verdict | None:
        text = self.text("verdict")
        if text is not None and text not in get_args(Verdict):
            raise Refused(f"verdict: {text!r} is none of {', '.join(get_args(Verdict))}")
        return cast("Verdict | None", text)


class UiPage(Struct, frozen=True):
    """A kind of page: `load` returns a value, which is shown as HTML or described as JSON."""

    load: Callable[[PageRequest], Any]
    show: Callable[[Any, PageRequest], Content]
    describe: Callable[[Any], Any]
    make_form: Callable[[PageRequest], Markup] | None = None  # to ask for something else, if what was asked is refused


def find_page(pages: Mapping[str, tuple[UiPage, UiPage | None]], section: str, name: str) -> UiPage:
    """Return the page of a section: its list, or the one about a named thing."""
    if section not in pages:
        raise NotFound(f"there is no page {section!r}")
    listing, one = pages[section]
    if not name:
        return listing
    if one is None:
        raise NotFound(f"there is no page {section}/{name}")
    return one
