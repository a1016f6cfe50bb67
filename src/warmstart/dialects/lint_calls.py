"""Rules that all providers share for calls and results: ids, names, arguments, a result for each call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from warmstart.dialects.providers import wants_nine_characters

_NINE = re.compile(r"[a-zA-Z0-9]{9}")


class Finding(Struct, frozen=True):
    """One thing a provider would reject."""

    index: int  # of the message
    rule: str
    message: str


class LintContext(NamedTuple):
    """The request around the messages, as far as it is known."""

    tools: frozenset[str] | None
    thinking: bool
    model: str | None


Findings = Iterator[Finding]
Message = Mapping[str, Any]


def lint_answer(index: int, call: Any, open_calls: dict[str, int], answered: set[str]) -> Findings:
    if not isinstance(call, str) or not call:
        yield Finding(index, "id", "a result needs the id of its call")
    elif call in open_calls:
        del open_calls[call]
        answered.add(call)
    elif call in answered:
        yield Finding(index, "repeated_result", f"call {show(call)} is answered twice")
    else:
        yield Finding(index, "result_without_call", f"no call {show(call)} is waiting for this result")


def report_open(open_calls: dict[str, int], where: str) -> Findings:
    for call, index in open_calls.items():
        yield Finding(index, "unanswered_call", f"call {show(call)} has no result {where}")
    open_calls.clear()


def lint_id(index: int, call: Any, limit: int | None, context: LintContext, used: set[str]) -> Findings:
    if not isinstance(call, str) or not call:
        yield Finding(index, "id", "a call needs an id")
        return
    if call in used:
        yield Finding(index, "repeated_id", f"call id {show(call)} is used twice, which most servers refuse")
    used.add(call)
    if wants_nine_characters(context.model):
        if not _NINE.fullmatch(call):
            yield Finding(index, "id", f"id {show(call)} must be nine letters and digits for Mistral")
    elif limit is not None and len(call) > limit:
        yield Finding(index, "id", f"the id has {len(call)} characters; {limit} are allowed")


def lint_name(index: int, name: Any, pattern: re.Pattern[str]) -> Findings:
    if not isinstance(name, str) or not pattern.fullmatch(name):
        yield Finding(index, "name", f"tool name {show(name)} does not match {pattern.pattern}")


def lint_written(index: int, arguments: Any) -> Findings:
    """Check arguments written as JSON. An empty string passes: it stands for no arguments."""
    if not isinstance(arguments, str):
        yield Finding(index, "arguments", "arguments must be a string of JSON")
    elif arguments:
        try:
            value = msgspec.json.decode(arguments)
        except (msgspec.DecodeError, ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            yield Finding(index, "arguments", "arguments are not a JSON object")


def lint_content(index: int, content: Any, kinds: frozenset[str]) -> Findings:
    """Check that a message has content, as text or as parts the provider knows."""
    if not isinstance(content, str | list | tuple) or not content:
        yield Finding(index, "empty_content", "a message needs content")
    elif not isinstance(content, str):
        for part in content:
            kind = part.get("type") if isinstance(part, Mapping) else None
            if not isinstance(kind, str) or kind not in kinds:
                yield Finding(
                    index, "content", f"a part has the type {show(kind)}; allowed are {', '.join(sorted(kinds))}"
                )


def show(value: Any) -> str:
    """Return a value for a message, short and safe to print."""
    return repr(value[:80]) if isinstance(value, str) else f"a {type(value).__name__}"
