"""Our hooks in agents' settings: what is written there, found there, and taken out again."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from warmstart.config import Settings
from warmstart.doors.hooks.agents import HookAgent, find_home
from warmstart.doors.settings_edit import json_text
from warmstart.doors.settings_edit.file import SettingsFile
from warmstart.doors.settings_edit.json_text import Insertion
from warmstart.errors import Refused

_OURS = re.compile(r"(?:^|[\s'\"/\\])warmstart(?:\.exe)?['\"]? hook run (?P<agent>[\w-]+)(?=\s|$)")


class HookSettings:
    """The hooks of one agent, for the user or for one project."""

    def __init__(self, agent: HookAgent, settings: Settings, project: Path | None = None) -> None:
        self.agent = agent
        folder = project / agent.folder if project else find_home(agent, settings)
        self.path = folder / agent.file
        self._file = SettingsFile(self.path, settings.home / "changed", owner="hooks")

    def install(self, command: str) -> bool:
        """Put our hooks in; False where they are there as they should be. Raises Refused, and then nothing is changed."""
        try:
            if self._is_complete(command):
                return False
            check_shape(json_text.parse(self._file.read() or ""))
            self._file.take_out(remove_hooks)  # of an older version, or of one installed elsewhere
            return self._file.put_in(lambda text: add_hooks(text, self.agent, command), remove_hooks)
        except Refused as error:
            by_hand = json_text.write({"hooks": {e: [_group(self.agent, e, command)] for e in self.agent.timeouts}})
            raise Refused(f"{self._tell(error)}; to add by hand: {by_hand}") from error

    def uninstall(self) -> bool:
        """Take our hooks out; False where there are none."""
        try:
            return self._file.take_out(remove_hooks)
        except Refused as error:
            raise Refused(f"{self._tell(error)}; remove by hand what calls: warmstart hook run") from error

    def events(self) -> dict[str, str]:
        """The events that are hooked, with the command that is called. Raises Refused."""
        try:
            value = json_text.parse(self._file.read() or "")
        except Refused as error:
            raise Refused(self._tell(error)) from error
        found = {str(path[1]): json_text.look_up(value, path)["command"] for path in find_hooks(value, is_ours)}
        return {event: found[event] for event in (*self.agent.timeouts, *found) if event in found}

    def is_disabled(self) -> bool:
        """Whether the same settings switch off all hooks."""
        value = json_text.parse(self._file.read() or "")
        return isinstance(value, dict) and value.get("disableAllHooks") is True

    def _is_complete(self, command: str) -> bool:
        return self.events() == dict.fromkeys(self.agent.timeouts, command)

    def _tell(self, error: Refused) -> str:
        told = str(error)
        return told if str(self.path) in told else f"{self.path}: {told}; it was left as it is"


def make_command(agent: HookAgent, home: Path | None = None, store: str | None = None, *, shared: bool = False) -> str:
    """What an agent's shell runs: the program beside this interpreter, by its whole path.

    A project's settings are shared with people whose machines are others: there the bare name, where that is found.
    It never fails: a prompt is refused by an exit code of 2, which an older or damaged program could give.
    """
    words = [*find_program(shared=shared), "hook", "run", agent.name]
    for option, value in (("--home", home), ("--store", store)):
        words += [option, str(value)] if value else []
    if os.name == "nt":
        import subprocess

        return subprocess.list2cmdline(words)
    return f"{shlex.join(words)} || true"


def find_program(*, shared: bool = False) -> list[str]:
    if shared and shutil.which("warmstart"):
        return ["warmstart"]
    program = Path(sys.executable).with_name("warmstart.exe" if os.name == "nt" else "warmstart")
    return [str(program)] if program.exists() else [sys.executable, "-P", "-m", "warmstart"]


def add_hooks(text: str, agent: HookAgent, command: str) -> Sequence[Insertion]:
    """What puts a group of ours behind those of every event."""
    made: list[Insertion] = []
    for event in agent.timeouts:
        made.append(json_text.append(text, ("hooks", event), _group(agent, event, command)))
        text = made[-1].apply(text)
    return made


def remove_hooks(text: str, is_wanted: Callable[[Any], bool] | None = None) -> str:
    """The text without our hooks, and without what they leave empty."""
    while (path := next(find_hooks(json_text.parse(text), is_wanted or is_ours), None)) is not None:
        text = json_text.remove(text, path)
        for outer in (path[:-2], path[:-3], path[:-4]):  # group, event's groups, hooks
            value = json_text.look_up(json_text.parse(text), outer)
            if _is_left_empty(value):
                text = json_text.remove(text, outer)
            else:
                break
    return text


def is_ours(value: Any) -> bool:
    """Whether it is a handler that calls our hook."""
    command = value.get("command") if isinstance(value, dict) else None
    return isinstance(command, str) and _OURS.search(command) is not None


def check_shape(value: Any) -> None:
    """Refuse what does not look like the settings we know, before anything is touched."""
    hooks = value.get("hooks", {}) if isinstance(value, dict) else None
    if not isinstance(hooks, dict):
        raise Refused("its hooks are not of the expected kind" if isinstance(value, dict) else "it is no JSON object")
    for event, groups in hooks.items():
        if not isinstance(groups, list):
            raise Refused(f"its hooks for {event} are not of the expected kind")


def find_hooks(value: Any, is_wanted: Callable[[Any], bool]) -> Iterator[tuple[str | int, ...]]:
    """The paths of such handlers: hooks, event, place of the group, hooks, place."""
    if not isinstance(value, dict) or not isinstance(value.get("hooks"), dict):
        return iter(())
    found = json_text.find(value["hooks"], is_wanted, ("hooks",))
    return (path for path in found if len(path) == 5 and path[3] == "hooks")


def _is_left_empty(value: Any) -> bool:
    """Of a group, its matcher and the like mean nothing without handlers."""
    return not value or (isinstance(value, dict) and value.get("hooks") == [])


def _group(agent: HookAgent, event: str, command: str) -> dict[str, Any]:
    """Without a matcher: every way to start counts, those that are yet to come too."""
    return {"hooks": [{"type": "command", "command": command, "timeout": agent.timeouts[event]}]}
