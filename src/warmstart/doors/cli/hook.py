"""`warmstart hook`: agents' hooks that start sessions warm."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from warmstart import config
from warmstart.doors.cli.main import json_option
from warmstart.doors.cli.options import project_settings_option
from warmstart.doors.hooks.agents import AGENTS, CODEX, HookAgent, find_home
from warmstart.doors.hooks.log import read_troubles
from warmstart.doors.install.hook_settings import HookSettings
from warmstart.doors.install.hooks import find_missing_events, make_command, make_groups, name_command
from warmstart.doors.render.terminal import clean, print_json, print_table
from warmstart.errors import Refused
from warmstart.ingest.queue import Queue
from warmstart.pipeline import Warmstart

agent_argument = click.argument("agent", type=click.Choice(list(AGENTS)))


@click.group()
def hook() -> None:
    """Start an agent's sessions warm by its own hooks, without a server."""


@hook.command()
@agent_argument
@project_settings_option
@json_option
@click.pass_context
def install(ctx: click.Context, agent: str, project: bool, as_json: bool) -> None:
    """Add our hooks to the agent's settings. Other hooks stay; doing it again changes nothing."""
    ws: Warmstart = ctx.obj
    hooks = _open_settings(AGENTS[agent], ws.settings, project)
    store = ctx.find_root().params.get("store")
    command = make_command(hooks.agent, _unusual_home(ws.settings), store, shared=project)
    changed = hooks.install(make_groups(hooks.agent, command))
    _report(
        as_json, hooks, changed, "installed" if changed else "already installed", _list_obstacles(hooks, ws.settings)
    )


@hook.command()
@agent_argument
@project_settings_option
@json_option
@click.pass_obj
def uninstall(ws: Warmstart, agent: str, project: bool, as_json: bool) -> None:
    """Remove our hooks from the agent's settings. Everything else stays."""
    hooks = _open_settings(AGENTS[agent], ws.settings, project)
    changed = hooks.uninstall()
    _report(as_json, hooks, changed, "removed" if changed else "not installed", [])


def _open_settings(agent: HookAgent, settings: config.Settings, project: bool) -> HookSettings:
    return HookSettings(agent, settings, Path.cwd() if project else None, name_command(agent))


def _report(as_json: bool, hooks: HookSettings, changed: bool, state: str, notes: list[str]) -> None:
    agent = hooks.agent
    if as_json:
        events = _list_events(hooks)
        print_json({"agent": agent.name, "path": hooks.path, "changed": changed, "events": events, "notes": notes})
        return
    click.echo(f"{agent.title}: hooks {state} ({hooks.path})")
    for note in notes:
        click.echo(note)


def _list_events(hooks: HookSettings) -> list[str]:
    """Return the hooked events, first those that we hook, in the order in which they occur."""
    handlers = hooks.find()
    return list(dict.fromkeys(event for event in (*hooks.agent.timeouts, *handlers) if event in handlers))


def _unusual_home(settings: config.Settings) -> Path | None:
    """Return the home if it is not the usual one: the agent's own environment may not name it."""
    return None if settings.home == settings.user_home / ".warmstart" else settings.home.absolute()


def _list_obstacles(hooks: HookSettings, settings: config.Settings) -> list[str]:
    """Return what a person has to do before the hooks run."""
    if hooks.agent is not CODEX:
        return ["All hooks are off in these settings: remove `disableAllHooks`."] if hooks.is_disabled() else []
    notes = ["Codex runs new hooks only after you trust them: open /hooks in Codex."]
    if _are_hooks_off(find_home(CODEX, settings) / "config.toml"):
        notes.append("Hooks are off in Codex' config.toml: remove `hooks = false` under [features].")
    return notes


def _are_hooks_off(file: Path) -> bool:
    try:
        features = tomllib.loads(file.read_text("utf-8")).get("features", {})
    except (OSError, ValueError):
        return False
    return isinstance(features, dict) and False in (features.get("hooks"), features.get("codex_hooks"))


@hook.command()
@json_option
@click.pass_obj
def status(ws: Warmstart, as_json: bool) -> None:
    """Show where our hooks are installed, how many transcripts wait to be read, and recent errors."""
    places = examine_hooks(ws.settings)
    waiting = Queue(ws.settings.home).count()
    troubles = read_troubles(ws.settings.home)
    if as_json:
        print_json({"hooks": places, "waiting": waiting, "off": config.is_off(), "troubles": troubles})
        return
    rows = [(f["agent"], f["scope"], ", ".join(f["events"]) or "none", f["problem"] or f["path"]) for f in places]
    print_table(("agent", "for", "hooks", "where"), rows)
    click.echo(f"transcripts waiting to be read: {waiting}" + ("; WARMSTART_OFF is set" if config.is_off() else ""))
    for line in (*describe_old_hooks(places), *troubles):
        click.echo(clean(line))


def describe_old_hooks(places: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a line for every place with hooks of an older version."""
    return [
        f"{place['agent']} ({place['path']}): the hooks are of an older version, without {', '.join(place['missing'])}; "
        f"run: warmstart hook install {place['agent']}{' --project' if place['scope'] == 'project' else ''}"
        for place in places
        if place["missing"]
    ]


def examine_hooks(settings: config.Settings) -> list[dict[str, Any]]:
    """Return where our hooks are installed, for the user and for the project in the working folder."""
    return [_examine(agent, settings, project) for agent in AGENTS.values() for project in (False, True)]


def _examine(agent: HookAgent, settings: config.Settings, project: bool) -> dict[str, Any]:
    hooks = _open_settings(agent, settings, project)
    events: list[str] = []
    problem = None
    try:
        events = _list_events(hooks)
    except Refused as error:
        problem = str(error)
    scope = "project" if project else "user"
    missing = find_missing_events(agent, events)
    place = {"agent": agent.name, "scope": scope, "path": hooks.path, "events": events}
    return place | {"missing": missing, "problem": problem}


@hook.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, metavar="AGENT", type=click.UNPROCESSED)
def run(words: tuple[str, ...]) -> None:
    """Answer one hook event: JSON on standard input, JSON on standard output. Agents call this."""
    from warmstart.doors.hooks.calls import main

    main(words)
