"""`warmstart provision`, read by click; `quick.py` reads the usual lines without it."""

from __future__ import annotations

import click

from warmstart.doors.cli.agent_commands import SeedOptions, print_seed
from warmstart.doors.cli.main import json_option
from warmstart.doors.cli.quick import CATEGORIES, COMMANDS, MOST_EXAMPLES, TASK_TYPES, find_missing
from warmstart.model import DIALECTS, Category, Dialect, TaskType
from warmstart.pipeline import Warmstart


@click.command()
@click.argument("task", required=False, default="")
@click.option(
    "--session", help="Id of the session that starts; its seed is chosen once and then repeated. Without it: a preview."
)
@click.option("--tools", help="The session's tools, separated by commas; only their examples are shown.")
@click.option("--category", type=click.Choice(CATEGORIES))
@click.option("--type", "task_type", type=click.Choice(TASK_TYPES))
@click.option("--tags", help="Only templates with one of these tags, separated by commas.")
@click.option("--templates", help="Only these templates, separated by commas.")
@click.option(
    "--project",
    help="A project or working folder; only its templates, and templates of no project, are used. '*': those of every "
    "project.  [default: the project of this folder; if no session of it is stored, every project in a preview]",
)
@click.option("--scope", default="", help="The agent's profile and person, as `templates list` shows it.")
@click.option("--budget", type=click.IntRange(0), help="Maximum tokens of the seed.  [default: 1500]")
@click.option("--examples", type=click.IntRange(0, MOST_EXAMPLES), help="Maximum number of examples.  [default: 8]")
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
@click.option("--job", help="Id of the scheduled job that this session runs; examples of its own good runs come first.")
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
    if missing := find_missing(COMMANDS["provision",], click.get_current_context().params):
        raise click.UsageError(missing)
    print_seed(
        ws,
        SeedOptions(
            task=task,
            session=session,
            tools=tools,
            category=category,
            task_type=task_type,
            tags=tags,
            templates=templates,
            project=project,
            scope=scope,
            budget=budget,
            examples=examples,
            dialect=dialect,
            model=model,
            cold=cold,
            arm=arm,
            parent=parent,
            continues=continues,
            job=job,
            thinking=thinking,
            as_json=as_json,
        ),
    )
