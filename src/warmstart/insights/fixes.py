"""Find the later call that fixed a failed one, and describe what was different."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from warmstart.calls import tools
from warmstart.calls.fixes import find_fixes
from warmstart.calls.shapes import COMMONPLACE, command_of, heads, kind, operands, shape_line, values_of
from warmstart.excerpt import first
from warmstart.insights.types import How
from warmstart.model import PastCall

SOON = 12  # calls after a failure among which its fix is searched
_NAMES, _SHAPE = 3, 70  # arguments named, characters of a command's shape
_FILE = re.compile(r"\w\.\w{1,8}(?:::.*)?$")


class Ending(Struct, frozen=True):
    """The call that fixed a failure."""

    index: int  # among the session's calls
    how: How
    what: str


def find_ending(calls: Sequence[PastCall], at: int) -> Ending | None:
    """Return the first of the next calls that fixed the failure at `at`, or None.

    Either the same call worked, or a changed one that mining takes for a correction. Failures in between are further tries,
    and calls of the same turn do not count: they were made before the failure was known.
    """
    failed = calls[at]
    later = [i for i in range(at + 1, min(at + 1 + SOON, len(calls))) if _could_end(failed, calls[i])]
    same = next((i for i in later if calls[i].outcome.status == "ok" and _is_same(failed, calls[i])), None)
    fixes = find_fixes((failed, *(calls[i] for i in later)))
    fixed = later[min(fixes) - 1] if fixes else None
    if same is not None and (fixed is None or same <= fixed):
        return Ending(same, "same call", _name_preparation(calls[at + 1 : same]))
    return None if fixed is None else Ending(fixed, *_describe_change(failed, calls[fixed]))


def _could_end(failed: PastCall, call: PastCall) -> bool:
    if call.outcome.status == "error":
        return False
    return failed.turn is None or call.turn is None or call.turn > failed.turn


def _is_same(failed: PastCall, call: PastCall) -> bool:
    if failed.tool != call.tool:
        return False
    old, new = command_of(failed.tool, failed.arguments), command_of(call.tool, call.arguments)
    if old is not None and new is not None:
        return old.split() == new.split() or _is_same_run(old, new)
    return values_of(failed.arguments) == values_of(call.arguments)


def _is_same_run(old: str, new: str) -> bool:
    """Whether two command lines run the same program on the same file."""
    program = heads(old)[-1]
    return program not in COMMONPLACE and program in heads(new) and not _files(old).isdisjoint(_files(new))


def _files(line: str) -> frozenset[str]:
    return frozenset(word.rpartition("/")[2] for word in operands(line) if _FILE.search(word))


def _name_preparation(between: Sequence[PastCall]) -> str:
    """Name what was done before the same call worked: the last change of a file, else the last call that worked."""
    worked = [call for call in between if call.outcome.status == "ok"]
    changes = [call for call in worked if tools.base_tool(call.tool) in (tools.WRITE, tools.PATCH)]
    if not worked:
        return "repeated"
    last = (changes or worked)[-1]
    return f"after {first(kind(last.tool, last.arguments), _SHAPE)}"


def _describe_change(failed: PastCall, worked: PastCall) -> tuple[How, str]:
    if failed.tool != worked.tool:
        return "other tool", first(kind(worked.tool, worked.arguments), _SHAPE)
    old, new = command_of(failed.tool, failed.arguments), command_of(worked.tool, worked.arguments)
    if old is not None and new is not None:
        return "command", _describe_command(old, new)
    return "arguments", _describe_arguments(failed, worked)


def _describe_command(old: str, new: str) -> str:
    before, after = shape_line(old), shape_line(new)
    if before == after:
        return f"other values in `{first(after, _SHAPE)}`"
    return f"`{first(after, _SHAPE)}` instead of `{first(before, _SHAPE)}`"


def _describe_arguments(failed: PastCall, worked: PastCall) -> str:
    """Describe the changed arguments by names and forms only, so the same fix reads the same in every session."""
    old, new = values_of(failed.arguments), values_of(worked.arguments)
    both = sorted(old.keys() & new.keys())
    forms = [f"{name}: {old[name][0]} -> {new[name][0]}" for name in both if old[name][0] != new[name][0]]
    added = [f"with {name}" for name in sorted(new.keys() - old.keys())]
    dropped = [f"without {name}" for name in sorted(old.keys() - new.keys())]
    values = [name for name in both if old[name][0] == new[name][0] and old[name][1] != new[name][1]]
    changes = [*forms, *added, *dropped] or values
    lead = "" if forms or added or dropped else "another value of "
    return lead + ", ".join(first(part, 60) for part in changes[:_NAMES]) + (" ..." if len(changes) > _NAMES else "")
