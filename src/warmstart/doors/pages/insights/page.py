"""Insights as one self-contained HTML page: no network, no script, its style and plots inside.

The page shows parts of somebody's transcripts, so everything is escaped (markup.py), a content policy allows nothing but
the one style sheet, and only the owner can read the file.
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
    show_work,
)
from warmstart.doors.pages.markup import Markup, element, make_document, make_section
from warmstart.doors.render.insights import NOTES, remarks_of
from warmstart.doors.render.terminal import format_time
from warmstart.errors import Refused
from warmstart.insights.types import Insights
from warmstart.plurals import format_count

MARK = "<!doctype html><!-- made by warmstart insights -->"
STYLE = Path(__file__).with_name("page.css")


def render_page(insights: Insights, *, made: float, about: str = "") -> str:
    """Return the whole page. `about` describes the filters."""
    style = STYLE.read_text("utf-8")
    return make_document(
        MARK, "Warmstart insights", style, _header(insights, made, about), _main(insights), _footer(insights)
    )


def write_page(path: Path, page: str) -> None:
    """Write the page atomically, readable by its owner alone; never overwrite a file that is not such a page."""
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
        raise Refused(f"{path} is not an insights page; give another name or delete it first")


def _header(insights: Insights, made: float, about: str) -> Markup:
    span = ""
    if insights.first is not None and insights.last is not None:
        span = f", {format_time(insights.first)[:10]} to {format_time(insights.last)[:10]}"
    sessions = format_count(insights.sessions, "session") + span
    return element(
        "header",
        {},
        element("h1", {}, "What your agents’ history shows"),
        element("p", {}, " · ".join(part for part in (sessions, about, f"made {format_time(made)} UTC") if part)),
        describe_figures(insights) if insights.sessions else None,
    )


def _main(insights: Insights) -> Markup:
    if not insights.sessions:
        return element("main", {}, element("p", {}, "No session is stored yet, or none matches. Run: warmstart ingest"))
    sections = (
        make_section("What to do", "", show_advice(insights)),
        make_section("The most repeated errors", NOTES["repeated"] if insights.repeated else "", show_errors(insights)),
        make_section("Error rate along the session", "", show_windows(insights)),
        make_section("Error rate by kind of work", NOTES["work"] if insights.by_work else "", show_work(insights)),
        make_section("Where errors come from", NOTES["rates"], show_rates(insights)),
        make_section("Error rate by week", "", show_weeks(insights)),
    )
    return element("main", {}, *sections)


def _footer(insights: Insights) -> Markup:
    notes: Sequence[str] = (
        "Errors are calls that failed. Calls that were rejected or cancelled, and those with an unknown outcome, are in no rate.",
        f"Costs are estimates. {NOTES['cost']}",
        *remarks_of(insights),
    )
    return element(
        "footer",
        {},
        element("p", {}, "About these numbers"),
        element("ul", {}, *(element("li", {}, note) for note in notes)),
        element(
            "p", {"class": "note"}, "The page contains redacted parts of transcripts. Check it before you share it."
        ),
    )
