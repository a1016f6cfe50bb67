"""Edit TOML that another program owns, in its text: comments and everything that is not ours stay byte for byte.

Our table goes to the end of the file. Every change is compared with the same change made to the parsed value.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from warmstart.doors.settings_edit.json_text import Insertion
from warmstart.errors import Refused

_MARK = "#\ue000warmstart\ue000"
_BLANK_LINES = re.compile(r"(?<=\n)\s+\Z")


def parse(text: str) -> dict[str, Any]:
    """Return the value of TOML. Raises Refused with the reason."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise Refused("it is nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise Refused(f"it is not valid TOML: {error}") from None


def put_entry(text: str, section: str, name: str, values: Mapping[str, Any]) -> Insertion:
    """Return the insertion that adds the table `[section.name]`."""
    before = parse(text)
    others = before.get(section, {})
    if not isinstance(others, dict):
        raise Refused(f"{section} is not a table")
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text else newline if text.endswith("\n") else 2 * newline
    table: str = _load_tomlkit().dumps({section: {name: dict(values)}})
    insertion = Insertion(len(text), gap + table.replace("\n", newline))
    try:
        is_right = parse(insertion.apply(text)) == before | {section: others | {name: dict(values)}}
    except Refused:
        is_right = False
    if not is_right:
        raise Refused(f"{section}.{name} cannot be added to it")
    return insertion


def remove_entry(text: str, section: str, name: str) -> str:
    """Return the text without the table `[section.name]` and its subtables."""
    wanted = parse(text)
    if not isinstance(wanted.get(section), dict) or name not in wanted[section]:
        return text
    del wanted[section][name]
    span = _find_table(text, section, name)
    left = _BLANK_LINES.sub("", text[: span[0]]) + text[span[1] :] if span else text
    try:
        after = parse(left)
    except Refused:
        after = {section: None}
    if not wanted[section]:
        after.setdefault(section, {})  # a parent that no header names is gone with its last table
    if after != wanted:
        raise Refused(f"{section}.{name} is written in a way that cannot be removed safely; remove it by hand")
    return left


def _find_table(text: str, section: str, name: str) -> tuple[int, int] | None:
    """Return where a table starts and ends. Comments and blank lines behind its last value belong to what follows."""
    tomlkit = _load_tomlkit()
    array, table = tomlkit.items.AoT, tomlkit.items.Table
    try:
        document = tomlkit.parse(text)
        entry = document[section][name]
        if tomlkit.dumps(document) != text or not isinstance(entry, table):
            return None
        last = entry
        while subtables := [item for _key, item in last.value.body if isinstance(item, table | array)]:
            last = subtables[-1] if isinstance(subtables[-1], table) else subtables[-1][-1]
        behind = 0
        for key, item in reversed(last.value.body):
            if key is not None:
                break
            behind += len(item.as_string())
        entry.trivia.comment = _MARK
        marked = tomlkit.dumps(document)
        if _MARK not in marked:  # it has no header of its own
            return None
        start = marked.rfind("\n", 0, marked.index(_MARK)) + 1
        del document[section][name]
        return start, start + len(text) - len(tomlkit.dumps(document)) - behind
    except (tomlkit.exceptions.TOMLKitError, RecursionError):
        return None


def _load_tomlkit() -> ModuleType:
    try:
        import tomlkit.items
    except ModuleNotFoundError:
        raise Refused("tomlkit is needed to change TOML: pip install -e '.[mcp]' in your clone of Warmstart") from None
    return tomlkit
