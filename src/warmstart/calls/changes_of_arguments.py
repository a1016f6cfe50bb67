"""Other arguments of the same tool, or another tool, that did what the failed call should."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

from warmstart.calls import tools
from warmstart.calls.changes import CHANGING, LOOKING, CallChange, command_line, find_paths, is_plain
from warmstart.calls.complaints import REQUIRED, SURPLUS, UNMATCHED, find_program_complaints, names_word
from warmstart.calls.shapes import split_stages, values_of
from warmstart.model import PastCall

_DATA = frozenset(("id", "digits", "email", "date", "number"))
_UNFIT = re.compile(r"eisdir|is a directory|too (?:large|long|big)|exceeds|binary|unsupported|not supported", re.I)
_SEVERAL = re.compile(r"(?:multiple|several|found \d+) (?:matches|occurrences)|not unique", re.I)
_NOT_FOUND = re.compile(r"not found|no such|does not exist|doesn't exist|unknown", re.I)
_PLACE = re.compile(r"path|file|dir|folder", re.I)  # names of arguments that hold a path, whatever its form
_SHOWN = 40  # characters of a value
_OLD_TEXT = ("old_string", "old_str", "oldText", "old_text", "search")
_NEW_TEXT = ("new_string", "new_str", "newText", "new_text", "replace")
Values = dict[str, tuple[str, Any]]


def explain_arguments(failed: PastCall, worked: PastCall, between: Sequence[PastCall], text: str) -> CallChange | None:
    """Return the change of an argument that the message names."""
    old, new = values_of(failed.arguments), values_of(worked.arguments)
    changed = [name for name in sorted(old.keys() & new.keys()) if old[name][1] != new[name][1]]
    added, dropped = sorted(new.keys() - old.keys()), sorted(old.keys() - new.keys())
    if not _is_about_same(old, new, changed):
        return None
    plain = is_plain(failed.tool)
    for name in added:
        if REQUIRED.search(text) and names_word(text, name):
            lesson = f"`{failed.tool}` needs {name}" if plain and failed.outcome.error_kind == "arguments" else None
            return CallChange("option", "", name, f"with {name}", lesson if is_plain(name) else None, form=True)
    for name in dropped:
        if SURPLUS.search(text) and names_word(text, name):
            lesson = f"`{failed.tool}` works without {name}" if plain and is_plain(name) else None
            return CallChange("option", name, "", f"without {name}", lesson, form=True)
    if UNMATCHED.search(text) and tools.base_tool(failed.tool) in CHANGING:
        return _explain_text(failed, worked, between, text)
    for name in changed:
        if change := _explain_value(failed.tool, name, old[name], new[name], text):
            return change
    return None


def _is_about_same(old: Values, new: Values, changed: Sequence[str]) -> bool:
    """Return whether two calls of a tool serve one purpose: the same path, and something in common where there is more."""
    if any("path" in old[name][0] or _PLACE.search(name) for name in changed):
        return False
    kept = [name for name in old.keys() & new.keys() if old[name] == new[name]]
    return bool(kept) or len(old) <= 1 or len(changed) <= 1


def _explain_value(tool: str, name: str, old: tuple[str, Any], new: tuple[str, Any], text: str) -> CallChange | None:
    (before, value), (after, other) = old, new
    if not _names_argument(text, name, value):
        return None
    if before != after:
        words = f"{name}: {before} -> {after}"
        lesson = f"`{tool}` takes {name} as {_article(after)}, not as {_article(before)}"
        return CallChange("value", before, after, words, lesson if is_plain(tool, name) else None, form=True)
    if before.rpartition(" of ")[2] in _DATA:
        return None  # a different id is a new question, not a fix
    shown, instead = _show(value), _show(other)
    if shown is None or instead is None:
        return None
    return CallChange("value", shown, instead, f"another value of {name}")


def _names_argument(text: str, name: str, value: Any) -> bool:
    parts = [part for part in re.split(r"[^A-Za-z]+|(?<=[a-z])(?=[A-Z])", name) if len(part) > 3]
    folded = text.casefold()
    if names_word(text, name) or any(names_word(folded, part.casefold()) for part in parts):
        return True
    return isinstance(value, str) and 1 < len(value) < 200 and names_word(text, value)


def _explain_text(failed: PastCall, worked: PastCall, between: Sequence[PastCall], text: str) -> CallChange | None:
    """Return the change where a text that the file does not have, or has twice, was given as the file has it."""
    if find_paths(failed) != find_paths(worked):
        return None
    old, new = values_of(failed.arguments), values_of(worked.arguments)
    name = next((name for name in _OLD_TEXT if name in old and name in new), None)
    into = next((name for name in _NEW_TEXT if name in old and name in new), None)
    if name is None or into is None:
        return None
    if _SEVERAL.search(text):
        return _explain_several(name, old, new)
    if old[name] == new[name]:
        return None
    same_target = _alike(str(old[into][1]), str(new[into][1])) or _alike(str(old[name][1]), str(new[name][1]))
    if not same_target:
        return None
    path = find_paths(failed)[0] if find_paths(failed) else ""
    reread = any(_looks_at(call, path) for call in between if call.outcome.status == "ok")
    words = f"{name} as the file has it" + (", after another look at the file" if reread else "")
    return CallChange("value", name, name, words)


def _explain_several(name: str, old: Values, new: Values) -> CallChange | None:
    """Return the change where a text that occurs several times was replaced everywhere, or made longer."""
    if new.get("replace_all", ("", False))[1] and _alike(str(old[name][1]), str(new[name][1])):
        return CallChange("option", "", "replace_all", "with replace_all", form=True)
    if len(str(new[name][1])) > len(str(old[name][1])) and str(old[name][1]).strip() in str(new[name][1]):
        return CallChange("value", name, name, f"more of the text in {name}")
    return None


def _looks_at(call: PastCall, path: str) -> bool:
    line = command_line(call)
    return path in (line if line is not None else find_paths(call)) if path else False


def explain_tool(failed: PastCall, worked: PastCall, text: str) -> CallChange | None:
    """Return the change where another tool did the same: the message says that this one cannot."""
    unknown = any(complaint.word == failed.tool for complaint in find_program_complaints(text))
    old, new = tools.base_tool(failed.tool), tools.base_tool(worked.tool)
    words = f"{worked.tool} instead of {failed.tool}"
    if not is_plain(failed.tool, worked.tool):
        return None
    if unknown and old is not None and old == new:
        return CallChange("program", failed.tool, worked.tool, words, form=True)
    if old is None and new is None and (unknown or _NOT_FOUND.search(text)):
        a, b = (frozenset(re.split(r"[^a-z0-9]+", tool.lower())) for tool in (failed.tool, worked.tool))
        same = len(a & b) >= 0.75 * min(len(a), len(b))
        return CallChange("program", failed.tool, worked.tool, words, form=True) if same else None
    if old not in LOOKING or not _UNFIT.search(text):
        return None
    paths = [path for path in find_paths(failed) if len(path) > 3]
    line = command_line(worked)
    if line is not None and new == tools.TERMINAL:
        heads = [stage.head for stage in split_stages(line) if any(path in stage.words for path in paths)]
        if heads:
            return CallChange("program", failed.tool, heads[0], f"`{heads[0]}` instead of {failed.tool}", form=True)
    elif new in LOOKING and any(path in find_paths(worked) for path in paths):
        return CallChange("program", failed.tool, worked.tool, words, form=True)
    return None


def _alike(old: str, new: str) -> bool:
    return old in new or new in old or SequenceMatcher(None, old[:300], new[:300]).quick_ratio() > 0.6


def _show(value: Any) -> str | None:
    text = str(value)
    return text if 0 < len(text) <= _SHOWN and "\n" not in text else None


def _article(form: str) -> str:
    if form in ("text", "digits", "nothing", "none", "yes/no") or not form[0].isalpha():
        return form
    return f"{'an' if form[0] in 'aeiou' else 'a'} {form}"
