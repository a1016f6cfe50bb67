"""Commands for agents' hooks: install, uninstall, status; `run` is what the hooks call."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import click

from warmstart import config
from warmstart.doors.cli.main import json_option
from warmstart.doors.hooks.agents import AGENTS, CODEX, HookAgent, find_home
from warmstart.doors.hooks.log import read_troubles
from warmstart.doors.install.hooks import HookSettings, make_command
from warmstart.errors import Refused
from warmstart.ingest.queue import Queue
from warmstart.pipeline import Warmstart

agent_argument = click.argument("agent", type=click.Choice(list(AGENTS)))
project_option = click.option(
    "--project", is_flag=True, help="Only for the project in this folder, not for all of the user's."
)

_ALL_OFF = "All hooks are switched off there: remove `disableAllHooks`."


@click.group()
def hook() -> None:
    """Start an agent's sessions warm by its own hooks, without any server."""


@hook.command()
@agent_argument
@project_option
@json_option
@click.pass_context
def install(ctx: click.Context, agent: str, project: bool, as_json: bool) -> None:
    """Write our hooks into the agent's settings, beside those that are there. Doing it again changes nothing."""
    ws: Warmstart = ctx.obj
    known = AGENTS[agent]
    hooks = HookSettings(known, ws.settings, Path.cwd() if project else None)
    store = ctx.find_root().params.get("store")
    command = make_command(known, _unusual_home(ws.settings), store, shared=project)
    changed = hooks.install(command)
    _tell(as_json, known, hooks, changed, "installed", "were there already", _notes(hooks, ws.settings))


@hook.command()
@agent_argument
@project_option
@json_option
@click.pass_obj
def uninstall(ws: Warmstart, agent: str, project: bool, as_json: bool) -> None:
    """Take our hooks out of the agent's settings; what else is there stays."""
    known = AGENTS[agent]
    hooks = HookSettings(known, ws.settings, Path.cwd() if project else None)
    changed = hooks.uninstall()
    _tell(as_json, known, hooks, changed, "taken out", "were not there", [])


def _tell(
    as_json: bool, agent: HookAgent, hooks: HookSettings, changed: bool, done: str, idle: str, notes: list[str]
) -> None:
    if as_json:
        from warmstart.doors.render.terminal import print_json

        events = list(hooks.events())
        print_json({"agent": agent.name, "path": hooks.path, "changed": changed, "events": events, "notes": notes})
        return
    click.echo(f"{agent.title}: hooks {done if changed else idle} ({hooks.path})")
    for note in notes:
        click.echo(note)


def _unusual_home(settings: config.Settings) -> Path | None:
    """A home that the agent's own environment may not name."""
    return None if settings.home == settings.user_home / ".warmstart" else settings.home.absolute()


def _notes(hooks: HookSettings, settings: config.Settings) -> list[str]:
    """What else is to be done before they run."""
    if hooks.agent is not CODEX:
        return [_ALL_OFF] if hooks.is_disabled() else []
    notes = ["Codex runs new hooks only when you have looked at them: open /hooks in Codex and trust these."]
    if _is_switched_off(find_home(CODEX, settings) / "config.toml"):
        notes.append("Hooks are switched off in its config.toml: remove `hooks = false` under [features].")
    return notes


def _is_switched_off(file: Path) -> bool:
    try:
        features = tomllib.loads(file.read_text("utf-8")).get("features", {})
    except (OSError, ValueError):
        return False
    return isinstance(features, dict) and False in (features.get("hooks"), features.get("codex_hooks"))


@hook.command()
@json_option
@click.pass_obj
def status(ws: Warmstart, as_json: bool) -> None:
    """Where our hooks are, what waits to be read, and what went wrong lately."""
    found = [_examine(agent, ws.settings, project) for agent in AGENTS.values() for project in (None, Path.cwd())]
    waiting = Queue(ws.settings.home).count()
    troubles = read_troubles(ws.settings.home)
    if as_json:
        from warmstart.doors.render.terminal import print_json

        off = config.is_off()
        print_json({"hooks": found, "waiting": waiting, "off": off, "troubles": troubles})
        return
    from warmstart.doors.render.terminal import clean, print_table

    rows = [(f["agent"], f["scope"], ", ".join(f["events"]) or "none", f["problem"] or f["path"]) for f in found]
    print_table(("agent", "for", "hooks", "where"), rows)
    click.echo(f"{waiting} transcripts wait to be read" + ("; WARMSTART_OFF is set" if config.is_off() else ""))
    for line in troubles:
        click.echo(clean(line))


def _examine(agent: HookAgent, settings: config.Settings, project: Path | None) -> dict[str, Any]:
    hooks = HookSettings(agent, settings, project)
    events: dict[str, str] = {}
    problem = None
    try:
        events = hooks.events()
    except Refused as error:
        problem = str(error)
    scope = "project" if project else "user"
    return {"agent": agent.name, "scope": scope, "path": hooks.path, "events": list(events), "problem": problem}


@hook.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, metavar="AGENT", type=click.UNPROCESSED)
def run(words: tuple[str, ...]) -> None:
    """What the hooks call: an event as JSON on standard input, the answer as JSON on standard output."""
    from warmstart.doors.hooks.run import main

    main(words)
