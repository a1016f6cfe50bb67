"""The same call again: it worked after a precondition was met, or by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from warmstart.calls import tools
from warmstart.calls.changes import CHANGING, FOLDERS, CallChange, changes_things, command_line, find_paths, is_plain
from warmstart.calls.checks import runs_check
from warmstart.calls.complaints import NOT_HERE, UNREAD, names_word
from warmstart.calls.shapes import Stage, split_stages, values_of
from warmstart.model import PastCall

_FILTERED = re.compile(r"(?:\s*2>&1)?(?:\s*\|\s*(?:tail|head|cat|grep|tee)\b[^|;&]*)*\s*$")
_POLLS = re.compile(
    r"\b(?:checks?|status|watch|wait|logs?|poll|ps|view|list)\b"
)  # asks for a state that changes by itself
_INSTALLS = re.compile(r"\b(?:install|i|ci|add|sync|restore|bootstrap)\b")


class Repeat(NamedTuple):
    """A call that was made again. Without a change its fix is unknown."""

    change: CallChange | None


def explain_repeat(failed: PastCall, worked: PastCall, between: Sequence[PastCall], text: str) -> Repeat | None:
    """Return how the same call came to work; None if it is not the same call."""
    if change := _find_reading(failed, worked, between, text):
        return Repeat(change)
    if not is_same_call(failed, worked):
        return None
    if change := _find_preparation(failed, between, text):
        return Repeat(change)
    line = command_line(failed)
    if line is not None and (runs_check(line) or _POLLS.search(line)):
        return Repeat(None)
    if any(map(changes_things, between)) or _find_folder(failed) != _find_folder(worked):
        return Repeat(None)
    return Repeat(CallChange("retry", "", "", "the same call again"))


def _find_folder(call: PastCall) -> str:
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    return next((str(arguments[name]) for name in FOLDERS if arguments.get(name)), "")


def is_same_call(failed: PastCall, call: PastCall) -> bool:
    """Return whether two calls ask for the same, whatever filters their output."""
    if failed.tool != call.tool:
        return False
    old, new = command_line(failed), command_line(call)
    if old is not None and new is not None:
        return _FILTERED.sub("", old).split() == _FILTERED.sub("", new).split()
    return values_of(failed.arguments) == values_of(call.arguments)


def _find_reading(failed: PastCall, worked: PastCall, between: Sequence[PastCall], text: str) -> CallChange | None:
    """Return the change where a file had to be read first: the reading, then the same tool on the same file."""
    if not UNREAD.search(text) or tools.base_tool(failed.tool) not in CHANGING:
        return None
    for path in find_paths(failed):
        if path not in find_paths(worked):
            continue
        for call in between:
            if call.outcome.status == "ok" and tools.base_tool(call.tool) == tools.READ and path in find_paths(call):
                return _prepare(
                    failed, call, next(n for n, (_f, v) in values_of(failed.arguments).items() if v == path)
                )
    return None


def _find_preparation(failed: PastCall, between: Sequence[PastCall], text: str) -> CallChange | None:
    """Return the change where another call met what the message asks for."""
    own = command_line(failed)
    if any(tools.base_tool(call.tool) in CHANGING for call in between):
        return None  # the work went on
    for call in reversed(between):
        if call.outcome.status != "ok" or not (changes_things(call) or tools.base_tool(call.tool) == tools.READ):
            continue
        line = command_line(call)
        if line is None:
            shared = _find_shared(failed, call)
            if (
                shared
                and call.tool != failed.tool
                and failed.outcome.error_kind == "precondition"
                and UNREAD.search(text)
            ):
                return _prepare(failed, call, shared)
            continue
        for stage in split_stages(line):
            asked = _find_asked(stage, own, text)
            if asked and is_plain(asked):
                return CallChange("precondition", "", asked, f"after `{asked}`")
    return None


def _find_asked(stage: Stage, own: str | None, text: str) -> str | None:
    """Return a command that a message asks for: an installation, or a subcommand of the same program that it names."""
    if _INSTALLS.search(stage.head) and NOT_HERE.search(text):
        packages = [word.strip("'\"") for word in stage.words if not word.startswith("-")]
        named = next((word for word in packages if len(word) > 2 and re.split(r"[=<>@\[]", word)[0] in text), None)
        return f"{stage.head} {named}" if named else None if packages else stage.head
    if own is None or runs_check(own):
        return None
    same_program = any(stage.program == other.program for other in split_stages(own))
    asked = same_program and any(len(word) > 3 and names_word(text, word) for word in stage.head.split()[1:])
    return stage.head if asked else None


def _find_shared(failed: PastCall, call: PastCall) -> str | None:
    """Return the argument whose path or id another call has too."""
    old = values_of(failed.arguments)
    names = {str(value): name for name, (form, value) in old.items() if "path" in form or form.endswith("id")}
    return next((names[str(v)] for _form, v in values_of(call.arguments).values() if str(v) in names), None)


def _prepare(failed: PastCall, call: PastCall, name: str) -> CallChange:
    lesson = f"`{failed.tool}` fails until `{call.tool}` has been called for the same {name}"
    plain = is_plain(failed.tool, call.tool, name)
    return CallChange("precondition", failed.tool, call.tool, f"{call.tool} first", lesson if plain else None)
