"""`warmstart provision`: alone in its module, because agents wait for it."""

from __future__ import annotations

from pathlib import Path

import click

from warmstart.doors.cli.main import json_option
from warmstart.doors.render.terminal import clean
from warmstart.model import DIALECTS, Category, Dialect, Task, TaskType
from warmstart.pipeline import Warmstart
from warmstart.projects.resolve import Project
from warmstart.scopes import EVERYWHERE


@click.command()
@click.argument("task", required=False, default="")
@click.option(
    "--session", help="Id of the session that starts; its seed is chosen once and then repeated. Without it: a preview."
)
@click.option("--tools", help="The session's tools, separated by commas; only their examples are shown.")
@click.option("--category", type=click.Choice(["coding", "research", "ops", "general"]))
@click.option("--type", "task_type", type=click.Choice(["code", "file", "research", "mixed"]))
@click.option("--tags", help="Only templates with one of these tags, separated by commas.")
@click.option("--templates", help="Only these templates, separated by commas.")
@click.option(
    "--project",
    help="A project or working folder; only its templates, and templates of no project, are used. '*': those of every "
    "project.  [default: the project of this folder; if no session of it is stored, every project in a preview]",
)
@click.option("--scope", default="", help="The agent's profile and person, as `templates list` shows it.")
@click.option("--budget", type=click.IntRange(0), help="Maximum tokens of the seed.  [default: 1500]")
@click.option("--examples", type=click.IntRange(0, 50), help="Maximum number of examples.  [default: 3]")
@click.option("--dialect", type=click.Choice(DIALECTS), default="openai", show_default=True)
@click.option("--model", help="The model that reads the seed: some need their own ids or signatures.")
@click.option(
    "--cold",
    is_flag=True,
    help="Give this session no seed. It is left out of the comparison, unless its arm was drawn before.",
)
@click.option("--arm", help="The arm of this session, only while a paired experiment runs; otherwise the arm is drawn.")
@click.option("--parent", help="The session that started this one, whose arm it inherits.")
@click.option("--continues", is_flag=True, help="The session continues its parent, so it keeps the seed too.")
@click.option("--job", help="The scheduled job that this session runs; examples of its own good runs come first.")
@click.option("--thinking", is_flag=True, help="The model thinks in signed blocks (Anthropic).")
@json_option
@click.pass_obj
def provision(
    ws: Warmstart,
    task: str,
    session: str | None,
    tools: str | None,
    category: Category | None,
    task_type: TaskType | None,
    tags: str | None,
    templates: str | None,
    project: str | None,
    scope: str,
    budget: int | None,
    examples: int | None,
    dialect: Dialect,
    model: str | None,
    cold: bool,
    arm: str | None,
    parent: str | None,
    continues: bool,
    job: str | None,
    thinking: bool,
    as_json: bool,
) -> None:
    """Print the seed for a new session: the few examples that fit TASK.

    TASK may also be the name of a template or of a category.
    """
    settings = ws.settings
    place = ws.projects.find(project) if project else _find_own_project(ws)
    seed = ws.provision(
        Task(
            text=task,
            session=session,
            tools=split(tools) if tools is not None else None,
            category=category,
            task_type=task_type,
            tags=split(tags),
            templates=split(templates) if templates is not None else None,
            project=place.name if place else EVERYWHERE if session is None else None,
            root=place.root if place else None,
            scope=scope,
            budget=settings.budget if budget is None else budget,
            examples=settings.examples if examples is None else examples,
            dialect=dialect,
            model=model,
            cold=cold,
            arm=arm,
            parent=parent,
            continues=continues,
            job=job,
            thinking=thinking,
        )
    )
    if as_json:
        from warmstart.doors.render.as_json import describe_seed
        from warmstart.doors.render.terminal import print_json

        assumed = place.name if place else EVERYWHERE if session is None else None
        print_json(describe_seed(seed) | {"project": assumed})
        return
    from warmstart.doors.render.seed import show_seed

    if not project:
        click.echo(_explain_project(place, session), err=True)
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


def split(text: str | None) -> tuple[str, ...]:
    """Split a list that is separated by commas."""
    return tuple(part for part in (raw.strip() for raw in (text or "").split(",")) if part)
