"""The sessions: searched and filtered, newest first."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from warmstart.doors.cli.sessions import describe_session
from warmstart.doors.pages.markup import Markup, element
from warmstart.doors.ui.layout import Content, make_address, make_choice, make_field, make_filter, make_note, make_pager
from warmstart.doors.ui.pages.session_rows import show_sessions
from warmstart.doors.ui.request import PageRequest, UiPage
from warmstart.plurals import format_count
from warmstart.store import SessionRow

_LISTED = 50
_MOST = 1_000
_VERDICTS = (("", "any"), ("success", "success"), ("failure", "failure"), ("unknown", "unknown"))


class SessionList(Struct, frozen=True, kw_only=True):
    """A part of the sessions that match."""

    total: int
    sessions: tuple[SessionRow, ...]
    unsearched: int = 0  # sessions whose words are not indexed yet
    is_more: bool = False  # there are more than `total`


def _load(asked: PageRequest) -> SessionList:
    ws, words = asked.ws, asked.text("q")
    limit, offset = min(_MOST, asked.number("limit", _LISTED)), asked.number("offset", 0, 10**9)
    agent, project, verdict, since = asked.text("agent"), asked.text("project"), asked.verdict(), asked.since()
    if words:
        found = ws.find_sessions(
            words, limit=limit, offset=offset, agent=agent, verdict=verdict, project=project, since=since
        )
        return SessionList(
            total=found.total, sessions=found.sessions, unsearched=found.unsearched, is_more=found.is_more
        )
    rows = ws.sessions(limit=limit, offset=offset, agent=agent, verdict=verdict, project=project, since=since)
    total = ws.count_sessions(agent=agent, verdict=verdict, project=project, since=since)
    return SessionList(total=total, sessions=tuple(rows))


def _show(view: SessionList, asked: PageRequest) -> Content:
    wanted = {name: asked.text(name) for name in ("q", "agent", "project", "verdict", "since", "limit")}
    limit, offset = min(_MOST, asked.number("limit", _LISTED)), asked.number("offset", 0, 10**9)
    note: Markup | None = None
    if not view.sessions:
        note = make_note("No session matches." if any(wanted.values()) else "No session is stored yet; see Home.")
    elif view.unsearched:
        note = make_note(
            f"{format_count(view.unsearched, 'older session')} cannot be found yet: they are being indexed."
        )
    return Content(
        title="Sessions",
        lead="".join(
            (
                "More than " if view.is_more else "",
                format_count(view.total, "session"),
                " with these words" if wanted["q"] else "",
            )
        ),
        json=make_address("/sessions.json", **wanted),
        body=[
            _show_filter(asked),
            note,
            show_sessions(asked.ws, view.sessions) if view.sessions else None,
            make_pager("/sessions", wanted, total=view.total, limit=limit, offset=offset, is_more=view.is_more),
        ],
    )


def _show_filter(asked: PageRequest) -> Markup:
    agents = [("", "any"), *((name, name) for (name,) in asked.ws.store.rows("agent_list"))]
    projects = [("", "any"), *((name, name) for (name,) in asked.ws.store.rows("project_list"))]
    values = {name: asked.text(name) or "" for name in ("q", "agent", "project", "verdict", "since")}
    return make_filter(
        "/sessions",
        make_field("q", "Words", values["q"], type="search", title="In tasks, tools, commands, paths and errors"),
        make_choice("agent", "Agent", agents, values["agent"]),
        make_choice("project", "Project", projects, values["project"]),
        make_choice("verdict", "Verdict", _VERDICTS, values["verdict"]),
        make_field("since", "Since (days or date)", values["since"], size=10),
        element("span", {}),
    )


def _describe(view: SessionList) -> dict[str, Any]:
    return {
        "total": view.total,
        "is_more": view.is_more,
        "unsearched": view.unsearched,
        "sessions": [describe_session(row) for row in view.sessions],
    }


PAGE = UiPage(_load, _show, _describe, _show_filter)
