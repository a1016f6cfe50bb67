"""The hooks that start an agent's sessions warm."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from warmstart.config import Settings
from warmstart.doors.hooks.agents import HookAgent
from warmstart.doors.install.hook_settings import HookSettings
from warmstart.doors.install.plugin_file import PluginFile
from warmstart.doors.install.program import find_program, join_words, name_store

ENDING_WITH_SHELL = '<&0 & trap "kill $!" TERM; wait $!; true'  # our program ends when its shell is ended


def name_command(agent: HookAgent) -> str:
    """Return the words after `warmstart` by which our hooks are known."""
    return f"hook run {agent.name}"


def make_groups(agent: HookAgent, command: str) -> dict[str, dict[str, Any]]:
    """Return our group for every event. Most have no matcher: they apply to every start of a session, and every tool."""
    groups: dict[str, dict[str, Any]] = {}
    for event, seconds in agent.timeouts.items():
        matcher = {"matcher": agent.matchers[event]} if event in agent.matchers else {}
        groups[event] = matcher | {"hooks": [{"type": "command", "command": command, "timeout": seconds * agent.unit}]}
    return groups


def find_missing_events(agent: HookAgent, events: Collection[str]) -> list[str]:
    """Return the events that an older version did not hook; none where no hook of ours is installed."""
    return [event for event in agent.timeouts if event not in events] if events else []


class SettingsDoor:
    """Our hooks in an agent's settings, for the user or for one project."""

    def __init__(self, agent: HookAgent, settings: Settings, project: Path | None) -> None:
        self.agent = agent
        self._hooks = HookSettings(agent, settings, project, name_command(agent))
        self.path = self._hooks.path

    def install(self, words: Sequence[str]) -> bool:
        """Add our hooks, in place of older ones; return False if they are there already. Raises Refused."""
        return self._hooks.install(make_groups(self.agent, make_line(words, self.agent)))

    def uninstall(self) -> bool:
        """Remove our hooks; return False if there are none. Raises Refused."""
        return self._hooks.uninstall()

    def list_events(self) -> list[str]:
        """Return the hooked events, first those that we hook, in the order in which they occur. Raises Refused."""
        handlers = self._hooks.find()
        return list(dict.fromkeys(event for event in (*self.agent.timeouts, *handlers) if event in handlers))

    def find_obstacle(self) -> str | None:
        """Return why the agent runs no hook of these settings, and what to do about it. Raises Refused."""
        return self._hooks.find_obstacle()


Door = SettingsDoor | PluginFile


def open_door(agent: HookAgent, settings: Settings, project: Path | None = None) -> Door:
    """Return our place in an agent, for the user or for one project."""
    return (PluginFile if agent.plugin else SettingsDoor)(agent, settings, project)


def make_line(words: Sequence[str], agent: HookAgent | None = None) -> str:
    """Return the line that the agent's shell runs.

    It never fails: exit code 2, which an older or damaged program could give, would refuse the user's prompt.
    """
    line = join_words(words)
    if os.name == "nt":
        return line
    return f"{line} {ENDING_WITH_SHELL}" if agent is not None and agent.kills_shell else f"{line} || true"


def make_words(agent: HookAgent, settings: Settings, store: str | None = None, *, shared: bool = False) -> list[str]:
    """Return the words that run our hook. `shared`: the settings go to other machines.

    They name the home where it is not the usual one: the agent's own environment may not name it. Raises ConfigError if
    they would hold a password.
    """
    words = [*find_program(shared=shared), *name_command(agent).split()]
    home = None if settings.home == settings.user_home / ".warmstart" else settings.home.absolute()
    caller = "project" if shared else None  # the user's own hooks may run beside it: only one of them answers
    for option, value in (("--home", home), ("--store", store and name_store(store)), ("--caller", caller)):
        words += [option, str(value)] if value else []
    return words
