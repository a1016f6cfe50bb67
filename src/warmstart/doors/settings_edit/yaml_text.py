"""Edit YAML that another program owns, in its text: comments and everything that is not ours stay byte for byte.

One entry of a top-level mapping is added and removed as lines. Every change is compared with the same change made to the
parsed value, so unusual YAML is refused, never damaged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from warmstart.doors.settings_edit.json_text import Insertion
from warmstart.errors import Refused

_UNIT = "  "


def parse(text: str) -> dict[str, Any]:
    """Return the value of YAML; empty text is an empty mapping. Raises Refused with the reason."""
    try:
        import yaml
    except ModuleNotFoundError:
        raise Refused("pyyaml is needed to change YAML: pip install -e '.[mcp]' in your clone of Warmstart") from None
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise Refused(f"it is not valid YAML{f' (line {mark.line + 1})' if mark else ''}") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Refused("it is not a mapping")
    return value


def put_entry(text: str, section: str, name: str, values: Mapping[str, Any]) -> Insertion:
    """Return the insertion that adds `values` under `name` in `section`, creating a missing section."""
    before = parse(text)
    others = before.get(section)
    if others is not None and not isinstance(others, dict):
        raise Refused(f"{section} is not a mapping")
    if name in (others or {}):
        raise Refused(f"{section}.{name} exists already")
    insertion = _insert(text, before, section, {name: dict(values)})
    try:
        is_right = parse(insertion.apply(text)) == {**before, section: {**(others or {}), name: dict(values)}}
    except Refused:
        is_right = False
    if not is_right:
        raise Refused(f"{section}.{name} cannot be added to it safely")
    return insertion


def _insert(text: str, before: Mapping[str, Any], section: str, entry: Mapping[str, Any]) -> Insertion:
    newline = "\r\n" if "\r\n" in text else "\n"
    flow = re.search(rf"^{re.escape(section)}[ \t]*:[ \t]*\{{(?=[ \t]*(\}})?)", text, re.M)
    if flow:  # {"written": "as JSON"}, which YAML allows
        return Insertion(flow.end(), json.dumps(entry)[1:-1] + ("" if flow.group(1) else ", "))
    header = re.search(rf"^{re.escape(section)}[ \t]*:[ \t]*(?:#[^\n]*)?(\r?\n|\Z)", text, re.M)
    if header is None:
        if section in before:  # a second one of the same name would hide the first
            raise Refused(f"{section} is written in a way that cannot be extended safely")
        gap = "" if not text or text.endswith("\n") else newline
        lines = [f"{section}:", *_write_entry(_UNIT, entry)]
        return Insertion(len(text), gap + "".join(line + newline for line in lines))
    gap = "" if header.group(1) else newline
    lines = _write_entry(_find_indent(text[header.end() :]) or _UNIT, entry)
    return Insertion(header.end(), gap + "".join(line + newline for line in lines))


def _write_entry(indent: str, entry: Mapping[str, Any]) -> list[str]:
    ((name, values),) = entry.items()
    return [f"{indent}{name}:", *(f"{2 * indent}{key}: {json.dumps(value)}" for key, value in values.items())]


def _find_indent(text: str) -> str:
    """Return the indent of the first line that is neither blank nor a comment."""
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            return line[: len(line) - len(line.lstrip(" "))]
    return ""


def remove_entry(text: str, section: str, name: str) -> str:
    """Return the text without the entry, and without a section that this leaves empty."""
    before = parse(text)
    entries = before.get(section)
    if not isinstance(entries, dict) or name not in entries:
        return text
    rest = {key: value for key, value in entries.items() if key != name}
    left = _cut_entry(text, section, name, whole=not rest)
    wanted = {key: value for key, value in before.items() if key != section} | ({section: rest} if rest else {})
    try:
        is_right = parse(left) == wanted
    except Refused:
        is_right = False
    if not is_right:
        raise Refused(f"{section}.{name} is written in a way that cannot be removed safely; remove it by hand")
    return left


def _cut_entry(text: str, section: str, name: str, *, whole: bool) -> str:
    lines = text.splitlines(keepends=True)
    top = next((n for n, line in enumerate(lines) if re.match(rf"{re.escape(section)}[ \t]*:", line)), None)
    if top is None:
        return text
    key = re.compile(rf"[ ]+([\"']?){re.escape(name)}\1[ \t]*:")
    start = next((n for n in range(top + 1, len(lines)) if key.match(lines[n])), None)
    if start is None:
        return text
    depth = _depth(lines[start])
    end = last = start + 1
    while end < len(lines) and (_is_silent(lines[end]) or _depth(lines[end]) > depth):
        end += 1
        if not _is_silent(lines[end - 1]):
            last = end  # comments and blank lines behind it belong to what follows
    return "".join([*lines[: top if whole else start], *(lines[top + 1 : start] if whole else ()), *lines[last:]])


def _is_silent(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
