"""Find what followed a failed call: the call that fixed it, or the later run of a check that passed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from warmstart.calls.checks import runs_check
from warmstart.calls.fixes import CALL_AT_FAULT, REACH, Fix, find_fix
from warmstart.calls.near_paths import shorten_pair
from warmstart.calls.repeats import is_same_call
from warmstart.calls.shapes import COMMONPLACE, command_of, heads, kind, operands
from warmstart.excerpt import first
from warmstart.insights.types import How
from warmstart.model import PastCall
from warmstart.projects.paths import relative_path

SOON = REACH  # calls after a failure among which its fix is searched
_SHOWN = 90  # characters of a call or of one side of an example
_FILE = re.compile(r"\w\.\w{1,8}(?:::.*)?$")


class Ending(Struct, frozen=True):
    """The call that fixed a failure."""

    index: int  # among the session's calls
    how: How
    what: str  # the change in words that are the same in every session
    example: str = ""  # the two paths or values of this session, where `what` does not hold them


def find_ending(calls: Sequence[PastCall], at: int, root: str | None = None) -> Ending | None:
    """Return the call that fixed the failure at `at`, or None. Paths below `root` are shown relative to it."""
    found = find_fix(calls, at)
    if found is None:
        return None
    index, fix = found
    return Ending(index, fix.kind, fix.words, _show_example(fix, root))


def is_failing_check(call: PastCall) -> bool:
    """Return whether a failed call runs a test, a linter, a type checker or a build: then it may have done its work."""
    line = command_of(call.tool, call.arguments)
    return line is not None and call.outcome.error_kind not in CALL_AT_FAULT and runs_check(line)


def has_passed(calls: Sequence[PastCall], at: int) -> bool:
    """Return whether a failing check passed soon after."""
    later = calls[at + 1 : at + 1 + 2 * SOON]
    return any(call.outcome.status == "ok" and _is_same_run(calls[at], call) for call in later)


def describe_next(calls: Sequence[PastCall], at: int) -> str:
    """Describe the call after a failure and how it ended."""
    if at + 1 >= len(calls):
        return "nothing: it was the last call"
    call = calls[at + 1]
    return f"{first(kind(call.tool, call.arguments), _SHOWN)} ({call.outcome.status})"


def _show_example(fix: Fix, root: str | None) -> str:
    if fix.kind not in ("path", "cwd") and not fix.words.startswith("another value"):
        return ""
    wrong, right = fix.failed, fix.worked
    if fix.kind in ("path", "cwd"):
        below = [relative_path(path, root) if path and root else None for path in (wrong, right)]
        if all(below):
            wrong, right = below[0] or "", below[1] or ""
        elif wrong and right:
            wrong, right = shorten_pair(wrong, right)
        else:
            right = right.rstrip("/").rpartition("/")[2]
    return f"{first(wrong, _SHOWN)} -> {first(right, _SHOWN)}" if wrong else first(right, _SHOWN)


def _is_same_run(failed: PastCall, call: PastCall) -> bool:
    """Return whether two calls run the same check: the same command line, or the same program on the same file."""
    if is_same_call(failed, call):
        return True
    old, new = command_of(failed.tool, failed.arguments), command_of(call.tool, call.arguments)
    if old is None or new is None:
        return False
    program = heads(old)[-1]
    same_files = _files(old) == _files(new) or not _files(old).isdisjoint(_files(new))
    return program not in COMMONPLACE and program in heads(new) and same_files


def _files(line: str) -> frozenset[str]:
    return frozenset(word.rpartition("/")[2] for word in operands(line) if _FILE.search(word))
