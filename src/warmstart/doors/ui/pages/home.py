"""The home page: what to do now, and what happened last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from warmstart.doors.cli.doctor import describe_vanishing, examine_vanishing
from warmstart.doors.cli.effect import describe_experiment
from warmstart.doors.cli.job_sources import read_sources
from warmstart.doors.cli.jobs import describe_checks
from warmstart.doors.cli.sessions import describe_session
from warmstart.doors.pages.markup import Markup, element, isolate, typeset_code
from warmstart.doors.ui.figures import Figure
from warmstart.doors.ui.layout import Content, link, make_action, make_address, make_part
from warmstart.doors.ui.pages.confirm import count_waiting
from warmstart.doors.ui.pages.session_rows import show_sessions
from warmstart.doors.ui.request import PageRequest, UiPage
from warmstart.doors.ui.work import WorkState
from warmstart.jobs import JobsReport, check_jobs
from warmstart.notes.types import Note
from warmstart.pipeline import Warmstart
from warmstart.plurals import format_count
from warmstart.ports import Progress
from warmstart.store import ExperimentRow, SessionRow

_LATEST = 8


class HomeView(Struct, frozen=True, kw_only=True):
    """What the home page shows."""

    sessions: int
    latest: list[SessionRow]
    notes: tuple[Note, ...]  # that wait
    recurring: tuple[Note, ...]  # that sessions met although they were shown them
    templates: int  # that wait
    proposals: int  # of reviews, that wait
    requests: int  # of agents, that wait at the confirmation daemon
    jobs: JobsReport
    experiment: ExperimentRow | None  # that runs
    holdout: float
    vanishing: Figure
    work: WorkState | None


def _load(asked: PageRequest) -> HomeView:
    ws = asked.ws
    notes = ws.notes.list()
    return HomeView(
        sessions=ws.count_sessions(),
        latest=ws.sessions(limit=_LATEST),
        notes=tuple(note for note in notes if note.status == "proposed"),
        recurring=tuple(note for note in notes if note.status == "active" and note.recurred),
        templates=ws.templates.stats()["by_status"].get("proposed", 0),
        proposals=len(ws.reviews.list("waiting")),
        requests=count_waiting(ws.settings),
        jobs=check_jobs(read_sources(ws.settings, None, None)),
        experiment=next((row for row in ws.experiments.list() if row.stopped is None), None),
        holdout=ws.settings.holdout,
        vanishing=asked.figure(("vanishing",), find_vanishing, cost="light"),
        work=asked.work.state,
    )


def find_vanishing(ws: Warmstart, _progress: Progress) -> dict[str, Any]:
    """Find the transcripts that their agents will delete."""
    return examine_vanishing(ws)


def _show(view: HomeView, asked: PageRequest) -> Content:
    todo = [element("li", {}, *parts) for parts in _list_todo(view)]
    calm = element("p", {}, "Nothing waits for you.")
    sessions = show_sessions(asked.ws, view.latest) if view.latest else None
    return Content(
        title="What to do now",
        lead=f"{format_count(view.sessions, 'session')} stored.",
        json="/home.json",
        body=[
            element("ul", {"class": "todo"}, *todo) if todo else calm,
            make_part("The latest sessions", sessions),
            make_part("Read and learn", _show_work(view.work)),
        ],
    )


def _list_todo(view: HomeView) -> Iterator[tuple[Markup | str, ...]]:
    """Yield what waits, the most urgent first."""
    if not view.sessions:
        yield ("No session is stored yet. Read the transcripts of your agents: start Ingest below.",)
    if view.requests:
        waiting = format_count(view.requests, "request of an agent waits", "requests of agents wait")
        yield (link("/confirm", f"{waiting} for a yes or no"),)
    for job in view.jobs.failing:
        yield ("The job ", isolate(job.name), " would fail: ", isolate(job.reason))
    if line := describe_vanishing(view.vanishing.value) if view.vanishing.value else "":
        yield (isolate(line),)
    if view.notes:
        waiting = format_count(len(view.notes), "note waits", "notes wait")
        yield (link(make_address("/notes", status="proposed"), f"{waiting} for your decision"),)
    if view.templates:
        waiting = format_count(view.templates, "template waits", "templates wait")
        yield (link(make_address("/templates", status="proposed"), f"{waiting} for your decision"),)
    if view.proposals:
        waiting = format_count(view.proposals, "proposal of a review waits", "proposals of reviews wait")
        yield (link("/review", f"{waiting} for your decision"),)
    for note in view.recurring[:5]:
        met = f"{note.recurred} of {format_count(note.shown, 'session')} met it although they were shown it: "
        yield (link(make_address("/notes", note.id), f"Note {note.id}"), " recurs; ", met, typeset_code(note.text))
    if view.experiment:
        yield ("The experiment ", link(make_address("/effect", view.experiment.name), view.experiment.name), " runs.")
    elif view.sessions and not view.holdout:
        yield ("No session is held out, so no effect can be measured. Set `holdout` in config.toml.",)


def _show_work(state: WorkState | None) -> Markup:
    buttons = element(
        "div",
        {"class": "buttons"},
        make_action("work/ingest", "Ingest the transcripts", {}),
        make_action("work/learn", "Learn notes and templates", {}),
    )
    if state is None:
        shown: Markup | None = None
    elif state.ended is None:
        far = f"{state.kind}: {state.done:,}" + (f" of {state.total:,}" if state.total else "")
        bar = {"max": state.total or None, "value": state.done if state.total else None, "aria-label": far}
        shown = element(
            "p", {"class": "pending", "data-work": state.kind}, element("span", {}, far), element("progress", bar)
        )
    else:
        shown = element("p", {"class": "worked"}, isolate(f"{state.kind} has ended: {state.problem or state.result}"))
    lead = element("p", {"class": "lead"}, "It goes on when this page is closed.")
    return element("div", {"id": "work"}, lead, buttons, shown)


def _describe(view: HomeView) -> dict[str, Any]:
    return {
        "sessions": view.sessions,
        "latest": [describe_session(row) for row in view.latest],
        "notes_waiting": [note.id for note in view.notes],
        "notes_recurring": [note.id for note in view.recurring],
        "templates_waiting": view.templates,
        "proposals_waiting": view.proposals,
        "requests_waiting": view.requests,
        "jobs": describe_checks(view.jobs),
        "experiment": describe_experiment(view.experiment) if view.experiment else None,
        "vanishing": view.vanishing.value,
        "work": view.work,
    }


PAGE = UiPage(_load, _show, _describe)
