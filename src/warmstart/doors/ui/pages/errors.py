"""The errors: what repeats, how it was fixed, and the note about it; one row with its occurrences."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from warmstart.doors.pages.insights.sections import (
    describe_figures,
    show_advice,
    show_errors,
    show_rates,
    show_weeks,
    show_windows,
    show_work,
)
from warmstart.doors.pages.markup import Markup, element, isolate, join, typeset_code
from warmstart.doors.render.as_json import describe_insights, describe_occurrences
from warmstart.doors.render.insights import NOTES, endings_of, name_of, remarks_of, shape_of, what_failed
from warmstart.doors.ui.figures import Figure
from warmstart.doors.ui.layout import (
    Content,
    link,
    link_session,
    make_action,
    make_address,
    make_badge,
    make_field,
    make_filter,
    make_note,
    make_part,
    make_pending,
    make_table,
    make_time,
)
from warmstart.doors.ui.request import PageRequest, UiPage
from warmstart.errors import NotFound, Refused
from warmstart.insights.types import Insights, KnownNote, RepeatedError
from warmstart.pipeline import Warmstart
from warmstart.plurals import format_count
from warmstart.ports import Progress

_TOP = 10


class ErrorsView(Struct, frozen=True, kw_only=True):
    """The insights as far as they are computed."""

    figure: Figure
    number: int | None = None  # the row that was asked for

    @property
    def insights(self) -> Insights | None:
        assert self.figure.value is None or isinstance(self.figure.value, Insights)
        return self.figure.value


def _gather(asked: PageRequest, number: int | None = None) -> Figure:
    agent, project, since = asked.text("agent"), asked.text("project"), asked.since()
    top = asked.number("top", _TOP, 1_000) or _TOP
    compute = partial(gather, top=top, agent=agent, project=project, since=since, show=number, border=asked.border)
    return asked.figure(("insights", agent, project, asked.text("since"), top, number), compute, cost="slow")


def gather(ws: Warmstart, progress: Progress, **wanted: Any) -> Insights:
    """Compute what `warmstart insights` prints."""
    return ws.insights(progress=progress, **wanted)


def _load(asked: PageRequest) -> ErrorsView:
    return ErrorsView(figure=_gather(asked))


def _load_one(asked: PageRequest) -> ErrorsView:
    if not asked.name.isdecimal() or not int(asked.name):
        raise NotFound(f"{asked.name!r} is no row of the errors")
    number = int(asked.name)
    view = ErrorsView(figure=_gather(asked, number), number=number)
    if view.figure.is_current and view.insights and view.insights.shown is None:
        raise NotFound(f"there is no repeated error in row {number}")
    return view


def _wanted(asked: PageRequest) -> dict[str, object]:
    return {name: asked.text(name) for name in ("agent", "project", "since")}


def _show(view: ErrorsView, asked: PageRequest) -> Content:
    insights, wanted = view.insights, _wanted(asked)
    body: list[Markup | None] = [_show_filter(wanted), make_pending(view.figure)]
    if insights is not None and not insights.sessions:
        body.append(make_note("No session is stored yet, or none matches."))
    elif insights is not None:
        body += [
            describe_figures(insights),
            make_part("What to do", show_advice(insights, _offer) if asked.may_change else None),
            make_part(
                "The most repeated errors",
                show_errors(insights, lambda error: _lead_on(error, wanted)),
                lead=NOTES["repeated"].partition(" See the occurrences")[0] if insights.repeated else "",
            ),
            make_part("Error rate along the session", show_windows(insights)),
            make_part("Error rate by kind of work", show_work(insights), lead=NOTES["work"]),
            make_part(
                "Where errors come from",
                show_rates(insights, _find_place) if asked.may_change else show_rates(insights),
                lead=NOTES["rates"],
            ),
            make_part("Error rate by week", show_weeks(insights)),
            *(make_note(remark) for remark in remarks_of(insights)),
        ]
    return Content(title="Errors", json=make_address("/errors.json", **wanted), body=body)


def _offer(command: str) -> Markup:
    """Lead to the page that does what a command does; show the command where there is none."""
    words = command.split()
    places = {"notes": "/notes", "sessions": "/sessions"}
    if len(words) == 4 and words[1] in places:
        return link(make_address(places[words[1]], words[3]), f"Open the {words[1][:-1]}", {"class": "onward"})
    if words[1:] == ["experiment", "power"]:
        return link("/effect", "See what your traffic can show", {"class": "onward"})
    if words[1:] == ["learn"]:
        return link("/#work", "Start it on Home", {"class": "onward"})
    return element("code", {}, command)


def _find_place(kind: str, name: str) -> str | None:
    """Return the address of the sessions behind a rate; None where they cannot be listed."""
    if kind == "tool":
        return make_address("/sessions", q=name) if any(char.isalnum() for char in name) else None
    return make_address("/sessions", **{kind: name}) if kind in ("agent", "project") else None


def _show_filter(wanted: Mapping[str, object]) -> Markup:
    return make_filter(
        "/errors",
        make_field("agent", "Agent", str(wanted["agent"] or ""), size=14),
        make_field("project", "Project", str(wanted["project"] or ""), size=24),
        make_field("since", "Since (days or date)", str(wanted["since"] or ""), size=10),
    )


def _lead_on(error: RepeatedError, wanted: Mapping[str, object]) -> Markup:
    address = make_address("/errors", str(error.number), **wanted)
    occurrences = link(address, f"{format_count(error.count, 'occurrence')} and the fix")
    return element("p", {"class": "onward"}, occurrences, *_name_note(error.note))


def _name_note(note: KnownNote | None) -> list[Markup | str]:
    if note is None:
        return []
    return [" · ", link(make_address("/notes", note.id), f"note {note.id}"), " ", make_badge(note.status)]


def _show_one(view: ErrorsView, asked: PageRequest) -> Content:
    insights = view.insights
    error = insights.shown if insights else None
    json = make_address("/errors", f"{view.number}.json", **_wanted(asked))
    if insights is None or error is None:
        return Content(title=f"Error {view.number}", json=json, body=[make_pending(view.figure)])
    rows = [
        (
            link_session(one.session, name_of(one.id, 24), one.call)
            if asked.may_change
            else element("span", {}, name_of(one.id, 24)),
            str(one.call),
            make_time(one.at),
            name_of(one.cause, 200),
            name_of(one.followed, 200),
        )
        for one in insights.occurrences
    ]
    columns = ("session", "#call", "time (UTC)", "cause", "what followed")
    about = f"{name_of(error.tool)}: {format_count(error.count, 'time')} in {format_count(error.sessions, 'session')}"
    return Content(
        title=what_failed(error, 140),
        lead=about,
        json=json,
        body=[
            make_pending(view.figure),
            element("p", {"class": "said code"}, isolate(shape_of(error, 300))) if error.message else None,
            make_part(
                "How it ended", element("ul", {}, *(element("li", {}, isolate(one)) for one in endings_of(error)))
            ),
            make_part("The note about it", _show_note(insights, error, asked)),
            make_part("Occurrences", make_table(columns, rows, "Occurrences"), lead="The latest first."),
        ],
    )


def _show_note(insights: Insights, error: RepeatedError, asked: PageRequest) -> Markup | None:
    """Show the note about an error with the decision that it waits for, or offer to make one."""
    if error.note is not None:
        note = next((one for one in asked.ws.notes.list() if one.id == error.note.id), None)
        if note is None:
            return None
        named = element("p", {}, link(make_address("/notes", note.id), note.id), " ", make_badge(note.status))
        text = element("p", {}, typeset_code(note.text))
        if note.status == "active" or not asked.may_change:
            return join(named, text)
        reason = make_field("reason", "Reason (kept on the record)", "", size=50)
        return join(named, text, make_action("notes/approve", "Approve the note", {"note": note.id}, reason))
    if not asked.may_change:
        return make_note("None.")
    latest = insights.occurrences[0] if insights.occurrences else None
    if latest is None:
        return None
    fixed = {"session": latest.session, "call": str(latest.call)}
    field = make_field("text", "Its sentence (empty: as learning words it)", "", size=70)
    return join(
        make_note(
            "None yet. A note is shown in the brief of new sessions, and at calls where its cause is recognised."
        ),
        make_action("notes/make", "Make a note of it", fixed, field),
    )


def _describe(view: ErrorsView) -> dict[str, Any]:
    if view.insights is None:
        raise Refused("the errors are not computed yet")
    return describe_insights(view.insights) if view.number is None else describe_occurrences(view.insights)


PAGE = UiPage(_load, _show, _describe, lambda asked: _show_filter(_wanted(asked)))
ROW = UiPage(_load_one, _show_one, _describe)
