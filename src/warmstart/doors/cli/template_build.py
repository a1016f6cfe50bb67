"""`warmstart templates build`: one named template from several sessions, as the agent's tool `warm_session` builds it."""

from __future__ import annotations

import click

from warmstart.doors.cli.agent_commands import split
from warmstart.doors.cli.main import json_option
from warmstart.doors.cli.options import project_option
from warmstart.doors.render.terminal import clean, print_json
from warmstart.errors import NotFound
from warmstart.pipeline import Warmstart
from warmstart.plurals import format_count
from warmstart.templates.build import BuildRequest
from warmstart.templates.build_sources import MAX_SESSIONS, MIN_MESSAGES, BuildSources


@click.command("build")
@click.argument("name")
@click.option("--source", default="", help="Only sessions of this agent (hermes ...) or source (cli, telegram ...).")
@click.option(
    "--min-messages",
    type=click.IntRange(0),
    default=MIN_MESSAGES,
    show_default=True,
    help="Fewest messages of a session, calls and results included.",
)
@click.option(
    "--max-sessions", type=click.IntRange(1), default=MAX_SESSIONS, show_default=True, help="Sessions at most."
)
@project_option
@click.option("--tags", help="Words to find it by, separated by commas.")
@click.option("--description", default="", help="The work: only sessions about it are used, the nearest first.")
@click.option("--addendum", default="", help="Guidance that sessions get beside the examples.")
@json_option
@click.pass_obj
def build_template(
    ws: Warmstart,
    name: str,
    source: str,
    min_messages: int,
    max_sessions: int,
    project: str | None,
    tags: str | None,
    description: str,
    addendum: str,
    as_json: bool,
) -> None:
    """Make one template NAME from several sessions, or say why not (exit 1). Equal calls are shown once.

    Without --description the latest sessions are used. A template is of one project: without --project, of the one that
    most of them are from.
    """
    sources = BuildSources(source=source, project=project, min_messages=min_messages, max_sessions=max_sessions)
    library = ws.templates
    try:
        rows = library.find_sessions(sources, description)
    except NotFound as error:
        raise NotFound(f"{error}; see: warmstart sessions list, or read transcripts: warmstart ingest") from None
    built = library.build(rows, BuildRequest(name, description, split(tags), addendum))
    template = built.template
    if as_json:
        print_json({"template": template, "considered": len(rows), "refused": built.refused})
        return
    used = f"{format_count(template.examples, 'example')} from {format_count(template.sessions, 'session')}"
    click.echo(f"{clean(template.name)}@{template.version} {template.status}: {used}, {clean(template.reason)}")
    for reason, count in sorted(built.refused.items(), key=lambda item: -item[1]):
        click.echo(f"  {count:>5}  not used: {clean(reason)}")
    if template.status == "proposed":
        click.echo(f"to use it: warmstart templates approve {clean(template.name)}")
