"""The commands for which agents wait, `provision` and `notes brief`, without click, whose import takes longer than they do.

`COMMANDS` repeats the options that click knows (a test keeps both equal). A line that is not plainly one of these commands
goes to click: help, another option, a value that it would refuse. So click writes every message.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from warmstart.doors.cli.agent_commands import BriefOptions, SeedOptions, print_brief, print_seed
from warmstart.errors import WarmstartError
from warmstart.model import DIALECTS

CATEGORIES = ("coding", "research", "ops", "general")
TASK_TYPES = ("code", "file", "research", "mixed")
LONGEST_BRIEF, MOST_EXAMPLES = 5_000, 50


class QuickCommand(NamedTuple):
    """A command, and how its words are read."""

    options: type[SeedOptions] | type[BriefOptions]
    run: Callable[..., None]
    argument: str  # the field of its only argument; "": it takes none
    texts: Sequence[str]  # options with any value; the field has the option's name
    flags: Mapping[str, str]  # option -> field
    choices: Mapping[str, tuple[str, Sequence[str]]]  # option -> field, values
    numbers: Mapping[str, int | None]  # option -> the largest value; the smallest is 0
    needs: Mapping[str, tuple[str, str]]  # field -> the field without which it means nothing, and why


COMMANDS = {
    ("provision",): QuickCommand(
        options=SeedOptions,
        run=print_seed,
        argument="task",
        texts=("session", "tools", "tags", "templates", "project", "scope", "model", "arm", "parent", "job"),
        flags={"--cold": "cold", "--continues": "continues", "--thinking": "thinking", "--json": "as_json"},
        choices={
            "--category": ("category", CATEGORIES),
            "--type": ("task_type", TASK_TYPES),
            "--dialect": ("dialect", DIALECTS),
        },
        numbers={"--budget": None, "--examples": MOST_EXAMPLES},
        needs={
            "continues": ("parent", "name the session that is continued"),
            "parent": ("session", "a preview inherits no arm"),
            "arm": ("session", "a preview has no arm"),
        },
    ),
    ("notes", "brief"): QuickCommand(
        options=BriefOptions,
        run=print_brief,
        argument="",
        texts=("project", "task", "agent"),  # click checks the folder --cwd
        flags={"--json": "as_json"},
        choices={},
        numbers={"--budget": LONGEST_BRIEF},
        needs={},
    ),
}


def run_quickly(words: Sequence[str]) -> bool:
    """Run a command, if it is one of these and nothing is unusual about it; return whether it was."""
    for name, command in COMMANDS.items():
        if tuple(words[: len(name)]) == name:
            fields = read_words(command, words[len(name) :])
            if fields is None:
                return False
            _run(command, fields)
            return True
    return False


def read_words(command: QuickCommand, words: Sequence[str]) -> dict[str, Any] | None:
    """Return the fields of the command's options; None if click must read the words."""
    fields: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            if not command.argument or command.argument in fields:
                return None
            fields[command.argument] = word
        elif word in command.flags:
            fields[command.flags[word]] = True
        else:
            option, equals, value = word.partition("=")
            read = _read_value(command, option, value if equals else next(rest, "-"))
            if read is None:
                return None
            fields[read[0]] = read[1]
    return None if find_missing(command, fields) else fields


def find_missing(command: QuickCommand, fields: Mapping[str, Any]) -> str:
    """Return which option is missing beside another, and why; empty if none is."""
    for field, (needed, why) in command.needs.items():
        if fields.get(field) and not fields.get(needed):
            return f"--{field} needs --{needed}: {why}"
    return ""


def _read_value(command: QuickCommand, option: str, value: str) -> tuple[str, str | int] | None:
    """Return the field and the value of an option; None if either is unusual."""
    name = option.removeprefix("--")
    if value.startswith("-") or not option.startswith("--"):
        return None
    if name in command.texts:
        return name, value
    if option in command.choices:
        field, values = command.choices[option]
        return (field, value) if value in values else None
    if option in command.numbers and value.isascii() and value.isdigit() and len(value) <= 9:
        most = command.numbers[option]
        return (name, int(value)) if most is None or int(value) <= most else None
    return None


def _run(command: QuickCommand, fields: dict[str, Any]) -> None:
    from warmstart import config
    from warmstart.pipeline import Warmstart

    try:
        with Warmstart(config.load()) as ws:
            command.run(ws, command.options(**fields))
        sys.stdout.flush()
    except (WarmstartError, OSError, EOFError, KeyboardInterrupt) as error:
        from warmstart.doors.cli.main import report_failure

        report_failure(error)
