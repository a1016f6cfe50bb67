"""Edit JSON that another program owns, in its text: everything that is not ours stays byte for byte.

Adding only inserts, so it can be undone exactly. Every change is compared with the same change made to the parsed value.
Text that cannot be kept (comments, duplicate keys) is refused: see `parse`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from warmstart.errors import Refused

Path = Sequence[str | int]  # from the root: names of members and indexes of items

_decoder = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")
_INDENTED = re.compile(r"\n([ \t]+)\S")
_END = "\0end"  # in a path: behind an array's last item


class Insertion(NamedTuple):
    """Text inserted at a place."""

    at: int
    text: str

    def apply(self, text: str) -> str:
        return text[: self.at] + self.text + text[self.at :]


class _Child(NamedTuple):
    """A member of an object or an item of an array, in the text."""

    name: str | int
    start: int  # of its key, or of the value itself
    value: int
    end: int


def parse(text: str) -> Any:
    """Return the value of strict JSON; empty text is an empty object. Raises Refused with the reason."""
    if not text.strip(" \t\r\n"):
        return {}
    if text.startswith("\ufeff"):
        raise Refused("it starts with a byte order mark")
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except RecursionError:
        raise Refused("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        reason = "it has comments" if text[error.pos : error.pos + 2] in ("//", "/*") else "it is not valid JSON"
        raise Refused(f"{reason} (line {error.lineno}, column {error.colno})") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise Refused("it has two keys of the same name")
    return members


def _refuse_constant(word: str) -> Any:
    raise Refused(f"it is not valid JSON ({word})")


def put_entry(text: str, section: str, name: str, values: Mapping[str, Any]) -> Insertion:
    """Return the insertion that adds an object to the object `section`."""
    return put(text, (section, name), dict(values))


def remove_entry(text: str, section: str, name: str) -> str:
    """Return the text without the member `name` of the object `section`."""
    value = parse(text)
    members = value.get(section) if isinstance(value, dict) else None
    return remove(text, (section, name)) if isinstance(members, dict) and name in members else text


def append(text: str, path: Path, value: Any) -> Insertion:
    """Return the insertion that appends to the array at `path`, creating missing containers."""
    return put(text, (*path, _END), value)


def put(text: str, path: Path, value: Any) -> Insertion:
    """Return the insertion that adds a member at `path`, creating missing containers."""
    before = parse(text)
    if text.strip(" \t\r\n"):
        at, rest = _find_deepest(text, path)
        insertion = _insert(text, at, rest[0], _wrap(rest[1:], value))
    else:
        insertion = Insertion(len(text), json.dumps(_wrap(path, value), indent=2, ensure_ascii=False) + "\n")
    if parse(insertion.apply(text)) != _with(before, path, value):
        raise Refused("it cannot be changed safely")
    return insertion


def _find_deepest(text: str, path: Path) -> tuple[int, Path]:
    """Return where the deepest existing container on the path starts, and the rest of the path."""
    at = _skip(text, 0)
    for depth, name in enumerate(path):
        if text[at] != ("[" if name == _END or isinstance(name, int) else "{"):
            where = _name(path[:depth]) if depth else "it"
            raise Refused(f"{where} is not of the expected kind")
        child = next((child for child in _children(text, at) if child.name == name), None)
        if child is None:
            return at, path[depth:]
        at = child.value
    raise Refused(f"{_name(path)} exists already")


def _insert(text: str, at: int, name: str | int, value: Any) -> Insertion:
    """Insert behind the last child of the container at `at`, formatted like its neighbours."""
    children = list(_children(text, at))
    behind = children[-1].end if children else at + 1
    newline = "\r\n" if "\r\n" in text else "\n"
    unit = _find_unit(text)
    closing, indent = "", None
    if children:
        indent = _line_start(text, children[-1].start)
    elif "\n" in text:
        outer = _indent_of_line(text, at)
        indent = outer + unit
        gap = text[at + 1 : _skip(text, at + 1)]
        closing = "" if "\n" in gap else newline + outer
    key = "" if name == _END else json.dumps(name, ensure_ascii=False) + ": "
    comma = "," if children else ""
    if indent is None:
        return Insertion(behind, f"{comma}{' ' if children else ''}{key}{json.dumps(value, ensure_ascii=False)}")
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    written = (newline + indent).join([key + lines[0], *lines[1:]])
    return Insertion(behind, f"{comma}{newline}{indent}{written}{closing}")


def remove(text: str, path: Path) -> str:
    """Return the text without the member or item at `path`, its comma and its white space."""
    at = _skip(text, 0)
    for name in path[:-1]:
        at = next(child.value for child in _children(text, at) if child.name == name)
    children = list(_children(text, at))
    place = next(n for n, child in enumerate(children) if child.name == path[-1])
    child = children[place]
    if len(children) == 1:
        closing = _skip(text, child.end)
        return text[: at + 1] + text[closing:]
    if place == len(children) - 1:
        return text[: children[place - 1].end] + text[child.end :]
    return text[: child.start] + text[children[place + 1].start :]


def find(value: Any, is_wanted: Callable[[Any], bool], path: Path = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of all wanted values."""
    if is_wanted(value):
        yield tuple(path)
        return
    inside: Iterator[tuple[str | int, Any]] | Sequence[Any] = ()
    if isinstance(value, dict):
        inside = iter(value.items())
    elif isinstance(value, list):
        inside = enumerate(value)
    for name, child in inside:
        yield from find(child, is_wanted, (*path, name))


