"""Insights as one HTML page that needs nothing else: no network, no script, its style and plots inside.

The page shows parts of somebody's transcripts. So everything is escaped (markup.py), a content policy allows nothing but
the one style sheet, and the file is written for its owner alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warmstart.atomic_files import write_whole
from warmstart.doors.pages.insights.sections import (
    describe_figures,
    show_advice,
    show_errors,
    show_rates,
    show_weeks,
    show_windows,
)
from warmstart.doors.pages.markup import Markup, element, make_document
from warmstart.doors.render.insights import NOTES, remarks_of
from warmstart.doors.render.terminal import when
from warmstart.errors import Refused
from warmstart.insights.types import Insights

MARK = "<!doctype html><!-- made by warmstart insights -->"
STYLE = Path(__file__).with_name("page.css")


def render_page(found: Insights, *, made: float, about: str = "") -> str:
    """The whole page. `about` says in words what was filtered."""
    style = STYLE.read_text("utf-8")
    return make_document(MARK, "Warmstart insights", style, _header(found, made, about), _main(found), _footer(found))


def write_page(path: Path, page: str) -> None:
    """All of it or nothing, readable by its owner alone; never over something that is not such a page."""
    _refuse_others(path)
    try:
        write_whole(path, page.encode("utf-8", "replace"))
    except OSError as error:
        raise Refused(f"{path}: cannot be written ({error.strerror})") from error


def _refuse_others(path: Path) -> None:
    try:
        if not path.exists():
            return
        if not path.is_file():
            raise Refused(f"{path}: not a file; give the name of a file to write")
        with path.open("rb") as file:
            start = file.read(len(MARK))
    except (OSError, ValueError) as error:
        raise Refused(f"{path!s}: cannot be written ({error})") from error
    if start and start != MARK.encode():
        raise Refused(f"{path}: there is something else in it; give another name or delete it first")


def _header(found: Insights, made: float, about: str) -> Markup:
    span = ""
    if found.first is not None and found.last is not None:
        span = f", {when(found.first)[:10]} to {when(found.last)[:10]}"
    told = f"{found.sessions:,} session{'' if found.sessions == 1 else 's'}{span}"
    return element(
        "header",
        {},
        element("h1", {}, "What your agents’ history tells"),
        element("p", {}, " · ".join(part for part in (told, about, f"made {when(made)} UTC") if part)),
        describe_figures(found) if found.sessions else None,
    )


def _main(found: Insights) -> Markup:
    if not found.sessions:
        return element(
            "main", {}, element("p", {}, "Nothing is remembered yet, or no session fits. Run: warmstart ingest")
        )
    sections = (
        _section("What to do", "", show_advice(found)),
        _section("The most repeated errors", NOTES["repeated"] if found.repeated else "", show_errors(found)),
        _section("Error rate along the session", "", show_windows(found)),
        _section("Where errors come from", NOTES["rates"], show_rates(found)),
        _section("Error rate by week", "", show_weeks(found)),
    )
    return element("main", {}, *sections)


def _section(title: str, lead: str, content: Markup | None) -> Markup | None:
    if content is None:
        return None
    intro = element("p", {"class": "lead"}, lead) if lead else None
    return element("section", {}, element("h2", {}, title), intro, content)


def _footer(found: Insights) -> Markup:
    notes: Sequence[str] = (
        "Errors are calls that failed. What a person refused, what was cancelled and what is unknown is in no rate.",
        f"Costs are estimates. {NOTES['cost']}",
        *remarks_of(found),
    )
    return element(
        "footer",
        {},
        element("p", {}, "About these numbers"),
        element("ul", {}, *(element("li", {}, note) for note in notes)),
        element("p", {"class": "note"}, "The page shows parts of transcripts, redacted. Look before you share it."),
    )
