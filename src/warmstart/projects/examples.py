"""Arguments of calls without the root of the machine they ran on, and written for the root of another session. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from msgspec import structs

from warmstart.model import Arguments, Example, ExampleCall, PastCall, Pick
from warmstart.projects.paths import absolute_path, is_absolute, is_plain, mask_root, relative_path

# Arguments whose tools insist on an absolute path: Claude Code's Read, Edit and Write, Gemini's read_file, OpenCode's read.
_ABSOLUTE = frozenset(("file_path", "filePath", "notebook_path", "absolute_path"))
_DEEPEST = 12  # levels of arguments


def make_relative(arguments: Arguments, root: str | None) -> Arguments:
    """Return the arguments of a call with paths relative to the project's root; commands without `cd ROOT &&`."""
    if root is None:
        return arguments
    if isinstance(arguments, str):
        return mask_root(arguments, root)
    return {name: _shorten(value, root, _DEEPEST) for name, value in arguments.items()}


def make_call_relative(call: PastCall, root: str | None) -> PastCall:
    """Return a stored call that names no folder of the machine it ran on."""
    if root is None:
        return call
    cause = call.outcome.cause
    return structs.replace(
        call,
        arguments=make_relative(call.arguments, root),
        excerpt=mask_root(call.excerpt, root) if call.excerpt else call.excerpt,
        intent=mask_root(call.intent, root),
        asked=mask_root(call.asked, root),
        closing=mask_root(call.closing, root),
        outcome=structs.replace(call.outcome, cause=mask_root(cause, root)) if cause else call.outcome,
    )


def make_local(pick: Pick, root: str | None, others: Collection[str] = ()) -> Pick:
    """Return a pick for a session in this root: tools that need absolute paths get them; commands stay relative.

    `others` are roots of the project elsewhere, which templates of older versions still name.
    """
    if root is None:
        return pick
    example = _move_example(pick.example, root, others)
    return pick if example == pick.example else structs.replace(pick, example=example, tokens=None)


def _move_example(example: Example, root: str, others: Collection[str]) -> Example:
    arguments, result = _move(example.arguments, example.result, root, others)
    calls: list[ExampleCall] = []
    for call in example.calls:
        moved, text = _move(call.arguments, call.result, root, others)
        calls.append(structs.replace(call, arguments=moved, result=text))
    return structs.replace(example, arguments=arguments, result=result, calls=tuple(calls))


def _move(arguments: Arguments, result: str, root: str, others: Collection[str]) -> tuple[Arguments, str]:
    for other in others:
        arguments, result = make_relative(arguments, other), mask_root(result, other)
    if not isinstance(arguments, str):
        arguments = {name: _lengthen(name, value, root) for name, value in arguments.items()}
    return arguments, result


def _shorten(value: Any, root: str, depth: int) -> Any:
    if isinstance(value, str):
        if is_absolute(value) and (path := relative_path(value, root)) is not None:
            return path
        return mask_root(value, root)
    if depth and isinstance(value, list):
        return [_shorten(inner, root, depth - 1) for inner in value]
    if depth and isinstance(value, dict):
        return {name: _shorten(inner, root, depth - 1) for name, inner in value.items()}
    return value


def _lengthen(name: str, value: Any, root: str) -> Any:
    if name not in _ABSOLUTE or not isinstance(value, str) or not is_plain(value) or is_absolute(value):
        return value
    return absolute_path(value, root)