def look_up(value: Any, path: Path) -> Any:
    """Return the value at a path. Raises KeyError if there is none."""
    for name in path:
        if not isinstance(value, dict | list):
            raise KeyError(name)
        try:
            value = value[name]  # type: ignore[index]
        except (IndexError, TypeError):
            raise KeyError(name) from None
    return value


# Places in the text. It was parsed before, so its structure is known to be right.


def _children(text: str, at: int) -> Iterator[_Child]:
    """Yield the members or items of the container that starts at `at`."""
    closing = "}" if text[at] == "{" else "]"
    start, place = _skip(text, at + 1), 0
    while text[start] != closing:
        name: str | int = place
        value = start
        if closing == "}":
            name, end = _decoder.raw_decode(text, start)
            value = _skip(text, _skip(text, end) + 1)
        _value, end = _decoder.raw_decode(text, value)
        yield _Child(name, start, value, end)
        start, place = _skip(text, end), place + 1
        if text[start] == ",":
            start = _skip(text, start + 1)


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _line_start(text: str, at: int) -> str | None:
    """Return the white space before `at` if nothing else is before it on its line."""
    before = text[text.rfind("\n", 0, at) + 1 : at]
    return before if not before.strip() and "\n" in text[:at] else None


def _indent_of_line(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _find_unit(text: str) -> str:
    """Return the white space that indents one level."""
    indented = _INDENTED.search(text)
    return indented[1] if indented else "  "


def _wrap(path: Path, value: Any) -> Any:
    """Return the value inside the containers that lead to it."""
    for name in reversed(path):
        value = [value] if name == _END else {name: value}
    return value


def _with(value: Any, path: Path, new: Any) -> Any:
    """Return a copy of the parsed value with `new` at `path`."""
    if not path:
        return new
    name, rest = path[0], path[1:]
    if name == _END:
        return [*value, new] if value is not None else [new]
    inside = value[name] if isinstance(value, list) or name in (value or {}) else None
    if isinstance(value, list):
        assert isinstance(name, int)
        return [*value[:name], _with(inside, rest, new), *value[name + 1 :]]
    return {**(value or {}), name: _with(inside, rest, new)}


def _name(path: Path) -> str:
    return ".".join(str(part) for part in path if part != _END) or "it"
