"""`warmstart confirm guard`: the guard's rules, and the guard in Claude Code's settings. Hermes' plugin brings its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from warmstart.doors.cli import json_option
from warmstart.doors.guard_install import GuardHook
from warmstart.doors.guard_rules import Rule, ToolCall, find_rule, find_rules, load_rules
from warmstart.errors import ConfigError, Refused
from warmstart.pipeline import Warmstart

agent_argument = click.argument("agent", type=click.Choice(["claude-code"]))
project_option = click.option(
    "--project", is_flag=True, help="Only for the project in this folder, not for all of the user's."
)


@click.group()
def guard() -> None:
    """Let an agent's dangerous tool calls run only after a person's yes."""


@guard.command()
@agent_argument
@project_option
@json_option
@click.pass_obj
def install(ws: Warmstart, agent: str, project: bool, as_json: bool) -> None:
    """Write the guard into the agent's settings. Do it again after rules were changed to wait longer."""
    hook = GuardHook(ws.settings, Path.cwd() if project else None)
    _tell(as_json, agent, hook, hook.install(), "installed", "was there already")


@guard.command()
@agent_argument
@project_option
@json_option
@click.pass_obj
def uninstall(ws: Warmstart, agent: str, project: bool, as_json: bool) -> None:
    """Take the guard out of the agent's settings; what else is there stays."""
    hook = GuardHook(ws.settings, Path.cwd() if project else None)
    _tell(as_json, agent, hook, hook.uninstall(), "taken out", "was not there")


def _tell(as_json: bool, agent: str, hook: GuardHook, changed: bool, done: str, idle: str) -> None:
    if as_json:
        from warmstart.doors.show import print_json

        print_json({"agent": agent, "path": hook.path, "changed": changed, "hook": hook.find()})
        return
    click.echo(f"{agent}: guard {done if changed else idle} ({hook.path})")


@guard.command()
@click.argument("tool", required=False)
@click.argument("arguments", required=False, default="{}", metavar="[JSON]")
@click.option("--agent", default="claude-code", show_default=True, help="Whose call it would be.")
@json_option
@click.pass_obj
def check(ws: Warmstart, tool: str | None, arguments: str, agent: str, as_json: bool) -> None:
    """Read the rules; with a TOOL and its arguments, say which rule a call would fall under. Nobody is asked."""
    rules = load_rules(ws.settings.home)
    rule = find_rule(rules, ToolCall(agent, tool, _read_arguments(arguments))) if tool else None
    if as_json:
        from warmstart.doors.show import print_json

        found = {"number": rules.index(rule) + 1, "action": rule.action} if rule else None
        print_json({"path": find_rules(ws.settings.home), "rules": len(rules), "rule": found, **_examine(ws)})
        return
    click.echo(f"{find_rules(ws.settings.home)}: {len(rules)} rules, all understood")
    for scope, path in _examine(ws)["installed"].items():
        click.echo(f"Claude Code, {scope}: {path or 'not guarded'}")
    if tool:
        click.echo(_describe(rules, rule))


def _read_arguments(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"the arguments are no JSON: {error}") from error
    if not isinstance(value, dict):
        raise ConfigError("the arguments must be a JSON object")
    return value


def _examine(ws: Warmstart) -> dict[str, Any]:
    found: dict[str, str | None] = {}
    for scope, project in (("user", None), ("project", Path.cwd())):
        hook = GuardHook(ws.settings, project)
        try:
            found[scope] = str(hook.path) if hook.find() else None
        except Refused as error:
            found[scope] = str(error)
    return {"installed": found}


def _describe(rules: list[Rule], rule: Rule | None) -> str:
    if rule is None:
        return "no rule fits: the call is left alone"
    return f"rule {rules.index(rule) + 1} fits: asks for {rule.action}, waits {rule.timeout_seconds} seconds"


@guard.command("claude-code", context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, metavar="", type=click.UNPROCESSED)
def claude_code(words: tuple[str, ...]) -> None:
    """What Claude Code's hook calls: an event as JSON on standard input, the answer as JSON on standard output."""
    from warmstart.doors.guard_claude_code import main

    main(words)
