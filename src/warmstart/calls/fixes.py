"""Failed calls that the same session then got right.

A fix keeps the call that worked and one line about the error; the failed call itself is never shown. A test that fails
and then passes after an edit is no fix: only a changed call is one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from msgspec import Struct

from warmstart.calls import tools
from warmstart.calls.shapes import COMMONPLACE, command_of, heads, operands, shape, values_of
from warmstart.excerpt import first
from warmstart.model import ErrorKind, PastCall

REACH = 6  # calls after a failure that may correct it
_LINE = 160

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
_CALL_AT_FAULT = frozenset(
    ("arguments", "environment", "precondition", "permission")
)  # errors of the command line itself
_DATA = frozenset(("id", "digits", "email", "date", "number"))
_LOOKING = frozenset((tools.READ, tools.SEARCH, tools.TERMINAL, tools.WEB_READ, tools.BROWSE))
_CHANGING = frozenset((tools.WRITE, tools.PATCH))
_CHANGES = re.compile(
    r"(?<![\d&])>>?\s*[\w./~]|\bsed -i|apply_patch|\bgit (?:apply|checkout|stash|merge|pull|reset)|\binstall\b"
)

_TAGS = re.compile(r"</?[a-z_]+(?:_[a-z]+)*>|\x1b\[[\d;]*m")
_NOISE = re.compile(
    r"(?i)\W*(?:exit code:? \d*|returncode|\d+|output:?|stdout:?|stderr:?|command:.*|directory:.*|error: \(none\)|traceback.*"
    r"|\(none\)|failed|error|process exited.*|chunk id.*|wall time.*|original token.*|\$ .*|warning:.*|\[\.\.\. .*)\W*$"
)
_PREFIX = re.compile(r"^(?i:(?:failed in sandbox .*?stderr|output|stderr|stdout|error|exit code \d+)\s*:\s*)+(?=.)")
_TELLING = re.compile(
    r"(?i)\b\w*(?:error|exception)\b|not found|no such|denied|not permitted|invalid|fatal|cannot|can't|unknown|must|requir"
    r"|missing|unexpected|unable|does ?n[o']t|not (?:a|allowed|available|been|supported|enough|valid)|already|refus|expected"
)
_PLAIN = re.compile(r"[\w.@:/ -]{1,60}$")


class Fix(Struct, frozen=True):
    """The error that a working call corrects."""

    said: str  # the error, in one line
    pair: str  # the failed shape and the working one; the same pair in another session is the same correction
    weight: float  # how much there is to learn from it
    lesson: str | None = None  # the fix as a rule, made of names and forms only, never of recorded text


def find_fixes(calls: Sequence[PastCall]) -> dict[int, Fix]:
    """Return fixes by the index of the call that worked. Of several failures before it the last counts."""
    fixes: dict[int, Fix] = {}
    for at, failed in enumerate(calls):
        if failed.outcome.status != "error" or not (line := error_line(failed)):
            continue
        later = [(i, calls[i]) for i in range(at + 1, min(at + 1 + REACH, len(calls)))]
        worked = [(i, call) for i, call in later if call.outcome.status == "ok"]
        same_tool_first = sorted(worked, key=lambda pair: (pair[1].tool != failed.tool, pair[0]))
        for index, call in same_tool_first:
            if fix := _compare(failed, call, calls[at + 1 : index], line):
                fixes[index] = fix
                break
    return fixes


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


def _compare(failed: PastCall, worked: PastCall, between: Sequence[PastCall], line: str) -> Fix | None:
    if failed.tool != worked.tool:
        return _compare_tools(failed, worked, line)
    old, new = command_of(failed.tool, failed.arguments), command_of(worked.tool, worked.arguments)
    if old is not None and new is not None:
        return _compare_commands(failed, worked, between, line)
    if isinstance(failed.arguments, dict) and isinstance(worked.arguments, dict):
        return _compare_arguments(failed, worked, between, line)
    return None


def _compare_commands(failed: PastCall, worked: PastCall, between: Sequence[PastCall], line: str) -> Fix | None:
    """Return the fix where another command line did the same thing: quoted, spelled, run or located differently."""
    old = command_of(failed.tool, failed.arguments) or ""
    new = command_of(worked.tool, worked.arguments) or ""
    kind = failed.outcome.error_kind
    if " ".join(old.split()) == " ".join(new.split()) or kind not in _CALL_AT_FAULT:
        return None
    old_heads, new_heads = heads(old), heads(new)
    old_names, new_names = _names(old, old_heads), _names(new, new_heads)
    about_the_same = 2 * len(old_names & new_names) >= max(1, min(len(old_names), len(new_names)))
    if old_heads[0] in new_heads:
        if old_heads[0] in COMMONPLACE:
            about_the_same = bool(old_names) and old_names == new_names
        elif not old_names and not new_names:
            about_the_same = kind == "arguments"
        if kind == "environment" and any(map(_changes, between)):
            return None
        return _fix(failed, worked, line) if about_the_same and "Traceback" not in (failed.excerpt or "") else None
    if _core(old_heads[0]) != _core(new_heads[-1]) or ((old_names or new_names) and not about_the_same):
        return None
    said = f"`{old_heads[0]}` said: {line}"
    works, fails = new_heads[-1], old_heads[0]
    plain = _PLAIN.match(works) and _PLAIN.match(fails)
    return _fix(failed, worked, said, form=True, lesson=f"`{works}` works here, `{fails}` fails" if plain else None)


def _compare_arguments(failed: PastCall, worked: PastCall, between: Sequence[PastCall], line: str) -> Fix | None:
    old, new = values_of(failed.arguments), values_of(worked.arguments)
    if old == new:
        return _find_preparation(failed, worked, between, line)
    changed = sorted(name for name in old.keys() & new.keys() if old[name][1] != new[name][1])
    added, dropped = sorted(new.keys() - old.keys()), sorted(old.keys() - new.keys())
    exact = [name for name in changed if old[name][0] != "text"] or changed
    kept = [name for name in old.keys() & new.keys() if old[name] == new[name] and len(str(old[name][1])) > 3]
    moved = [name for name in exact if not _is_related(str(old[name][1]), str(new[name][1]))]
    if ("file" in " ".join(moved) or "path" in " ".join(moved) or "url" in moved) or (
        not kept and len(moved) == len(exact)
    ):
        return None
    forms = [name for name in changed if old[name][0] != new[name][0]]
    same_form = not (added or dropped or forms) and all(old[name][0].rpartition(" of ")[2] in _DATA for name in changed)
    if same_form and failed.outcome.error_kind in ("precondition", "semantic"):
        return None  # after a miss, a different value of the same form is a new question, not a fix
    if forms:
        name = forms[0]
        how = f"{name} was {_article(old[name][0])}, now {_article(new[name][0])}"
        lesson = f"`{failed.tool}` takes {name} as {_article(new[name][0])}, not as {_article(old[name][0])}"
    elif added or dropped:
        how = "; ".join([f"{n} was missing" for n in added[:2]] + [f"{n} was too much" for n in dropped[:2]])
        lesson = f"`{failed.tool}` needs {added[0]}" if added else f"`{failed.tool}` works without {dropped[0]}"
    else:
        how, lesson = f"{', '.join(changed[:3])} changed", ""
    if failed.outcome.error_kind != "arguments" and not forms:
        lesson = ""
    plain = _PLAIN.match(failed.tool) and all(_PLAIN.match(name) for name in (*forms, *added, *dropped))
    return _fix(
        failed, worked, f"{line} ({how})", form=bool(forms or added or dropped), lesson=lesson if plain else None
    )


def _find_preparation(failed: PastCall, worked: PastCall, between: Sequence[PastCall], line: str) -> Fix | None:
    """Return the fix where the same call works after another call prepared it."""
    if failed.outcome.error_kind != "precondition":
        return None
    old = values_of(failed.arguments)
    for call in between:
        if call.outcome.status == "ok" and call.tool != failed.tool:
            names = {value: name for name, (form, value) in old.items() if "path" in form or form.endswith("id")}
            shared = [names[value] for _form, value in values_of(call.arguments).values() if value in names]
            if shared:
                plain = all(map(_PLAIN.match, (failed.tool, call.tool, shared[0])))
                lesson = f"`{failed.tool}` fails until `{call.tool}` has been called for the same {shared[0]}"
                return _fix(failed, worked, f"{line} ({call.tool} first)", lesson=lesson if plain else None)
    return None


def _compare_tools(failed: PastCall, worked: PastCall, line: str) -> Fix | None:
    """Return the fix where another tool did the same thing: named alike, or for the same purpose and path or id."""
    old, new = tools.base_tool(failed.tool), tools.base_tool(worked.tool)
    said = f"{first(failed.tool, 60)} said: {line}"
    if old is None and new is None:
        a, b = (frozenset(re.split(r"[^a-z0-9]+", tool.lower())) for tool in (failed.tool, worked.tool))
        return _fix(failed, worked, said) if len(a & b) >= 0.75 * min(len(a), len(b)) else None
    if not any({old, new} <= purpose for purpose in (_LOOKING, _CHANGING)):
        return None
    keys = [str(v) for form, v in values_of(failed.arguments).values() if "path" in form or form in ("url", "id")]
    target = command_of(worked.tool, worked.arguments)
    there = [target] if target is not None else [str(v) for _form, v in values_of(worked.arguments).values()]
    if any(len(key) > 5 and key in text for key in keys for text in there):
        return _fix(failed, worked, said)
    return None


def _fix(failed: PastCall, worked: PastCall, said: str, *, form: bool = False, lesson: str | None = None) -> Fix:
    pair = f"{shape(failed.tool, failed.arguments)} => {shape(worked.tool, worked.arguments)}"
    weight = _WEIGHT[failed.outcome.error_kind] + (_FORM if form else 0)
    return Fix(first(said, _LINE + 60), pair, weight, lesson or None)


def _names(line: str, its_heads: Sequence[str]) -> frozenset[str]:
    """Return the last parts of a line's operands, without its programs and flags."""
    programs = {word for head in its_heads for word in head.split()}
    names = {word.replace("\\", "").rpartition("/")[2] for word in operands(line) if word not in programs}
    return frozenset(name for name in names if len(name) > 2 and not name[0].isdigit())


def _core(head: str) -> str:
    """Return the program itself: `pytest` of `uv run pytest` and of `python -m pytest`, `python` of `python3`."""
    return head.split()[-1].rstrip("0123456789.") if head else ""


def _is_related(old: str, new: str) -> bool:
    if "/" in old or "/" in new:
        return old.rstrip("/").rpartition("/")[2] == new.rstrip("/").rpartition("/")[2] or old in (".", "./")
    return old in new or new in old or SequenceMatcher(None, old[:300], new[:300]).quick_ratio() > 0.6


def _changes(call: PastCall) -> bool:
    """Return whether a call changed the environment, so that a later success says nothing about an earlier call."""
    line = command_of(call.tool, call.arguments)
    if line is not None:
        return bool(_CHANGES.search(line))
    return tools.base_tool(call.tool) in _CHANGING


def _article(form: str) -> str:
    if form in ("text", "digits", "nothing", "none", "yes/no") or not form[0].isalpha():
        return form
    return f"{'an' if form[0] in 'aeiou' else 'a'} {form}"
