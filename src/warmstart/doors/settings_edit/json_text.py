"""Changes to JSON that another program owns, made in its text: what is not ours stays byte for byte as it was.

Putting in only ever inserts, so it can be taken back exactly. Every change is checked against the same change made to
the parsed value. What cannot be kept (comments, two keys of one name) is refused: see `parse`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from warmstart.errors import Refused

Path = Sequence[str | int]  # from the root: names of members and places of items

_decoder = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")
_INDENTED = re.compile(r"\n([ \t]+)\S")
_END = "\0end"  # in a path: the place behind an array's last item


class Insertion(NamedTuple):
    """Text put in at a place."""

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
    """The value of strict JSON; empty text is an empty object. Raises Refused with the reason."""
    if not text.strip(" \t\r\n"):
        return {}
    if text.startswith("\ufeff"):
        raise Refused("it begins with a byte order mark")
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except RecursionError:
        raise Refused("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        what = "it has comments" if text[error.pos : error.pos + 2] in ("//", "/*") else "it is no valid JSON"
        raise Refused(f"{what} (line {error.lineno}, column {error.colno})") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Refused("it has two keys of the same name")
    return found


def _refuse_constant(word: str) -> Any:
    raise Refused(f"it is no valid JSON ({word})")


def write(value: Any) -> str:
    """On one line, to be shown."""
    return json.dumps(value, ensure_ascii=False)


def append(text: str, path: Path, value: Any) -> Insertion:
    """What puts `value` at the end of the array at `path`; the array and what leads to it are made where missing."""
    return put(text, (*path, _END), value)


def put(text: str, path: Path, value: Any) -> Insertion:
    """What makes `value` the member at `path`, where there is none yet; what leads to it is made where missing."""
    before = parse(text)
    if text.strip(" \t\r\n"):
        at, rest = _find_deepest(text, path)
        made = _insert(text, at, rest[0], _wrap(rest[1:], value))
    else:
        made = Insertion(len(text), json.dumps(_wrap(path, value), indent=2, ensure_ascii=False) + "\n")
    if parse(made.apply(text)) != _with(before, path, value):
        raise Refused("it could not be changed safely")
    return made


def _find_deepest(text: str, path: Path) -> tuple[int, Path]:
    """Where the last container on the way starts, and what of the way is missing in it."""
    at = _skip(text, 0)
    for depth, name in enumerate(path):
        if text[at] != ("[" if name == _END or isinstance(name, int) else "{"):
            where = _name(path[:depth]) if depth else "it"
            raise Refused(f"{where} is not of the expected kind")
        child = next((child for child in _children(text, at) if child.name == name), None)
        if child is None:
            return at, path[depth:]
        at = child.value
    raise Refused(f"{_name(path)} is there already")


def _insert(text: str, at: int, name: str | int, value: Any) -> Insertion:
    """Behind the last child of the container at `at`, written as its neighbours are."""
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
    """The text without the member or item at `path`, its comma and its white space."""
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
    """The paths of all values inside that are wanted."""
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
    """The value at a path. Raises KeyError where there is none."""
    for name in path:
        if not isinstance(value, dict | list):
            raise KeyError(name)
        try:
            value = value[name]  # type: ignore[index]
        except (IndexError, TypeError):
            raise KeyError(name) from None
    return value


# Where things stand in the text. It was parsed before, so all of this is known to be there.


def _children(text: str, at: int) -> Iterator[_Child]:
    """The members or items of the container that starts at `at`."""
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
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _line_start(text: str, at: int) -> str | None:
    """The white space before `at` where it is the first on its line."""
    before = text[text.rfind("\n", 0, at) + 1 : at]
    return before if not before.strip() and "\n" in text[:at] else None


def _indent_of_line(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _find_unit(text: str) -> str:
    """How one level is indented."""
    found = _INDENTED.search(text)
    return found.group(1) if found else "  "


def _wrap(path: Path, value: Any) -> Any:
    """The value inside the containers that lead to it."""
    for name in reversed(path):
        value = [value] if name == _END else {name: value}
    return value


def _with(value: Any, path: Path, new: Any) -> Any:
    """A copy of the parsed value with `new` at `path`."""
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
