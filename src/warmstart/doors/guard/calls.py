"""A tool call that an agent is about to make, and the texts in its arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

ANYWHERE = "*"  # in place of an argument's name: any argument


class GuardedCall(Struct, frozen=True):
    """A tool call that an agent is about to make."""

    agent: str
    tool: str
    arguments: Mapping[str, Any]
    session: str = ""
    folder: str = ""


def read_texts(name: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of an argument: `path`, nested `edits.path`, or `*` for all of them. A list of words, such as a
    command that no shell splits, is also one text."""
    values: list[Any] = [arguments] if name == ANYWHERE else list(_look_up(arguments, name))[::-1]
    while values:
        value = values.pop()
        if isinstance(value, str):
            yield value.encode("utf-8", "replace").decode()  # a request with lone surrogates is refused later
        elif isinstance(value, Mapping):
            values.extend(reversed(value.values()) if isinstance(value, dict) else value.values())
            if name == ANYWHERE:
                values.extend(value)
        elif isinstance(value, Sequence):
            values.extend(value[::-1])
            if len(value) > 1 and all(isinstance(word, str) for word in value):
                values.append(" ".join(value))
        else:
            yield msgspec.json.encode(value).decode()


def _look_up(value: Any, name: str) -> Iterator[Any]:
    """Yield the values at a dotted name. Lists are searched item by item; a key may itself contain dots."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == name:
                yield inner
            elif name.startswith(f"{key}."):
                yield from _look_up(inner, name[len(key) + 1 :])
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from _look_up(inner, name)
