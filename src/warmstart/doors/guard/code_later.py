"""Whether a call writes to something that can run code later, or that switches the guard off: settings of agents, files
of shells, git's configuration and hooks, the guard's own rules. Such a call is asked even if no rule names it: afterwards a
harmless `git status` would run whatever the agent wrote.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import re2

from warmstart.doors.guard.calls import GuardedCall
from warmstart.doors.guard.tools import AgentTools, load_later_code


def find_later_code(call: GuardedCall, tools: AgentTools) -> str | None:
    """Return what the call changes that can run code later, or None."""
    for path in tools.read_paths(call):
        if _is_later(path, call.folder):
            return path[:200]
    command = tools.read_command(call)
    return None if command is None else _search_command(command, call.folder)


def _search_command(command: str, folder: str) -> str | None:
    text = command.encode("utf-8", "replace")
    for pattern in _commands():
        if match := pattern.search(text):
            return str(match.group(0).decode("utf-8", "replace"))[:200]
    if not _writes().search(text):
        return None
    words = command.replace(">", " ").replace("=", " ").replace('"', "").replace("'", "").replace("\\", "").split()
    return next((word[:200] for word in words if "/" in word or "." in word if _is_later(word, folder)), None)


def _is_later(path: str, folder: str) -> bool:
    """Look at the path as it is written, without its dots, and where links lead."""
    written = path.strip().replace("\\", "/").replace("$HOME", "~").replace("${HOME}", "~")
    try:
        whole = str(Path(folder or "/") / Path(written).expanduser())
    except RuntimeError:  # the home of a user who does not exist
        whole = written
    places = {written, os.path.normpath(whole), _resolve(whole)}
    return any(_paths().search(_fold(place).encode("utf-8", "replace")) for place in places if place)


def _resolve(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return ""


def _fold(path: str) -> str:
    return "/" + path.replace("\\", "/").lower().lstrip("/")


@cache
def _paths() -> Any:
    return re2.compile("|".join(f"(?:{pattern})" for pattern in load_later_code().code_later))


@cache
def _commands() -> list[Any]:
    return [re2.compile(pattern) for pattern in load_later_code().commands]


@cache
def _writes() -> Any:
    return re2.compile(load_later_code().writes)
