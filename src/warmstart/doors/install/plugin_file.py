"""A file of ours in an agent's folder of plugins: written whole, known by a mark at its beginning, deleted when uninstalled.

The source in `plugins/` ships with the package. `__COMMAND__` in it becomes the words that start `warmstart hook run`,
and `__EVENTS__` the hooked events with their time limits, both as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

from warmstart.atomic_files import write_beside
from warmstart.config import Settings
from warmstart.doors.hooks.agents import HookAgent, find_file
from warmstart.errors import Refused

MARK = "Written by `warmstart hook install"
_LARGEST = 1_000_000  # bytes


class PluginFile:
    """Our plugin for one agent, for the user or for one project."""

    def __init__(self, agent: HookAgent, settings: Settings, project: Path | None) -> None:
        self.agent = agent
        self.path = find_file(agent, settings, project)
        self._root = project or settings.user_home

    def install(self, words: Sequence[str]) -> bool:
        """Write the file; return False if it is there already. Raises Refused where another file has its name."""
        content = make_content(self.agent, words)
        known = self._read()
        if known == content:
            return False
        if known is not None and not _is_ours(known):
            raise Refused(f"{self.path}: this file is not ours; move it away, then install again")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with write_beside(self.path, content.encode(), synced=True) as new_file:
                new_file.replace(self.path)
        except OSError as error:
            raise Refused(f"{self.path}: it cannot be written ({error.strerror})") from error
        return True

    def uninstall(self) -> bool:
        """Delete the file, and the folders around it that this leaves empty; return False if it is not there."""
        known = self._read()
        if known is None:
            return False
        if not _is_ours(known):
            raise Refused(f"{self.path}: this file is not ours and was left as it is")
        try:
            self.path.unlink()
        except OSError as error:
            raise Refused(f"{self.path}: it cannot be deleted ({error.strerror})") from error
        self._remove_empty_folders()
        return True

    def list_events(self) -> list[str]:
        """Return the hooked events, if the file is there and ours. Raises Refused."""
        known = self._read()
        return [event for event in self.agent.timeouts if event in known] if known and _is_ours(known) else []

    def find_obstacle(self) -> None:
        """Return None: no setting of these agents switches off a single plugin."""

    def _read(self) -> str | None:
        try:
            if self.path.stat().st_size > _LARGEST:
                raise Refused(f"{self.path}: this file is too large to be ours")
            return self.path.read_text("utf-8")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise Refused(f"{self.path}: it cannot be read ({error})") from error

    def _remove_empty_folders(self) -> None:
        folder = self.path.parent
        with suppress(OSError):  # not empty: others use it
            while folder != self._root and folder.is_relative_to(self._root):
                folder.rmdir()
                folder = folder.parent


def make_content(agent: HookAgent, words: Sequence[str]) -> str:
    """Return the text of the file."""
    source = files("warmstart.doors.install").joinpath("plugins", agent.plugin).read_text("utf-8")
    limits = {event: seconds * agent.unit for event, seconds in agent.timeouts.items()}
    return source.replace("__COMMAND__", json.dumps(list(words))).replace("__EVENTS__", json.dumps(limits))


def _is_ours(text: str) -> bool:
    return MARK in text[:500]
