"""Failed calls that the same session then got right.

A fix is what was done about the cause: the right path, another value of what the message names, another program, a
precondition. Where the message names no word of the call, no fix is assumed. A check that fails and
passes after an edit is work, not a fix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from warmstart.calls import tools
from warmstart.calls.changes import CallChange, FixKind
from warmstart.calls.changes_of_arguments import explain_arguments, explain_tool
from warmstart.calls.changes_of_commands import explain_command, explain_folder
from warmstart.calls.changes_of_paths import explain_path
from warmstart.calls.checks import runs_check
from warmstart.calls.complaints import NOT_HERE, find_program_complaints
from warmstart.calls.repeats import explain_repeat
from warmstart.calls.shapes import command_of, shape
from warmstart.excerpt import first
from warmstart.model import ErrorKind, PastCall

REACH = 10  # calls after a failure that may fix it
_LINE = 160
CALL_AT_FAULT = frozenset(
    ("arguments", "environment", "permission")
)  # errors of the call itself, not of what it checks
_FORMS = frozenset(
    ("program", "option", "cwd", "quoting")
)  # changes of a command line that do not depend on its result

_WEIGHT: dict[ErrorKind | None, float] = {
    "arguments": 2.0,
    "environment": 1.5,
    "precondition": 1.2,
    "permission": 1.2,
    "other": 0.8,
    "semantic": 0.5,
    None: 0.5,
}
_FORM = 0.8  # extra weight where the form of the call changed and not only a value

_TAGS = re.compile(r"</?[a-z_]+(?:_[a-z]+)*>|\x1b\[[\d;]*m")
_NOISE = re.compile(
    r"(?i)\W*(?:exit code:? \d*|returncode|\d+|output:?|stdout:?|stderr:?|command:.*|directory:.*|error: \(none\)|traceback.*"
    r"|\(none\)|failed|error|process exited.*|chunk.id.*|wall time.*|original token.*|total output lines.*|script \w+|\$ .*"
    r"|warning:.*|\[\.\.\. .*)\W*$"
)
_PREFIX = re.compile(r"^(?i:(?:failed in sandbox .*?stderr|output|stderr|stdout|error|exit code \d+)\s*:\s*)+(?=.)")
_TELLING = re.compile(
    r"(?i)\b\w*(?:error|exception)\b|not found|no such|denied|not permitted|invalid|fatal|cannot|can't|unknown|must|requir"
    r"|missing|unexpected|unable|does ?n[o']t|not (?:a|allowed|available|been|supported|enough|valid)|already|refus|expected"
)


class Fix(Struct, frozen=True):
    """The fix of a failed call."""

    said: str  # the error and what changed, in one line
    pair: str  # the failed shape and the working one; the same pair in another session is the same correction
    weight: float  # how much there is to learn from it
    lesson: str | None = None  # the fix as a rule, made of names and forms only, never of recorded text
    kind: FixKind = "value"
    failed: str = ""  # the part of the call that failed: a path, a flag, a program
    worked: str = ""  # the text there in the call that worked
    words: str = ""  # what changed, by names and forms; the same fix reads the same in every session
    at: int = 0  # index of the failed call


def find_fixes(calls: Sequence[PastCall]) -> dict[int, Fix]:
    """Return fixes by the index of the call that worked. Of several failures before it the last counts."""
    return {index: fix for index, fix in list_fixes(calls) if fix.kind != "retry"}


def list_fixes(calls: Sequence[PastCall]) -> Iterator[tuple[int, Fix]]:
    """Yield the fix of every failure that has one, with the index of the call that worked."""
    for at in range(len(calls)):
        if found := find_fix(calls, at):
            yield found


def find_fix(calls: Sequence[PastCall], at: int) -> tuple[int, Fix] | None:
    """Return the first of the next calls that fixed the failure at `at`, with the fix; None if no fix is recognised.

    Calls of the same turn do not count: they were made before the failure was known.
    """
    failed = calls[at]
    if failed.outcome.status != "error" or tools.base_tool(failed.tool) == tools.PROCESS:
        return None
    line = error_line(failed)
    text = f"{line}\n{failed.excerpt or ''}"
    for index in range(at + 1, min(at + 1 + REACH, len(calls))):
        worked = calls[index]
        ran = ran_check(worked)
        if not line or not (worked.outcome.status == "ok" or ran) or not _comes_later(failed, worked):
            continue
        change = _explain(failed, worked, calls[at + 1 : index], text)
        if change is not None and (not ran or change.kind in _FORMS):
            return index, _make_fix(failed, worked, line, change, at)
    return None


def error_line(failed: PastCall) -> str:
    """Return the line of an error that says most, the cause the judge found before all; "" where there is none."""
    if failed.outcome.cause:
        return first(failed.outcome.cause, _LINE)
    text = failed.excerpt or ""
    lines = [_PREFIX.sub("", line.strip()) for line in _TAGS.sub("\n", text).splitlines()]
    lines = [line for line in lines if len(line) > 3 and not _NOISE.match(line)]
    if "Traceback" in text:  # the exception stands last
        lines = [line for line in lines if re.match(r"[\w.]+(?:Error|Exception|Exit|Warning)\b", line)][-1:] or lines
    best = lines[0] if lines else ""
    if command_of(failed.tool, failed.arguments) is not None:  # a program may print other lines first
        best = next((line for line in lines if _TELLING.search(line)), best)
    return first(" ".join(best.split()), _LINE)


def ran_check(call: PastCall) -> bool:
    """Return whether a check ran and failed by its findings: its command line was right."""
    if call.outcome.status != "error" or call.outcome.error_kind not in ("other", "semantic", None):
        return False
    line, text = command_of(call.tool, call.arguments), f"{error_line(call)}\n{call.excerpt or ''}"
    if line is None or not runs_check(line):
        return False
    return bool(call.outcome.findings) or not (NOT_HERE.search(text) or find_program_complaints(text))


def _comes_later(failed: PastCall, call: PastCall) -> bool:
    return failed.turn is None or call.turn is None or call.turn > failed.turn


def _explain(failed: PastCall, worked: PastCall, between: Sequence[PastCall], text: str) -> CallChange | None:
    """Return what was different, if it is about what the message names."""
    old, new = command_of(failed.tool, failed.arguments), command_of(worked.tool, worked.arguments)
    if old is not None and new is not None and (change := explain_folder(failed, worked, text)):
        return change
    if failed.tool == worked.tool and (repeat := explain_repeat(failed, worked, between, text)):
        return repeat.change
    if change := explain_path(failed, worked, between, text):
        return change
    if failed.tool != worked.tool:
        return explain_tool(failed, worked, text)
    if old is not None and new is not None:
        return explain_command(old, new, between, text)
    if isinstance(failed.arguments, dict) and isinstance(worked.arguments, dict):
        return explain_arguments(failed, worked, between, text)
    return None


def _make_fix(failed: PastCall, worked: PastCall, line: str, change: CallChange, at: int) -> Fix:
    pair = f"{shape(failed.tool, failed.arguments)} => {shape(worked.tool, worked.arguments)}"
    weight = _WEIGHT[failed.outcome.error_kind] + (_FORM if change.form else 0)
    said = first(f"{line} ({change.words})", _LINE + 60)
    return Fix(said, pair, weight, change.lesson, change.kind, change.failed, change.worked, change.words, at)
