"""Words that people try first: where a command is not found, name the one that does it."""

from __future__ import annotations

import re
from difflib import get_close_matches

import click

_UNKNOWN = re.compile(r"No such command '(?P<word>.*)'\.?", re.S)  # Click's own words

_LEARN = "warmstart learn (from all sessions), warmstart capture SESSION (from one)"
_LISTS = "warmstart sessions list, warmstart templates list"
_START = "warmstart ingest, warmstart learn, then warmstart hook install --all"
_INSTALL = "warmstart hook install --all, warmstart mcp install"

INSTEAD = {  # a word people try -> the command they mean
    "add": _LEARN,
    "approve": "warmstart templates approve NAME, warmstart confirm approve ID",
    "begin": _START,
    "build": _LEARN,
    "clean": "warmstart sessions delete ID, warmstart templates delete NAME",
    "config": "warmstart doctor (shows the home with its config.toml)",
    "cost": "warmstart usage",
    "costs": "warmstart usage",
    "create": _LEARN,
    "delete": "warmstart sessions delete ID, warmstart templates delete NAME",
    "errors": "warmstart insights, warmstart sessions show ID --errors",
    "export": "warmstart templates export",
    "find": "warmstart sessions search TEXT",
    "forget": "warmstart sessions delete ID",
    "generate": _LEARN,
    "grep": "warmstart sessions search TEXT",
    "help": "warmstart --help",
    "history": "warmstart sessions list",
    "hooks": "warmstart hook install --all",
    "import": "warmstart templates import PATH (templates), warmstart ingest PATH (transcripts)",
    "info": "warmstart doctor, warmstart templates stats",
    "init": _START,
    "inject": 'warmstart provision "TASK"',
    "install": _INSTALL,
    "list": _LISTS,
    "load": "warmstart ingest PATH (transcripts), warmstart templates import PATH (templates)",
    "log": "warmstart sessions list",
    "logs": "warmstart sessions list",
    "ls": _LISTS,
    "metrics": "warmstart report, warmstart insights",
    "mine": _LEARN,
    "new": _LEARN,
    "preview": 'warmstart provision "TASK"',
    "read": "warmstart ingest PATH",
    "remove": "warmstart sessions delete ID, warmstart templates delete NAME",
    "retire": "warmstart templates retire NAME",
    "rm": "warmstart sessions delete ID, warmstart templates delete NAME",
    "run": 'warmstart provision "TASK" (preview a seed), warmstart lab run (measure in a sandbox)',
    "scan": "warmstart ingest PATH",
    "search": "warmstart sessions search TEXT",
    "seed": 'warmstart provision "TASK"',
    "serve": "warmstart mcp (MCP server), warmstart confirm serve (confirmations)",
    "setup": _START,
    "show": "warmstart sessions show ID, warmstart templates show NAME",
    "start": _START,
    "stats": "warmstart templates stats, warmstart insights, warmstart usage",
    "status": "warmstart doctor, warmstart hook status",
    "template": "warmstart templates list",
    "tokens": "warmstart usage",
    "train": _LEARN,
    "uninstall": "warmstart hook uninstall --all",
    "update": "warmstart ingest, then warmstart learn",
    "version": "warmstart --version",
    "warm": 'warmstart provision "TASK"',
}


def explain_unknown(error: click.UsageError) -> click.UsageError | None:
    """Return a better error where a command is unknown: with the command that was meant. None for other errors."""
    match = _UNKNOWN.match(error.message)
    group = error.ctx.command if error.ctx else None
    if match is None or not isinstance(group, click.Group) or error.ctx is None:
        return None
    word = match["word"]
    path = error.ctx.command_path
    known = group.list_commands(error.ctx)
    is_top = error.ctx.parent is None
    if is_top and (instead := INSTEAD.get(word.lower())):
        text = f"there is no command {word!r}; use: {instead}"
    elif near := get_close_matches(word.lower(), known, n=2, cutoff=0.6):
        text = f"there is no command {word!r}; did you mean: {' or '.join(f'{path} {name}' for name in near)}"
    else:
        text = f"there is no command {word!r}; there are: {', '.join(known)}"
    return click.UsageError(text, error.ctx)
