"""The projects: which folders belong to each, and a person's corrections."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from warmstart.doors.cli.templates import name_scope
from warmstart.doors.pages.markup import Markup, element, isolate, join
from warmstart.doors.render.terminal import format_iso
from warmstart.doors.ui.figures import Figure
from warmstart.doors.ui.layout import (
    Content,
    link,
    make_action,
    make_address,
    make_facts,
    make_field,
    make_note,
    make_pager,
    make_part,
    make_pending,
    make_table,
    make_time,
)
from warmstart.doors.ui.request import PageRequest, UiPage
from warmstart.errors import NotFound
from warmstart.ingest.project_book import ProjectSummary
from warmstart.notes.sharing import ScopeSummary
from warmstart.pipeline import Warmstart
from warmstart.ports import Progress
from warmstart.scopes import SHARED

_LISTED = 100
_SCOPES = (
    "Notes and templates belong to the profile or person whose sessions they come from. What you share, every profile and "
    "person of the project uses; templates also other projects."
)
_COLUMNS = ("project", "#sessions", "notes", "known by", "also called", "folders", "last seen (UTC)")


class ProjectList(Struct, frozen=True, kw_only=True):
    """The projects, and pairs that may be one."""

    projects: Figure  # of a list of ProjectSummary
    suggested: Figure  # of pairs with the number of files that both touched


def _load(asked: PageRequest) -> ProjectList:
    return ProjectList(
        projects=asked.figure(("projects",), list_projects),
        suggested=asked.figure(("suggested",), suggest_merges),
    )


def list_projects(ws: Warmstart, _progress: Progress) -> list[ProjectSummary]:
    return ws.projects.list()


def suggest_merges(ws: Warmstart, _progress: Progress) -> tuple[tuple[str, str, int], ...]:
    return ws.projects.suggest()


def _show(view: ProjectList, asked: PageRequest) -> Content:
    offset = asked.number("offset", 0)
    listed: list[ProjectSummary] = view.projects.value or []
    rows = [_make_row(one) for one in listed[offset : offset + _LISTED]]
    empty = None if view.projects.value is None else make_note("No projects yet: ingest transcripts, on Home.")
    return Content(
        title="Projects",
        lead="A project is a repository, wherever it is checked out: clones, worktrees and subfolders belong to it.",
        json="/projects.json",
        body=[
            make_pending(view.projects),
            make_table(_COLUMNS, rows, "Projects") if rows else empty,
            make_pager("/projects", {}, total=len(listed), limit=_LISTED, offset=offset),
            make_part("Perhaps one project", _show_suggested(view)),
            make_part("Correct", _offer_changes()),
        ],
    )


def _make_row(one: ProjectSummary) -> tuple[str | Markup, ...]:
    folders = ", ".join(one.folders[:3]) + (f" and {len(one.folders) - 3} more" if len(one.folders) > 3 else "")
    return (
        element("div", {"class": "long"}, link(make_address("/projects", one.project), one.project)),
        link(make_address("/sessions", project=one.project), f"{one.sessions:,}"),
        link(make_address("/notes", project=one.project), "notes"),
        one.by,
        ", ".join(one.names),
        element("div", {"class": "long"}, isolate(folders)),
        make_time(one.last_seen),
    )


def _show_suggested(view: ProjectList) -> Markup | None:
    items = [
        element(
            "li",
            {},
            isolate(f"{files} files have the same paths in {one} and {other}."),
            make_action("projects/merge", "Merge them", {"project": one, "other": other}),
        )
        for one, other, files in view.suggested.value or ()
    ]
    return element("ul", {}, *items) if items else None


def _offer_changes(project: str = "") -> Markup:
    return join(
        make_action(
            "projects/merge",
            "Merge",
            {},
            make_field("other", "Make the sessions, templates and trials of", "", size=30, required=""),
            make_field("project", "those of", project, size=30, required=""),
        ),
        make_action(
            "projects/alias",
            "Give the name",
            {},
            make_field("name", "Let this folder or name", "", size=30, required=""),
            make_field("project", "stand for", project, size=30, required=""),
        ),
        make_action(
            "projects/split",
            "Split",
            {},
            make_field("name", "Take back the merge or alias of", "", size=30, required=""),
        ),
    )


def _describe(view: ProjectList) -> list[dict[str, Any]]:
    listed: list[ProjectSummary] = view.projects.value or []
    return [msgspec.structs.asdict(one) | {"last_seen": format_iso(one.last_seen)} for one in listed]


# One project


class ProjectView(Struct, frozen=True, kw_only=True):
    """A project, and whose its sessions, notes and templates are."""

    project: str
    scopes: tuple[ScopeSummary, ...]
    summary: Figure  # of a list of ProjectSummary


def _load_one(asked: PageRequest) -> ProjectView:
    project = asked.ws.projects.find(asked.name).name
    scopes = asked.ws.sharing.list(project)
    if not scopes:
        raise NotFound(f"no project {asked.name!r}; see the list")
    return ProjectView(project=project, scopes=scopes, summary=asked.figure(("projects",), list_projects))


def _show_one(view: ProjectView, _asked: PageRequest) -> Content:
    one = _find_summary(view)
    pages = (("sessions", "sessions"), ("errors", "errors"), ("notes", "notes"), ("usage", "usage by day"))
    items = (
        element("li", {}, link(make_address(f"/{page}", project=view.project), name.capitalize()))
        for page, name in pages
    )
    return Content(
        title=view.project,
        json=make_address("/projects", view.project) + ".json",
        body=[
            element("ul", {"class": "inline", "aria-label": "About this project"}, *items),
            make_pending(view.summary),
            make_facts(
                [
                    ("Sessions", f"{one.sessions:,}"),
                    ("Known by", one.by),
                    ("Also called", ", ".join(one.names)),
                    ("Last seen", make_time(one.last_seen)),
                    ("Folders", ", ".join(one.folders[:20])),
                ]
            )
            if one
            else None,
            make_part("Scopes and sharing", *_show_scopes(view), lead=_SCOPES),
            make_part("Correct", _offer_changes(view.project)),
        ],
    )


def _find_summary(view: ProjectView) -> ProjectSummary | None:
    listed: list[ProjectSummary] = view.summary.value or []
    return next((one for one in listed if one.project == view.project), None)


def _show_scopes(view: ProjectView) -> list[Markup]:
    rows, forms = [], []
    for one in view.scopes:
        notes = link(make_address("/notes", project=view.project), f"{one.notes:,}")
        templates = link("/templates", f"{one.templates:,}")
        rows.append((name_scope(one.scope), f"{one.sessions:,}", notes, templates))
        reason = make_field("reason", "Reason (kept on the record)", "", size=40)
        if one.scope == SHARED:
            fixed = {"project": view.project}
            forms.append(make_action("projects/unshare", "Take back what is shared", fixed, reason))
        elif one.notes or one.templates:
            fixed = {"project": view.project, "scope": one.scope}
            forms.append(make_action("projects/share", f"Share those of {name_scope(one.scope)}", fixed, reason))
    table = make_table(("scope", "#sessions", "#notes", "#templates"), rows, "Scopes")
    return [table, element("div", {"class": "decide"}, *forms)]


def _describe_one(view: ProjectView) -> dict[str, Any]:
    one = _find_summary(view)
    facts = msgspec.structs.asdict(one) | {"last_seen": format_iso(one.last_seen)} if one else {}
    return facts | {"project": view.project, "scopes": view.scopes}


PAGE = UiPage(_load, _show, _describe)
PROJECT = UiPage(_load_one, _show_one, _describe_one)
