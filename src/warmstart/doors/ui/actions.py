"""The changes that a person can make on the pages: the same functions as the command line's, with the same records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, cast

from msgspec import Struct

from warmstart.doors.pages.markup import reveal
from warmstart.doors.render.as_json import describe_brief, describe_seed
from warmstart.doors.ui.layout import make_address
from warmstart.doors.ui.work import Work, WorkKind
from warmstart.errors import NotFound, Refused
from warmstart.model import Task
from warmstart.notes.sharing import SharingChange
from warmstart.pipeline import Warmstart
from warmstart.plurals import format_count
from warmstart.scopes import EVERYWHERE

Body = Mapping[str, str]


class ActionDone(Struct, frozen=True):
    """What an action has done."""

    said: str  # one sentence for the person
    next: str | None = None  # address to go to; None: stay, and load the page again
    shown: Any = None  # to be shown at once, without loading the page again


def run_action(name: str, ws: Warmstart, work: Work, body: Body) -> ActionDone:
    """Run an action by its name."""
    if name in ("work/ingest", "work/learn"):
        kind = cast("WorkKind", name.removeprefix("work/"))
        work.start(kind)
        return ActionDone(f"{kind} has begun")
    if name not in ACTIONS:
        raise NotFound(f"there is no action {name!r}")
    return ACTIONS[name](ws, body)


def _need(body: Body, name: str) -> str:
    value = body.get(name, "").strip()
    if not value:
        raise Refused(f"{name}: a value is needed")
    return value


def _approve_note(ws: Warmstart, body: Body) -> ActionDone:
    note = ws.notes.approve(_need(body, "note"), reason=body.get("reason", ""))
    return ActionDone(f"Note {note.id} is active.")


def _retire_note(ws: Warmstart, body: Body) -> ActionDone:
    note = ws.notes.retire(_need(body, "note"), reason=_need(body, "reason"))
    return ActionDone(f"Note {note.id} is retired.")


def _edit_note(ws: Warmstart, body: Body) -> ActionDone:
    note = ws.notes.edit(_need(body, "note"), _need(body, "text"), reason=body.get("reason", ""))
    return ActionDone(f"Note {note.id} is edited and active.")


def _make_note(ws: Warmstart, body: Body) -> ActionDone:
    call = _need(body, "call")
    if not call.isdecimal():
        raise Refused(f"call: {call!r} is not a number")
    note = ws.notes.make(_need(body, "session"), int(call), body.get("text", ""))
    return ActionDone(f"Note {note.id} is made and active.", make_address("/notes", note.id))


def _share_note(ws: Warmstart, body: Body) -> ActionDone:
    note = ws.notes.share(_need(body, "note"), reason=body.get("reason", ""))
    return ActionDone(f"Note {note.id} is shared with every scope of its project.")


def _unshare_note(ws: Warmstart, body: Body) -> ActionDone:
    note = ws.notes.unshare(_need(body, "note"), reason=body.get("reason", ""))
    return ActionDone(f"Note {note.id} is no longer shared.")


def _approve_template(ws: Warmstart, body: Body) -> ActionDone:
    decision = ws.templates.approve(_need(body, "template"), reason=body.get("reason", ""))
    return ActionDone(f"{decision.template}@{decision.version} is active.")


def _retire_template(ws: Warmstart, body: Body) -> ActionDone:
    decisions = ws.templates.retire(_need(body, "template"), reason=_need(body, "reason"))
    return ActionDone(f"{', '.join(f'{one.template}@{one.version}' for one in decisions)} is retired.")


def _share_template(ws: Warmstart, body: Body) -> ActionDone:
    decision = ws.templates.share(_need(body, "template"), reason=body.get("reason", ""))
    return ActionDone(f"{decision.template} is shared with every scope and project.")


def _unshare_template(ws: Warmstart, body: Body) -> ActionDone:
    decision = ws.templates.unshare(_need(body, "template"), reason=body.get("reason", ""))
    return ActionDone(f"{decision.template} is no longer shared.")


def _preview_brief(ws: Warmstart, body: Body) -> ActionDone:
    project = body.get("project", "").strip()
    name = ws.projects.find(project).name if project else None
    latest = ws.sessions(limit=200, project=name)
    if not latest:
        raise NotFound(f"no session of {project} is stored" if project else "no session is stored yet")
    name = name or latest[0].project
    used = Counter(row.agent for row in latest if row.project == name).most_common(1)[0][0]
    brief = ws.brief_project(name, None, body.get("task", "")[:4000], agent=used)
    text = brief.text or "No note is worth a line at the start of such a session."
    said = f"{brief.tokens} tokens (budget {brief.budget}), for {used} in {name or 'no project'}"
    return ActionDone(said, shown=describe_brief(brief) | {"text": reveal(text)})


def _preview_seed(ws: Warmstart, body: Body) -> ActionDone:
    project = body.get("project", "").strip()
    place = ws.projects.find(project) if project else None
    task = Task(
        text=_need(body, "task")[:4000],
        project=place.name if place else EVERYWHERE,
        root=place.root if place else None,
        budget=ws.settings.budget,
        examples=ws.settings.examples,
        dialect="text",
    )
    seed = ws.provision(task)
    described = describe_seed(seed)
    text = described["text"] or f"No example: {seed.reason}"
    return ActionDone(f"{seed.tokens} tokens (budget {seed.budget})", shown=described | {"text": reveal(text)})


def _apply_proposal(ws: Warmstart, body: Body) -> ActionDone:
    row = ws.reviews.apply(_need(body, "proposal"))
    return ActionDone(f"Proposal {row.id[:12]} is {row.status}.")


def _discard_proposal(ws: Warmstart, body: Body) -> ActionDone:
    row = ws.reviews.discard(_need(body, "proposal"), reason=_need(body, "reason"))
    return ActionDone(f"Proposal {row.id[:12]} is {row.status}.")


def _merge_projects(ws: Warmstart, body: Body) -> ActionDone:
    change = ws.projects.merge(_need(body, "project"), _need(body, "other"))
    return ActionDone(f"{change.name} belongs to {change.project}; {change.moved} sessions moved.")


def _alias_project(ws: Warmstart, body: Body) -> ActionDone:
    change = ws.projects.alias(_need(body, "name"), _need(body, "project"))
    return ActionDone(f"{change.name} stands for {change.project}; {change.moved} sessions moved.")


def _split_project(ws: Warmstart, body: Body) -> ActionDone:
    change = ws.projects.split(_need(body, "name"))
    return ActionDone(f"{change.name} belongs to {change.project}; {change.moved} sessions moved.")


def _share_project(ws: Warmstart, body: Body) -> ActionDone:
    name = ws.projects.find(_need(body, "project")).name
    change = ws.sharing.share(name, scope=body.get("scope"), reason=body.get("reason", ""))
    return ActionDone(f"{_count_shared(change)} of {change.project} shared.")


def _unshare_project(ws: Warmstart, body: Body) -> ActionDone:
    change = ws.sharing.unshare(ws.projects.find(_need(body, "project")).name, reason=body.get("reason", ""))
    return ActionDone(f"{_count_shared(change)} of {change.project} no longer shared.")


def _count_shared(change: SharingChange) -> str:
    return f"{format_count(len(change.notes), 'note')} and {format_count(len(change.templates), 'template')}"


ACTIONS: Mapping[str, Callable[[Warmstart, Body], ActionDone]] = {
    "notes/approve": _approve_note,
    "notes/retire": _retire_note,
    "notes/edit": _edit_note,
    "notes/make": _make_note,
    "notes/share": _share_note,
    "notes/unshare": _unshare_note,
    "notes/brief": _preview_brief,
    "templates/approve": _approve_template,
    "templates/retire": _retire_template,
    "templates/share": _share_template,
    "templates/unshare": _unshare_template,
    "templates/seed": _preview_seed,
    "review/apply": _apply_proposal,
    "review/discard": _discard_proposal,
    "projects/merge": _merge_projects,
    "projects/alias": _alias_project,
    "projects/split": _split_project,
    "projects/share": _share_project,
    "projects/unshare": _unshare_project,
}
