"""What the guard does not cover: tools that no rule names, settings that switch hooks off, and variables that change what
other programs do."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from warmstart.doors.guard.calls import GuardedCall
from warmstart.doors.guard.rules import GuardFile, GuardRule
from warmstart.doors.guard.tools import AgentTools, ToolClass, list_traps

_USUAL = frozenset(("PATH", "EDITOR", "PAGER"))  # set in every environment; a trap only in an agent's settings
_CLASSES: tuple[ToolClass, ...] = ("shell", "write", "later", "harmless")


class Uncovered(NamedTuple):
    """Tools of one class that no rule of the file names, and what happens to their calls."""

    kind: ToolClass
    tools: list[str]
    fate: str


def list_uncovered(file: GuardFile, agent: str) -> list[Uncovered]:
    """Return every tool of the agent that no rule names, by class."""
    tools = file.tools_of(agent)
    rules = [rule for rule in file.rule if rule.agents is None or agent in rule.agents]
    by_class: dict[ToolClass, list[str]] = {}
    for name in tools.list_names():
        kind = _classify(tools, agent, name)
        if not any(_names(rule, name, tools, kind) for rule in rules):
            by_class.setdefault(kind, []).append(name)
    return [Uncovered(kind, by_class[kind], _describe_fate(file, kind)) for kind in _CLASSES if kind in by_class]


def _classify(tools: AgentTools, agent: str, name: str) -> ToolClass:
    if name in tools.shell:
        return "shell"
    return tools.classify(GuardedCall(agent, name, {})) or "harmless"


def _names(rule: GuardRule, name: str, tools: AgentTools, kind: ToolClass) -> bool:
    """Return whether a rule names a tool, or another tool that runs commands if this one does."""
    names = [name, "Bash", "terminal"] if kind == "shell" else [name]
    return any(fnmatchcase(one.lower(), glob.lower()) for one in names for glob in rule.tools)


def _describe_fate(file: GuardFile, kind: ToolClass) -> str:
    asked = file.defaults.code_later == "ask"
    match kind:
        case "shell":
            return "asked only if they change what can run code later" if asked else "never asked"
        case "write":
            return "asked only for files that can run code later" if asked else "never asked"
        case "later":
            return "always asked"
        case "harmless":
            return "never asked"


def find_traps(settings: Iterable[Path], environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return what in these settings or in this environment could get around the guard, for people."""
    found = []
    traps = list_traps()
    for path in settings:
        value = _read(path)
        if value.get("disableAllHooks") is True:
            found.append(f"{path}: `disableAllHooks` switches the guard off; remove it")
        variables = value.get("env")
        for name in variables if isinstance(variables, dict) else ():
            if str(name).upper() in traps:
                found.append(f"{path}: sets {name} for everything that the agent runs, which can run other code")
    for name in traps:
        if name not in _USUAL and environ.get(name):
            found.append(f"the environment sets {name}, which can run other code in every program")
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
