"""Whether a call writes to something that can run code later, or that switches the guard off: settings of agents, files
of shells, git's configuration and hooks, the guard's own rules. Such a call is asked even if no rule names it: afterwards a
harmless `git status` would run whatever the agent wrote.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import re2

from warmstart.doors.guard.calls import GuardedCall
from warmstart.doors.guard.command_words import read_command_line
from warmstart.doors.guard.tools import AgentTools, load_later_code


def find_later_code(call: GuardedCall, tools: AgentTools) -> str | None:
    """Return what the call changes that can run code later, or None."""
    if (odd := tools.find_odd_path(call)) is not None:
        return f"a path with control characters: {ascii(odd)[:180]}"
    for path in tools.read_paths(call):
        if _is_later(path, call.folder):
            return path[:200]
    command = tools.read_command(call)
    return None if command is None else _search_command(command, call.folder)


def _search_command(command: str, folder: str) -> str | None:
    line = read_command_line(command)
    for text in (command, line.bare):
        for pattern in _commands():
            if match := pattern.search(text.encode("utf-8", "replace")):
                return str(match.group(0).decode("utf-8", "replace"))[:200]
    if not _writes().search(command.encode("utf-8", "replace")):
        return None
    for word in line.words:
        if ("/" in word or "." in word or word in line.targets) and _is_later(word, folder):
            return word[:200]
    for place in line.folders:  # where the command goes before it writes
        inside = str(Path(folder or "/") / _expand(place))
        for word in line.words:
            if word != place and _is_later(word, inside):
                return f"{place}/{word}"[:200]
    return next((word[:200] for word in line.removed if _holds_guarded(word, folder)), None)


def _is_later(path: str, folder: str) -> bool:
    """Look at the path as it is written, without its dots, and where links lead; as a file and as a folder."""
    written = path.strip().replace("\\", "/")
    whole = str(Path(folder or "/") / _expand(written))
    places = {written, os.path.normpath(whole), _resolve(whole)} - {""}
    if any(_is_inside(place, _package()) for place in places):
        return True
    folded = [_fold(place).rstrip("/") for place in places]
    return any(_paths().search(form.encode("utf-8", "replace")) for one in folded for form in (one, f"{one}/"))


def _holds_guarded(path: str, folder: str) -> bool:
    """Return whether what is removed or moved away holds the home's settings, the guard's rules, or Warmstart itself."""
    place = _resolve(str(Path(folder or "/") / _expand(path)))
    held = (str(Path.home()), _package(), _resolve(sys.prefix))
    if not place or any(_is_inside(one, place) for one in held):
        return bool(place)
    try:
        return Path(place, "guard.toml").exists()
    except (OSError, ValueError):
        return False


def _expand(path: str) -> str:
    try:
        return str(Path(path.replace("${HOME}", "~").replace("$HOME", "~")).expanduser())
    except RuntimeError:  # the home of a user who does not exist
        return path


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


@cache
def _package() -> str:
    """Return the folder of the running package: who changes it changes the guard."""
    return os.path.realpath(Path(__file__).parents[2])


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
