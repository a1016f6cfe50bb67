"""`warmstart confirm guard`: check the guard's rules, install it in an agent. In Hermes it is a plugin."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import click

from warmstart.doors.cli.main import json_option
from warmstart.doors.cli.options import project_settings_option
from warmstart.doors.guard.agent_hook import TITLES
from warmstart.doors.guard.rules import GuardedCall, GuardRule, find_rules, load_guard_file
from warmstart.doors.hooks.agents import AGENTS, CODEX, HookAgent
from warmstart.doors.install.guard import GuardHook, find_url
from warmstart.doors.render.terminal import clean, print_json
from warmstart.errors import ConfigError, Refused
from warmstart.pipeline import Warmstart

agent_argument = click.argument("agent", type=click.Choice(list(TITLES)))


@click.group()
def guard() -> None:
    """Let an agent's dangerous tool calls run only after a person approves them."""


@guard.command()
@agent_argument
@project_settings_option
@click.option("--url", default="", help="The daemon's address (WARMSTART_CONFIRM_URL; http://127.0.0.1:6000).")
@json_option
@click.pass_obj
def install(ws: Warmstart, agent: str, project: bool, url: str, as_json: bool) -> None:
    """Write the guard into the agent's settings, with the home and the daemon's address, so that no environment variable
    can change them later. Run it again after a rule got a longer timeout or the daemon moved."""
    hook = GuardHook(AGENTS[agent], ws.settings, Path.cwd() if project else None, url)
    _report(as_json, hook, hook.install(), "installed", "was already installed")
    if not as_json:
        for note in _list_obstacles(hook):
            click.echo(note)


def _list_obstacles(hook: GuardHook) -> list[str]:
    """Return what a person has to do before the guard runs."""
    notes = ["Codex does not run the guard before you trust it: open /hooks in Codex."] if hook.agent is CODEX else []
    obstacle = hook.find_obstacle()
    return [*notes, obstacle] if obstacle else notes


@guard.command()
@agent_argument
@project_settings_option
@json_option
@click.pass_obj
def uninstall(ws: Warmstart, agent: str, project: bool, as_json: bool) -> None:
    """Remove the guard from the agent's settings; everything else there stays."""
    hook = GuardHook(AGENTS[agent], ws.settings, Path.cwd() if project else None)
    _report(as_json, hook, hook.uninstall(), "removed", "was not installed")


def _report(as_json: bool, hook: GuardHook, changed: bool, done: str, idle: str) -> None:
    if as_json:
        print_json({"agent": hook.agent.name, "path": hook.path, "changed": changed, "hook": hook.find()})
        return
    click.echo(f"{hook.agent.name}: guard {done if changed else idle} ({hook.path})")


@guard.command()
@click.argument("tool", required=False)
@click.argument("arguments", required=False, default="{}", metavar="[JSON]")
@click.option("--agent", default="claude-code", show_default=True, help="Whose call it would be.")
@json_option
@click.pass_obj
def check(ws: Warmstart, tool: str | None, arguments: str, agent: str, as_json: bool) -> None:
    """Check the rules, the daemon and the token; with a TOOL and its arguments, show which rule the call would match.
    No request is made. Without a TOOL it exits with 1 where the agent is not guarded, hooks are off or the daemon does not
    answer."""
    from warmstart.doors.guard.check import check_asking
    from warmstart.doors.guard.coverage import find_traps, list_uncovered
    from warmstart.doors.guard.hermes_check import check_hermes

    home = ws.settings.home
    file = load_guard_file(home)
    rules = file.rule
    rule = file.judge(GuardedCall(agent, tool, _read_arguments(arguments), folder=str(Path.cwd()))) if tool else None
    guarded = AGENTS[agent] if agent in TITLES else None  # Hermes' plugin brings its own
    places = {"user": None, "project": Path.cwd()} if guarded else {}
    installed = [_examine(guarded, ws, scope, place) for scope, place in places.items() if guarded]
    pinned = next((place for place in installed if place.url), None)
    daemon, token = check_asking(pinned.url if pinned else find_url(), home, pinned.key if pinned else "")
    uncovered, traps = list_uncovered(file, agent), find_traps(_list_settings(guarded, ws))
    hermes = check_hermes(ws.settings.user_home, os.environ)
    off = [trap for trap in traps if "disableAllHooks" in trap]
    if guarded:
        is_guarded = any(place.is_armed for place in installed) and not off
    else:
        is_guarded = hermes is not None and not hermes.trouble
    is_ready = is_guarded and not daemon.trouble and not token.trouble
    if as_json:
        facts: dict[str, Any] = {"path": find_rules(home), "rules": len(rules)}
        number = rules.index(rule) + 1 if rule in rules else None  # None: asked without a rule of the file
        facts["rule"] = {"number": number, "action": rule.action} if rule else None
        facts["uncovered"] = {one.kind: one.tools for one in uncovered}
        facts["traps"] = traps
        facts["installed"] = {place.scope: place.path for place in installed}
        facts["changes"] = {place.scope: place.changes for place in installed if place.changes}
        facts["guarded"] = is_guarded
        facts["hermes"] = {"file": hermes.what, "trouble": hermes.trouble or None} if hermes else None
        facts["daemon"] = {"url": daemon.what, "trouble": daemon.trouble or None}
        facts["token"] = {"file": token.what, "trouble": token.trouble or None}
        print_json(facts)
        if not tool and not is_ready:
            sys.exit(1)
        return
    click.echo(f"{find_rules(home)}: {len(rules)} rules, all valid")
    for place in installed:
        click.echo(f"{TITLES[agent]}, {place.scope}: {place.path or 'not guarded'}{place.advice}")
        for change in place.changes:
            click.echo(f"WARNING {clean(place.path)}: {clean(change)}; run: warmstart confirm guard install {agent}")
    if hermes:
        click.echo(f"Hermes, {hermes.what}: {clean(hermes.trouble) or 'guarded'}")
    click.echo(f"daemon {daemon.what}: {clean(daemon.trouble) or 'answers'}")
    click.echo(f"token {token.what}: {clean(token.trouble) or 'known, and may submit requests (agent:submit)'}")
    for one in uncovered:
        click.echo(f"no rule names these {_NOUNS[one.kind]} ({one.fate}): {', '.join(one.tools)}")
    unknown = "asked" if file.defaults.unknown == "ask" else "never asked"
    click.echo(f"tools that are listed nowhere: {unknown}")
    for trap in traps:
        click.echo(f"WARNING {clean(trap)}")
    if tool:
        click.echo(_describe(rules, rule))
    elif not is_ready:
        sys.exit(1)


