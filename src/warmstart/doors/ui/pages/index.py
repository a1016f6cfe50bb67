"""Every page by the first part of its address: the list, and the page about one thing."""

from __future__ import annotations

from collections.abc import Mapping

from warmstart.doors.ui.pages import (
    confirm,
    effect,
    errors,
    home,
    live,
    notes,
    projects,
    review,
    session,
    sessions,
    settings,
    templates,
    usage,
)
from warmstart.doors.ui.request import UiPage

PAGES: Mapping[str, tuple[UiPage, UiPage | None]] = {
    "home": (home.PAGE, None),
    "sessions": (sessions.PAGE, session.PAGE),
    "live": (live.PAGE, None),
    "errors": (errors.PAGE, errors.ROW),
    "notes": (notes.PAGE, notes.NOTE),
    "templates": (templates.PAGE, templates.TEMPLATE),
    "effect": (effect.PAGE, effect.PAGE),
    "usage": (usage.PAGE, None),
    "projects": (projects.PAGE, projects.PROJECT),
    "confirm": (confirm.PAGE, None),
    "review": (review.PAGE, None),
    "settings": (settings.PAGE, None),
}
