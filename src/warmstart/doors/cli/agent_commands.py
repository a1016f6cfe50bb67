"""What `provision` and `notes brief` do, with click or without it: agents wait for them, so nothing here imports it."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from warmstart.doors.render.terminal import clean, print_json
from warmstart.errors import NotFound
from warmstart.model import Category, Dialect, Task, TaskType
from warmstart.scopes import EVERYWHERE

if TYPE_CHECKING:
    from warmstart.pipeline import Warmstart
    from warmstart.projects.resolve import Project


class SeedOptions(Struct, frozen=True, kw_only=True):
    """The options of `provision`."""

    task: str = ""
    session: str | None = None
    tools: str | None = None
    category: Category | None = None
    task_type: TaskType | None = None
    tags: str | None = None
    templates: str | None = None
    project: str | None = None
    scope: str = ""
    budget: int | None = None
    examples: int | None = None
    dialect: Dialect = "openai"
    model: str | None = None
    cold: bool = False
    arm: str | None = None
    parent: str | None = None
    continues: bool = False
    job: str | None = None
    thinking: bool = False
    as_json: bool = False


class BriefOptions(Struct, frozen=True, kw_only=True):
    """The options of `notes brief`."""

    cwd: Path | None = None
    project: str | None = None
    task: str = ""
    agent: str | None = None
    budget: int | None = None
    as_json: bool = False


def print_seed(ws: Warmstart, options: SeedOptions) -> None:
    """Print the seed for a new session."""
    settings = ws.settings
    place = ws.projects.find(options.project) if options.project else _find_own_project(ws)
    assumed = place.name if place else EVERYWHERE if options.session is None else None
    seed = ws.provision(
        Task(
            text=options.task,
            session=options.session,
            tools=split(options.tools) if options.tools is not None else None,
            category=options.category,
            task_type=options.task_type,
            tags=split(options.tags),
            templates=split(options.templates) if options.templates is not None else None,
            project=assumed,
            root=place.root if place else None,
            scope=options.scope,
            budget=settings.budget if options.budget is None else options.budget,
            examples=settings.examples if options.examples is None else options.examples,
            dialect=options.dialect,
            model=options.model,
            cold=options.cold,
            arm=options.arm,
            parent=options.parent,
            continues=options.continues,
            job=options.job,
            thinking=options.thinking,
        )
    )
    if options.project and place and (remark := _explain_unknown(ws, place.name)):
        sys.stderr.write(remark + "\n")
    if options.as_json:
        from warmstart.doors.render.as_json import describe_seed

        print_json(describe_seed(seed) | {"project": assumed})
        return
    from warmstart.doors.render.seed import show_seed

    if not options.project:
        sys.stderr.write(_explain_project(place, options.session) + "\n")
    show_seed(seed)


def _find_own_project(ws: Warmstart) -> Project | None:
    """Return the project of the current folder, as a hook would; None if no session of it is stored."""
    place = ws.projects.find(str(Path.cwd()))
    return place if ws.sessions(limit=1, project=place.name) else None


def _explain_project(place: Project | None, session: str | None) -> str:
    """Return which project's templates were looked at without --project."""
    if place is not None:
        return f"project: {clean(place.name)}, of this folder; for all projects: --project '*'"
    which = "all" if session is None else "none"
    return f"project: {which}, because no session of this folder is stored; to choose one: --project NAME"


def _explain_unknown(ws: Warmstart, project: str) -> str:
    """Return that nothing of a project is stored, and the project that may be meant; empty if something is."""
    if project == EVERYWHERE or ws.projects.is_known(project) or ws.notes.list(project=project):
        return ""
    near = ws.projects.find_nearest(project)
    meant = f"did you mean {clean(near)}? " if near else ""
    return (
        f"project: no session of {clean(project)} is stored, so only templates of no project are used; "
        f"{meant}see: warmstart projects list"
    )


def split(text: str | None) -> tuple[str, ...]:
    """Split a list that is separated by commas."""
    return tuple(part for part in (raw.strip() for raw in (text or "").split(",")) if part)


def print_brief(ws: Warmstart, options: BriefOptions) -> None:
    """Print the brief that a session in a project would start with."""
    project = options.project
    folder = (options.cwd or Path.cwd()).absolute() if project is None else None
    named = None if project is None else ws.projects.find(project).name
    name = named or ws.projects.find(str(folder)).name
    sessions = ws.sessions(project=name, limit=200)
    if not sessions and not ws.notes.list(project=name):  # notes may have come from a team's bundle
        hint = "see: warmstart projects list"
        raise NotFound(
            f"no session of {name} is stored; {hint}" if project else f"no session of this folder is stored; {hint}"
        )
    used = next((agent for agent, _count in Counter(session.agent for session in sessions).most_common(1)), None)
    brief = ws.brief_project(named, folder, options.task, agent=options.agent or used, budget=options.budget)
    if options.as_json:
        from warmstart.doors.render.as_json import describe_whole_brief

        print_json(describe_whole_brief(brief))
    elif brief.text:
        sys.stdout.write(clean_lines(brief.text) + "\n")
        sys.stdout.flush()
        sys.stderr.write(f"({brief.tokens} tokens, budget {brief.budget}; {clean(brief.project or '')})\n")
    elif not ws.notes.list(project=brief.project):
        subject = clean(brief.project)
        sys.stdout.write(f"no notes about {subject}; see: warmstart projects list, or run: warmstart learn\n")
    else:
        sys.stdout.write(f"no note about {clean(brief.project)} is worth a line at the start of a session\n")


def clean_lines(text: str) -> str:
    """Return a text of several lines, each safe for a terminal."""
    return "\n".join(clean(line) for line in text.splitlines())
