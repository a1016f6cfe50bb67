"""Notes for MCP: the tools `brief` and `advise`, and notes as resources. Deciding about notes is for people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import msgspec
from msgspec import UNSET, UnsetType

from warmstart.arms import gets_brief
from warmstart.doors.mcp.arguments import AdviseArguments, BriefArguments, WrongArguments, or_none, read_arguments
from warmstart.doors.render.as_json import describe_advice, describe_brief, summarise_note
from warmstart.errors import NotFound
from warmstart.model import Brief, Task
from warmstart.notes.types import CallEvent, Note
from warmstart.notes.wording import make_inert
from warmstart.pipeline import Warmstart
from warmstart.plurals import format_count
from warmstart.scopes import EVERYWHERE, SHARED, Border
from warmstart.store.notes import Showing

if TYPE_CHECKING:
    from warmstart.doors.mcp.tools import ToolInvocation

PREFIX = "warmstart://notes/"
URI_TEMPLATE = PREFIX + "{project}"
PLAIN, JSON = "text/plain", "application/json"
_MOST = 100  # notes in one resource
_LARGEST_RESULT = 8_000  # characters: as many as are judged


def write_brief(call: ToolInvocation) -> dict[str, Any]:
    """Return what the session's project knows. A session of a cold arm gets nothing, so that it can be compared with."""
    given = read_arguments(BriefArguments, call.given)
    border = _find_border(call, given.cwd, given.project)
    session = or_none(given.session)
    if session and not gets_brief(call.ws.find_arm(session)):
        return describe_brief(Brief(project=border.project))
    folder = (or_none(given.cwd) or _find_folder(call)) if isinstance(given.project, UnsetType) else None
    task = Task(
        text=or_none(given.text) or "",
        project=folder or border.project,
        scope=border.scope,
    )
    brief = call.ws.brief(task)
    if session and brief.notes:
        call.ws.notes.record([Showing(note, session, "brief", call.ws.now()) for note in brief.notes])
    return describe_brief(brief)


def advise(call: ToolInvocation) -> dict[str, Any]:
    """Return what to do about a call that the agent is about to make, or has made."""
    given = read_arguments(AdviseArguments, call.given)
    border = _find_border(call, given.cwd, UNSET)
    result = or_none(given.result) or ""
    event = CallEvent(
        tool=given.tool,
        arguments=given.arguments,
        when=given.when,
        session=or_none(given.session),
        cwd=or_none(given.cwd) or _find_folder(call),
        project=border.project,
        scope=border.scope,
        result=result[-_LARGEST_RESULT:],
        error=True if given.when == "after" else None,
    )
    return describe_advice(call.ws.advise(event, kept=True))


def _find_border(call: ToolInvocation, cwd: str | UnsetType, project: str | UnsetType) -> Border:
    """Return the border of the one project that the agent works in."""
    border = call.find_border(cwd if isinstance(project, UnsetType) else project)
    if border.project == EVERYWHERE:
        raise WrongArguments("this server serves every project: give cwd, the session's working folder, or project")
    return border


def _find_folder(call: ToolInvocation) -> str | None:
    return call.project if call.project and Path(call.project).is_absolute() else None


# Resources


def list_projects(ws: Warmstart, border: Border) -> list[tuple[str, int]]:
    """Return the projects within a border that have active notes, each with their number."""
    counts: dict[str, int] = {}
    for note in ws.notes.list(status="active"):
        if note.project and _admits(border, note):
            counts[note.project] = counts.get(note.project, 0) + 1
    return sorted(counts.items())


def name_resource(project: str) -> str:
    return PREFIX + quote(project, safe="")


def read_notes(ws: Warmstart, uri: str, border: Border) -> tuple[str, str]:
    """Return the active notes of a project as text and as JSON. Proposed and retired notes are left out."""
    project = unquote(uri.removeprefix(PREFIX), errors="replace")
    notes = [note for note in ws.notes.list(project=project, status="active") if project and _admits(border, note)]
    if not notes:
        raise NotFound(f"no active notes about {project[:100]!r} here; resources are named {URI_TEMPLATE}")
    shown = notes[:_MOST]
    lines = [f"- {make_inert(note.text)} ({format_count(note.support, 'session')})" for note in shown]
    return "\n".join(lines) + "\n", msgspec.json.encode([summarise_note(note) for note in shown]).decode()


def _admits(border: Border, note: Note) -> bool:
    """Return whether a note may be shown: a shared one is for every scope, but still about its own project."""
    return note.scope in (border.scope, SHARED) and border.project in (note.project, EVERYWHERE)
