"""Describe in a sentence why a value does not fit its type: the key, the value, and the allowed values.

msgspec's own messages ("Expected `float` <= 0.9 - at `$.holdout`") name types of the program, not what a person wrote.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import inspect

_AT = re.compile(r" - at (?:the key of )?`\$\.?([^`]*)`$")
_PART = re.compile(r"([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_TYPES = re.compile(r"^Expected `([^`]+)`, got `([^`]+)`$")
_LIMIT = re.compile(r"^Expected `[^`]+` (<=|>=|<|>) (\S+)$")
_FIELD = re.compile(r"^Object (contains unknown|missing required) field `([^`]+)`$")
_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "object": "a table",
    "dict": "a table",
    "array": "a list",
    "null": "nothing",
    "datetime": "a time",
}
_LIMITS = {"<=": "at most", ">=": "at least", "<": "below", ">": "above"}
_LONG = 60  # characters of a value that are shown


def describe_mismatch(message: str, key: str = "the value") -> str:
    """Return msgspec's message in words. `key` names the value where the message names no place in it."""
    place = _AT.search(message)
    core = message[: place.start()] if place else message
    name = f"`{place[1]}`" if place and place[1] else key
    if types := _TYPES.match(core):
        return f"{name} is {_name_types(types[2])}, not {_name_types(types[1])}"
    if limit := _LIMIT.match(core):
        return f"{name} must be {_LIMITS[limit[1]]} {limit[2]}"
    if field := _FIELD.match(core):
        inner = f"`{place[1]}.{field[2]}`" if place and place[1] else f"`{field[2]}`"
        return f"{inner} is not known" if field[1] == "contains unknown" else f"{inner} is missing"
    return f"{name} does not fit: {core[:1].lower()}{core[1:]}"


def _name_types(names: str) -> str:
    return " or ".join(_WORDS.get(name, name) for name in names.split(" | "))


def explain_setting(error: msgspec.ValidationError, data: Any, kind: Any, text: str) -> str:
    """Explain a wrong setting of a TOML file: its line, its key and value, and what is allowed. `text` is the file's."""
    message = str(error)
    place = _AT.search(message)
    core = message[: place.start()] if place else message
    keys, value = _locate(data, place[1] if place else "", kind)
    expected = _find_type(kind, keys)
    if field := _FIELD.match(core):
        keys = (*keys, field[2])
        sentence = f"{_write(keys)} is missing"
        if field[1] == "contains unknown":
            known = [part.name for part in expected.fields] if isinstance(expected, inspect.StructType) else []
            sentence = f"{_write(keys)} is no setting; {_suggest(field[2], known)}"
    else:
        shown = "" if isinstance(value, Mapping | list) else f" = {_shorten(value)}"
        sentence = f"{_write(keys)}{shown}: must be {describe_type(expected)}"
    line = find_line(text, keys) or find_line(text, keys[:-1])
    return f"line {line}: {sentence}" if line else sentence


def describe_type(expected: inspect.Type) -> str:
    """Say which values a type allows."""
    match expected:
        case inspect.UnionType(types=types):
            return " or ".join(describe_type(part) for part in types if not isinstance(part, inspect.NoneType))
        case inspect.LiteralType(values=values):
            return "one of " + ", ".join(f'"{value}"' for value in values)
        case inspect.IntType() | inspect.FloatType():
            noun = "a whole number" if isinstance(expected, inspect.IntType) else "a number"
            return noun + _describe_limits(expected)
        case inspect.StrType(min_length=least):
            return "a text in quotes, not empty" if least else "a text in quotes"
        case inspect.BoolType():
            return "true or false"
        case (
            inspect.ListType(item_type=item, min_length=least) | inspect.VarTupleType(item_type=item, min_length=least)
        ):
            return f"a list{', not empty' if least else ''}, each {describe_type(item)}"
        case inspect.StructType() | inspect.DictType():
            return "a table"
    return "another kind of value"


def _describe_limits(number: inspect.IntType | inspect.FloatType) -> str:
    if number.ge is not None and number.le is not None:
        return f" from {number.ge:g} to {number.le:g}"
    limits = (("of at least", number.ge), ("above", number.gt), ("of at most", number.le), ("below", number.lt))
    words = [f"{word} {value:g}" for word, value in limits if value is not None]
    return " " + " and ".join(words) if words else ""


def _suggest(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"known are: {', '.join(sorted(known))}"


def _locate(data: Any, path: str, kind: Any) -> tuple[tuple[str | int, ...], Any]:
    """Return the keys of a path in msgspec's message, and the value there. It does not name an entry of a table or list."""
    keys: list[str | int] = []
    value = data
    for name, index in _PART.findall(path):
        key: str | int | None = name or (int(index) if index != "..." else None)
        if key is None:
            key = next((k for k in _list_keys(value) if not _fits(_keep_only(data, keys, k), kind)), None)
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            break
        if key is not None:
            keys.append(key)
    return tuple(keys), value


def _list_keys(value: Any) -> Iterator[str | int]:
    yield from value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()


def _keep_only(data: Any, keys: Sequence[str | int], key: str | int) -> Any:
    """Return the data with one entry left in the table or list at `keys`."""
    if not keys:
        return {key: data[key]} if isinstance(data, dict) else [data[key]]
    inner = _keep_only(data[keys[0]], keys[1:], key)
    return [inner] if isinstance(data, list) else {keys[0]: inner}


def _fits(data: Any, kind: Any) -> bool:
    try:
        msgspec.convert(data, kind)
    except msgspec.ValidationError:
        return False
    return True


def _find_type(kind: Any, keys: Sequence[str | int]) -> inspect.Type:
    """Return the type that the value at `keys` must have."""
    found = inspect.type_info(kind)
    for key in keys:
        if isinstance(found, inspect.UnionType):
            found = next((part for part in found.types if isinstance(part, inspect.StructType)), found)
        match found:
            case inspect.StructType(fields=fields):
                found = next((field.type for field in fields if key in (field.name, field.encode_name)), found)
            case inspect.DictType(value_type=inner):
                found = inner
            case inspect.ListType(item_type=inner) | inspect.VarTupleType(item_type=inner):
                found = inner
    return found.type if isinstance(found, inspect.Metadata) else found


def _write(keys: Sequence[str | int]) -> str:
    text = ""
    for key in keys:
        text += f" {key + 1}" if isinstance(key, int) else f".{key}" if text else str(key)
    return text or "the file"


def _shorten(value: Any) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"


def find_line(text: str, keys: Sequence[str | int]) -> int | None:
    """Return the line of a TOML file on which a key is set; None if it is unknown."""
    names = [key for key in keys if isinstance(key, str)]
    if not names:
        return None
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if head := re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line):
            table = _split_key(head[1])
            if table == names:
                return number
        elif (setting := re.match(r"\s*([^=#]+?)\s*=", line)) and [*table, *_split_key(setting[1])] == names:
            return number
    return None


def _split_key(text: str) -> list[str]:
    return [bare or quoted[1:-1] for quoted, bare in re.findall(r"""("[^"]*"|'[^']*')|([^.\s"']+)""", text)]
