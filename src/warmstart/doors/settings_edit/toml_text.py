"""Changes to TOML that another program owns, made in its text: comments and all that is not ours stay as they were.

A table of ours goes to the end and comes out with its header. As with JSON, every change is checked against the same
change made to the parsed value.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from warmstart.doors.settings_edit.json_text import Insertion
from warmstart.errors import Refused

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_HEADER = re.compile(r"[ \t]*\[(?!\[)([^\n]*?)\][ \t]*(?:#[^\n]*)?\r?\n?\Z")
_ANY_HEADER = re.compile(r"[ \t]*\[")


def parse(text: str) -> dict[str, Any]:
    """The value of TOML. Raises Refused with the reason."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise Refused("it is nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise Refused(f"it is no valid TOML: {error}") from None


def append_table(text: str, path: Sequence[str], values: Mapping[str, Any]) -> Insertion:
    """What puts the table `[path]` at the end."""
    before = parse(text)
    if _has(before, path):
        raise Refused(f"{'.'.join(path)} is there already")
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text else newline if text.endswith("\n") else 2 * newline
    lines = [f"[{'.'.join(map(_write_key, path))}]", *(f"{_write_key(k)} = {_write(v)}" for k, v in values.items())]
    made = Insertion(len(text), gap + "".join(line + newline for line in lines))
    try:
        same = parse(made.apply(text)) == _with(before, path, dict(values))
    except Refused:
        same = False
    if not same:
        raise Refused(f"{'.'.join(path)} cannot be added to what is there")
    return made


def remove_table(text: str, path: Sequence[str]) -> str:
    """The text without the table `[path]` and what is below it; the same where there is none."""
    before = parse(text)
    if not _has(before, path):
        return text
    kept: list[str] = []
    block: list[str] | None = None  # lines of a table of ours, so far
    for line in text.splitlines(keepends=True):
        if _ANY_HEADER.match(line):
            kept += _after_values(block)
            block = [] if _header_path(line)[: len(path)] == list(path) else None
            if block is not None:
                while kept and not kept[-1].strip():
                    kept.pop()
        (kept if block is None else block).append(line)
    kept += _after_values(block)
    left = "".join(kept)
    try:
        same = parse(left) in (_without(before, path, prune=True), _without(before, path, prune=False))
    except Refused:
        same = False
    if not same:
        raise Refused(f"{'.'.join(path)} is written in a way that cannot be taken out safely; remove it by hand")
    return left


def _after_values(block: list[str] | None) -> list[str]:
    """Blank lines and comments behind a table belong to what follows."""
    if block is None:
        return []
    last = max(n for n, line in enumerate(block) if line.strip() and not line.lstrip().startswith("#"))
    return block[last + 1 :]


def _header_path(line: str) -> list[str]:
    found = _HEADER.match(line)
    if found is None:
        return []
    value: Any
    try:
        value = tomllib.loads(f"[{found.group(1)}]")
    except tomllib.TOMLDecodeError:
        return []
    path: list[str] = []
    while value:
        ((name, value),) = value.items()
        path.append(name)
    return path


def _write_key(name: str) -> str:
    return name if _BARE.match(name) else json.dumps(name)


def _write(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_write_key(name)} = {_write(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_write, value)) + "]"
    return json.dumps(value)


def _has(value: Any, path: Sequence[str]) -> bool:
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return False
        value = value[name]
    return True


def _with(value: Any, path: Sequence[str], new: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise Refused("it is not of the expected kind")
    inside = new if len(path) == 1 else _with(value.get(path[0], {}), path[1:], new)
    return {**value, path[0]: inside}


def _without(value: Mapping[str, Any], path: Sequence[str], *, prune: bool) -> dict[str, Any]:
    """`prune`: an emptied parent goes too, where no header of its own names it."""
    left = {name: one for name, one in value.items() if name != path[0]}
    if len(path) > 1:
        inside = _without(value[path[0]], path[1:], prune=prune)
        if inside or not prune:
            left[path[0]] = inside
    return left