_NOUNS = {
    "shell": "tools that run commands",
    "write": "tools that write files",
    "later": "tools that make things run later",
    "harmless": "tools that read or plan",
}


def _list_settings(agent: HookAgent | None, ws: Warmstart) -> list[Path]:
    """Return every settings file of the agent that may hold hooks or variables, for the user and this folder."""
    if agent is None:
        return []
    paths = [GuardHook(agent, ws.settings, place).path for place in (None, Path.cwd())]
    return [*paths, *(path.with_name("settings.local.json") for path in paths if path.name == "settings.json")]


def _read_arguments(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"the arguments are not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ConfigError("the arguments must be a JSON object")
    return value


class _Installed(NamedTuple):
    """The guard in one of an agent's settings."""

    scope: str
    path: str | None  # of the settings file, or what is wrong with it; None: not installed
    url: str = ""
    advice: str = ""
    key: str = ""
    changes: tuple[str, ...] = ()  # how it differs from what `install` writes
    is_armed: bool = False


def _examine(agent: HookAgent, ws: Warmstart, scope: str, project: Path | None) -> _Installed:
    hook = GuardHook(agent, ws.settings, project)
    try:
        found = hook.find()
    except Refused as error:
        return _Installed(scope, str(error))
    if found is None:
        return _Installed(scope, None)
    options = hook.read_options(found)
    home, advice = options.get("--home"), ""
    if home is None:
        advice = "; it has been changed: install it again"
    elif home != str(ws.settings.home.absolute()):
        advice = f"; it uses another home: {home}"
    key = options.get("--key", "")
    if home is not None and not key:
        advice += "; it pins no daemon's key: install it again"
    is_ours = home == str(ws.settings.home.absolute())
    changes = _list_changes(hook) if is_ours else ()
    is_armed = is_ours and not changes and hook.find_obstacle() is None
    return _Installed(scope, str(hook.path), options.get("--url", ""), advice, key, changes, is_armed)


def _list_changes(hook: GuardHook) -> tuple[str, ...]:
    try:
        return tuple(hook.find_changes())
    except (ConfigError, Refused) as error:
        return (str(error),)


def _describe(rules: list[GuardRule], rule: GuardRule | None) -> str:
    if rule is None:
        return "no rule matches: the call runs without asking"
    if rule not in rules:
        return f"no rule matches, but it is asked: {rule.description} (action {rule.action})"
    wait = f"{rule.timeout_seconds} seconds" if rule.timeout_seconds else "as long as the daemon's policy says"
    return f"rule {rules.index(rule) + 1} matches: asks for {rule.action}, waits {wait}"


@guard.command("claude-code", context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, metavar="", type=click.UNPROCESSED)
def claude_code(words: tuple[str, ...]) -> None:
    """Run by Claude Code's hook: reads an event as JSON from standard input and prints the answer as JSON."""
    from warmstart.doors.guard.agent_hook import main

    main(("claude-code", *words))


@guard.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, metavar="", type=click.UNPROCESSED)
def codex(words: tuple[str, ...]) -> None:
    """Run by Codex' hook: reads an event as JSON from standard input and prints the answer as JSON."""
    from warmstart.doors.guard.agent_hook import main

    main(("codex", *words))
