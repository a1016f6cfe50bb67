"""Live: sessions as they run, filled in by the page's script from the server's events."""

from __future__ import annotations

from typing import Any

from warmstart.doors.cli.sessions import describe_session
from warmstart.doors.pages.markup import element
from warmstart.doors.ui.layout import Content, make_note
from warmstart.doors.ui.pages.session_rows import show_sessions
from warmstart.doors.ui.request import PageRequest, UiPage
from warmstart.store import SessionRow

_LATELY = 3600.0  # seconds


def _load(asked: PageRequest) -> list[SessionRow]:
    since = asked.ws.now() - _LATELY
    rows = asked.ws.store.rows("changed_sessions", (since,))
    return [SessionRow.from_columns(row) for row in reversed(rows)]


def _show(rows: list[SessionRow], asked: PageRequest) -> Content:
    return Content(
        title="Live",
        lead="While this page is open, transcripts that change are read every two seconds.",
        json="/live.json",
        body=[
            element("ol", {"class": "live", "data-live": "", "aria-live": "polite", "aria-label": "As it happens"}),
            element("h2", {}, "Changed within the last hour"),
            show_sessions(asked.ws, rows[:50]) if rows else make_note("None."),
        ],
    )


def _describe(rows: list[SessionRow]) -> list[dict[str, Any]]:
    return [describe_session(row) for row in rows]


PAGE = UiPage(_load, _show, _describe)
