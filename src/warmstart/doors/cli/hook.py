"""`warmstart hook`: agents' hooks that start sessions warm."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from warmstart import config
from warmstart.doors.cli.main import json_option
from warmstart.doors.cli.options import project_settings_option
from warmstart.doors.hooks.agents import AGENTS, CODEX, GEMINI_CLI, HookAgent, find_home, is_here
from warmstart.doors.hooks.log import read_troubles
from warmstart.doors.install.enabled_plugin import find_plugin
from warmstart.doors.install.hooks import Door, find_missing_events, make_words, open_door
from warmstart.doors.render.terminal import clean, print_json, print_table
from warmstart.errors import Refused
from warmstart.ingest.queue import Queue
from warmstart.pipeline import Warmstart

agent_argument = click.argument("agent", type=click.Choice(list(AGENTS)), required=False)
all_option = click.option("--all", "every", is_flag=True, help="For every agent that is on this machine.")


@click.group()
def hook() -> None:
    """Start an agent's sessions warm by its own hooks, without a server."""


@hook.command()
@agent_argument
@all_option
@project_settings_option
@json_option
@click.pass_context
def install(ctx: click.Context, agent: str | None, every: bool, project: bool, as_json: bool) -> None:
    """Add our hooks to the settings of AGENT. Other hooks stay; doing it again changes nothing."""
    ws: Warmstart = ctx.obj
    store = ctx.find_root().params.get("store")
    refused: list[str] = []
    for chosen in _choose_agents(agent, every, ws.settings):
        with _going_on(every, refused):
            door = _open_door(chosen, ws.settings, project)
            changed = door.install(make_words(chosen, ws.settings, store, shared=project))
            state = "installed" if changed else "already installed"
            _report(as_json, door, changed, state, _list_obstacles(door, ws.settings))
    if refused:
        ctx.exit(1)


@hook.command()
@agent_argument
@all_option
@project_settings_option
@json_option
@click.pass_context
def uninstall(ctx: click.Context, agent: str | None, every: bool, project: bool, as_json: bool) -> None:
    """Remove our hooks from the settings of AGENT. Everything else stays."""
    ws: Warmstart = ctx.obj
    refused: list[str] = []
    for chosen in list(AGENTS.values()) if every and not agent else _choose_agents(agent, every, ws.settings):
        with _going_on(every, refused):
            door = _open_door(chosen, ws.settings, project)
            if every and not door.list_events():
                continue
            changed = door.uninstall()
            _report(as_json, door, changed, "removed" if changed else "not installed", [])
    if refused:
        ctx.exit(1)


def _choose_agents(name: str | None, every: bool, settings: config.Settings) -> list[HookAgent]:
    if (name is None) != every:
        raise click.UsageError(f"name one agent ({', '.join(AGENTS)}) or give --all")
    if name is not None:
        return [AGENTS[name]]
    chosen = [agent for agent in AGENTS.values() if is_here(agent, settings)]
    if not chosen:
        raise Refused(f"none of these agents is on this machine: {', '.join(AGENTS)}")
    return chosen


@contextmanager
def _going_on(every: bool, refused: list[str]) -> Iterator[None]:
    """Report a refusal, add it to `refused` and go on with the next agent, if there are several."""
    try:
        yield
    except Refused as error:
        if not every:
            raise
        refused.append(str(error))
        click.echo(clean(f"warmstart: {error}"), err=True)


def _open_door(agent: HookAgent, settings: config.Settings, project: bool) -> Door:
    return open_door(agent, settings, Path.cwd() if project else None)


def _report(as_json: bool, door: Door, changed: bool, state: str, notes: list[str]) -> None:
    agent = door.agent
    if as_json:
        events = door.list_events()
        print_json({"agent": agent.name, "path": door.path, "changed": changed, "events": events, "notes": notes})
        return
    click.echo(f"{agent.title}: hooks {state} ({door.path})")
    for note in notes:
        click.echo(note)


def _list_obstacles(door: Door, settings: config.Settings) -> list[str]:
    """Return what a person has to do before the hooks run, and what is superfluous."""
    obstacle = door.find_obstacle()
    notes = [obstacle] if obstacle else []
    if plugin := find_plugin(door.agent, settings, Path.cwd()):
        notes.append(f"Our plugin is enabled, too ({plugin}): one of them is enough. No session is briefed twice.")
    if door.agent is GEMINI_CLI:
        notes.insert(
            0, "Gemini CLI runs hooks only in folders that you trust: it asks when it starts, or use /permissions."
        )
    if door.agent is not CODEX:
        return notes
    notes.insert(0, "Codex runs new hooks only after you trust them: open /hooks in Codex.")
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
    rows = [
        (place["agent"], place["scope"], ", ".join(place["events"]) or "none", place["problem"] or place["path"])
        for place in places
        if place["events"] or place["problem"] or is_here(AGENTS[place["agent"]], ws.settings)
    ]
    print_table(("agent", "for", "hooks", "where"), rows)
    click.echo(f"transcripts waiting to be read: {waiting}" + ("; WARMSTART_OFF is set" if config.is_off() else ""))
    for line in (*describe_old_hooks(places), *troubles):
        click.echo(clean(line))


def describe_old_hooks(places: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a line for every place with hooks of an older version."""
    return [
        f"{place['agent']} ({place['path']}): hooks of an older version lack {', '.join(place['missing'])}; "
        f"run: warmstart hook install {place['agent']}{' --project' if place['scope'] == 'project' else ''}"
        for place in places
        if place["missing"]
    ]


def examine_hooks(settings: config.Settings) -> list[dict[str, Any]]:
    """Return where our hooks are installed: for the user, for the project in the working folder, by our plugin."""
    places = [_examine(agent, settings, project) for agent in AGENTS.values() for project in (False, True)]
    for agent in AGENTS.values():
        if plugin := find_plugin(agent, settings, Path.cwd()):
            place = {"agent": agent.name, "scope": "plugin", "path": plugin, "events": list(agent.timeouts)}
            places.append(place | {"missing": [], "problem": None})
    return places


def _examine(agent: HookAgent, settings: config.Settings, project: bool) -> dict[str, Any]:
    door = _open_door(agent, settings, project)
    events: list[str] = []
    problem = None
    try:
        events = door.list_events()
        problem = door.find_obstacle() if events else None
    except Refused as error:
        problem = str(error)
    scope = "project" if project else "user"
    missing = find_missing_events(agent, events)
    place = {"agent": agent.name, "scope": scope, "path": door.path, "events": events}
    return place | {"missing": missing, "problem": problem}


@hook.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, metavar="AGENT", type=click.UNPROCESSED)
def run(words: tuple[str, ...]) -> None:
    """Answer one hook event: JSON on standard input, JSON on standard output. Agents call this."""
    from warmstart.doors.hooks.calls import main

    main(words)
