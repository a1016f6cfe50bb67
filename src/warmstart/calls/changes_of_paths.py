"""A path that is missing, and the path that the session used instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warmstart.calls import tools
from warmstart.calls.changes import (
    CallChange,
    changes_things,
    command_line,
    find_paths,
    is_looking,
    is_plain,
)
from warmstart.calls.complaints import find_missing_lines, names_word
from warmstart.calls.near_paths import is_common, is_near, is_same_place, is_variant, shorten_pair
from warmstart.calls.shapes import canonical, split_stages
from warmstart.model import PastCall

_PROBED = 3  # words of a command: with more, one that is missing was a guess


def explain_path(failed: PastCall, worked: PastCall, between: Sequence[PastCall], text: str) -> CallChange | None:
    """Return the change where a missing path was replaced by the right one, for the same purpose."""
    missing = find_missing(failed, text)
    if not missing or not _serves_same(failed, worked) or len(find_paths(failed)) > _PROBED:
        return None
    known = set(find_paths(failed))
    found = [path for path in find_paths(worked) if path not in known and not _is_new(path, between)]
    for wrong in missing:
        searched = _was_searched(wrong, between)
        for right in found:
            if is_same_place(wrong, right):
                if is_common(wrong) and not searched:
                    continue
                if right[0] in "/~" and wrong[0] not in "/~":
                    return CallChange("cwd", wrong, right, "the path from the root", form=True)
                return _change(wrong, right)
            if (
                is_same_place(right, wrong)
                and wrong[0] not in "/~"
                and not is_common(wrong)
                and _runs_same(failed, worked)
            ):
                return CallChange("cwd", wrong, right, "the path from the folder it runs in", form=True)
            if is_near(wrong, right, searched=searched) or _is_offered(wrong, right, between, text):
                return _change(wrong, right)
    return None


def _is_offered(wrong: str, right: str, between: Sequence[PastCall], text: str) -> bool:
    """Return whether the message names the right file, or a listing of the folder was all that came before it."""
    (folder, _, name), (other, _, instead) = wrong.rpartition("/"), right.rpartition("/")
    if not instead or folder != other:
        return False
    if is_variant(name, instead):
        return False
    if any(names_word(line, instead) for line in find_missing_lines(text)):
        return True
    parent = folder.rpartition("/")[2]
    if len(parent) < 3 or is_common(parent) or len(between) != 1 or not is_looking(between[0]):
        return False
    return parent in _text(between[0]) and name.rpartition(".")[2] == instead.rpartition(".")[2] and "." in instead


def find_missing(failed: PastCall, text: str) -> list[str]:
    """Return the paths of a failed call that its message calls missing."""
    lines = find_missing_lines(text)
    if not lines:
        return []
    paths = find_paths(failed)
    named = [path for path in paths if any(_names_path(line, path) for line in lines)]
    if named or command_line(failed) is not None:
        return named
    return paths if len(paths) == 1 else []


def _names_path(line: str, path: str) -> bool:
    return names_word(line, path) or (len(path) > 8 and "/" in path and path in line)


def _change(wrong: str, right: str) -> CallChange:
    short, instead = shorten_pair(wrong, right)
    lesson = f"`{short}` does not exist here, `{instead}` does" if is_plain(short, instead) else None
    return CallChange("path", wrong, right, "another path", lesson)


def _serves_same(failed: PastCall, worked: PastCall) -> bool:
    """Return whether two calls have the same purpose: both look at files, both change them, or both run one program."""
    if is_looking(failed):
        return is_looking(worked) or tools.base_tool(worked.tool) == tools.PATCH
    old, new = command_line(failed), command_line(worked)
    if old is not None and new is not None:
        heads = {stage.head for stage in split_stages(old)}
        return any(stage.head in heads for stage in split_stages(new))
    return failed.tool == worked.tool


def _runs_same(failed: PastCall, worked: PastCall) -> bool:
    old, new = command_line(failed), command_line(worked)
    if old is None or new is None:
        return failed.tool == worked.tool
    return {stage.head for stage in split_stages(old)} == {stage.head for stage in split_stages(new)}


def _is_new(path: str, between: Iterable[PastCall]) -> bool:
    """Return whether a path was created between two calls."""
    name = path.rpartition("/")[2]
    return any(changes_things(call) and name in _text(call) for call in between)


def _was_searched(wrong: str, between: Iterable[PastCall]) -> bool:
    name = wrong.rpartition("/")[2]
    stem = name.rpartition(".")[0] or name
    return len(stem) > 3 and any(is_looking(call) and stem in _text(call) for call in between)


def _text(call: PastCall) -> str:
    return canonical(call.arguments).decode("utf-8", "replace")
