"""Handlers of ours among the hooks in an agent's settings: added, found, removed.

Settings hold `hooks`, by event a list of groups, each with its list of handlers. A handler of ours is known by the
command it runs, whichever installation it names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from warmstart.config import Settings
from warmstart.doors.hooks.agents import HookAgent, find_file
from warmstart.doors.settings_edit import json_text
from warmstart.doors.settings_edit.file import Editor, SettingsFile
from warmstart.doors.settings_edit.json_text import Insertion
from warmstart.errors import Refused

Groups = Mapping[str, Mapping[str, Any]]  # by event
_SWITCHES = ("enabled", "disabled", "notifications")  # among the hooks, in settings of older versions of Gemini CLI
IsOurs = Callable[[Any], bool]


class HookSettings:
    """The hooks of one agent, for the user or for one project. `command`: of ours, the words after `warmstart`."""

    def __init__(self, agent: HookAgent, settings: Settings, project: Path | None, command: str) -> None:
        self.agent = agent
        self.path = find_file(agent, settings, project)
        self._command = command
        self._is_ours = calls(command)
        editor = Editor(json_text.parse, lambda text: remove_handlers(text, self._is_ours))
        self._file = SettingsFile(self.path, settings.home, command, editor)

    def install(self, groups: Groups) -> bool:
        """Add our groups, in place of older ones; return False if they are there already. Raises Refused."""
        wanted = [(event, handler) for event, group in groups.items() for handler in group["hooks"]]
        try:
            if sorted(_find_handlers(self._file.load(), self._is_ours), key=_event) == sorted(wanted, key=_event):
                return False
            self._file.replace(lambda text: add_groups(text, groups))
        except Refused as error:
            by_hand = json.dumps({"hooks": {event: [group] for event, group in groups.items()}}, ensure_ascii=False)
            raise Refused(f"{error}; to add by hand: {by_hand}") from error
        return True

    def uninstall(self) -> bool:
        """Remove our handlers; return False if there are none. Raises Refused."""
        try:
            return self._file.remove()
        except Refused as error:
            raise Refused(f"{error}; remove by hand the hooks that call: warmstart {self._command}") from error

    def find(self) -> dict[str, dict[str, Any]]:
        """Return our handlers by event. Raises Refused."""
        return dict(_find_handlers(self._file.load(), self._is_ours))

    def find_groups(self) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
        """Return every handler of ours with its event and its group. Raises Refused."""
        value = self._file.load()
        paths = list(_find_paths(value, self._is_ours))
        return [(str(p[1]), json_text.look_up(value, p[:3]), json_text.look_up(value, p)) for p in paths]

    def find_obstacle(self) -> str | None:
        """Return why the agent runs no hook of these settings, and what to do about it. Raises Refused."""
        value = self._file.load()
        if not isinstance(value, dict):
            return None
        if value.get("disableAllHooks") is True:
            return "All hooks are off in these settings: remove `disableAllHooks`."
        switches = value.get("hooksConfig")
        if isinstance(switches, dict) and switches.get("enabled") is False:
            return "All hooks are off in these settings: remove `enabled` from `hooksConfig`."
        if isinstance(switches, dict) and any(map(self._is_ours, _list_disabled(switches))):
            return "Our hooks are off in these settings: remove them from `disabled` in `hooksConfig`."
        known = self.agent.keys
        unknown = ", ".join(f"`{key}`" for key in value if known and key not in known)
        if not unknown:
            return None
        return f"{self.agent.title} ignores {self.path}, which may only have {' and '.join(known)}: remove {unknown}."


def calls(command: str) -> IsOurs:
    """Return a test for handlers that run `warmstart COMMAND`."""
    pattern = re.compile(rf"(?:^|[\s'\"/\\])warmstart(?:\.exe)?['\"]? {re.escape(command)}(?=\s|$)")

    def is_ours(handler: Any) -> bool:
        line = handler.get("command") if isinstance(handler, dict) else None
        return isinstance(line, str) and pattern.search(line) is not None

    return is_ours


def add_groups(text: str, groups: Groups) -> Iterator[Insertion]:
    """Yield the insertions that add a group behind those of every event, each for the text with the earlier ones."""
    _check_shape(json_text.parse(text))
    for event, group in groups.items():
        insertion = json_text.append(text, ("hooks", event), group)
        text = insertion.apply(text)
        yield insertion


def remove_handlers(text: str, is_ours: IsOurs) -> str:
    """Return the text without our handlers, and without the groups and events that this leaves empty."""
    while (path := next(_find_paths(json_text.parse(text), is_ours), None)) is not None:
        text = json_text.remove(text, path)
        for outer in (path[:-2], path[:-3], path[:-4]):  # group, groups of the event, hooks
            value = json_text.look_up(json_text.parse(text), outer)
            if not value or (isinstance(value, dict) and value.get("hooks") == []):
                text = json_text.remove(text, outer)
            else:
                break
    return text


def _find_handlers(value: Any, is_ours: IsOurs) -> list[tuple[str, dict[str, Any]]]:
    return [(str(path[1]), json_text.look_up(value, path)) for path in _find_paths(value, is_ours)]


def _find_paths(value: Any, is_ours: IsOurs) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of handlers: "hooks", event, index of the group, "hooks", index."""
    hooks = value.get("hooks") if isinstance(value, dict) else None
    paths = json_text.find(hooks, is_ours, ("hooks",)) if isinstance(hooks, dict) else ()
    return (path for path in paths if len(path) == 5 and path[3] == "hooks")


def _list_disabled(switches: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the hooks that Gemini CLI was asked not to run, which it knows by their commands."""
    disabled = switches.get("disabled")
    return [{"command": command} for command in disabled] if isinstance(disabled, list) else []


def _check_shape(value: Any) -> None:
    """Refuse settings that do not look as expected, before anything is changed."""
    if not isinstance(value, dict):
        raise Refused("it is not a JSON object")
    hooks = value.get("hooks", {})
    if not isinstance(hooks, dict):
        raise Refused("its hooks are not of the expected kind")
    for event, groups in hooks.items():
        if not isinstance(groups, list) and event not in _SWITCHES:
            raise Refused(f"its hooks for {event} are not of the expected kind")


def _event(handler: tuple[str, dict[str, Any]]) -> str:
    return handler[0]
