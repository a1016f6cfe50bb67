"""The hooks that start an agent's sessions warm."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from warmstart.doors.hooks.agents import HookAgent
from warmstart.doors.install.program import find_program, join_words


def name_command(agent: HookAgent) -> str:
    """Return the words after `warmstart` by which our hooks are known."""
    return f"hook run {agent.name}"


def make_groups(agent: HookAgent, command: str) -> dict[str, dict[str, Any]]:
    """Return our group for every event. Most have no matcher: they apply to every start of a session, and every tool."""
    groups: dict[str, dict[str, Any]] = {}
    for event, seconds in agent.timeouts.items():
        matcher = {"matcher": agent.matchers[event]} if event in agent.matchers else {}
        groups[event] = matcher | {"hooks": [{"type": "command", "command": command, "timeout": seconds}]}
    return groups


def find_missing_events(agent: HookAgent, events: Collection[str]) -> list[str]:
    """Return the events that an older version did not hook; none where no hook of ours is installed."""
    return [event for event in agent.timeouts if event not in events] if events else []


def make_command(agent: HookAgent, home: Path | None = None, store: str | None = None, *, shared: bool = False) -> str:
    """Return the line that the agent's shell runs. `shared`: the settings go to other machines.

    It never fails: exit code 2, which an older or damaged program could give, would refuse the user's prompt.
    """
    words = [*find_program(shared=shared), *name_command(agent).split()]
    for option, value in (("--home", home), ("--store", store)):
        words += [option, str(value)] if value else []
    return join_words(words) if os.name == "nt" else f"{join_words(words)} || true"
