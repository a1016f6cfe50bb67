"""Advice at a call: which note concerns it, whether that still holds on disk, and what to do about it.

| action | when |
|---|---|
| `tell` | the default: add the note to the call's result, once per session |
| `correct` | where the user chose it and the fix is exact, verified and only reads (see rewrite) |
| `stop` | where the user chose it and the note is sure: refuse once, with the reason; the second try goes through |

Hooks run this for every call, so it works on plain values and imports next to nothing; `adviser` is the typed side of it.
"""

from __future__ import annotations

import os

from warmstart.notes.marks import (
    Place,
    find_command,
    find_marks,
    is_editor,
    is_reader,
    is_shell,
    split_simple,
    touched_path,
)
from warmstart.notes.withholding import is_withheld, name_fact
from warmstart.notes.wording import STOPPED, make_inert, state_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Protocol

    from warmstart.notes.session_state import SessionMemory

    class Lookup(Protocol):
        """Where notes are found by their mark."""

        roots: list[str]

        def find(self, mark: str) -> list[dict[str, Any]]: ...


SURE = 0.85  # certainty from which a call may be stopped
LIKELY = 0.6  # certainty from which a note is shown: fewer notes at calls that work
_TOLD_ANYWAY = frozenset(("refusal", "slow", "works"))
_NEVER_STOPPED = frozenset(("check", "baseline", "works", "where"))  # a check that fails has done its work
_AFTER = frozenset(("baseline", "large", "slow", "refusal"))  # worth saying after a failure without a fix, too
_CREATORS = frozenset(
    "write write_file create_file write_to_file multiedit edit_file str_replace_editor patch apply_diff".split()
)
_MAKERS = frozenset("mkdir touch tee mktemp truncate".split())
_COPIERS = frozenset("cp mv ln rsync scp install".split())
_MAKING = frozenset("clone init worktree".split())
_OUTPUTS = frozenset("-o -O --output --out --outfile --out-file -out --outdir --out-dir --target -cf -czf -cjf".split())
_GUARDS = ("||", "/dev/null", "command -v")
_PROBES = frozenset("if test [ [[ which type hash".split())
_LARGE = 20_000  # bytes: a smaller file fits into one read
_ORDER = {"stop": 3, "correct": 2, "tell": 1}


def make_place(call: Mapping[str, Any], lookup: Lookup) -> Place:
    """Return where a call runs."""
    return Place(call.get("cwd"), lookup.roots)


def find_matches(
    call: Mapping[str, Any], lookup: Lookup, place: Place, files: set[str] | None
) -> list[tuple[str, dict[str, Any]]]:
    """Return the notes that concern a call, each with the mark by which it does. `files`: read or written so far."""
    agent = call.get("agent")
    matches = {}
    for mark in find_marks(call["tool"], call["arguments"], place, files):
        for note in lookup.find(mark):
            if not (agent and note.get("agent") and note["agent"] != agent):
                matches[note["id"]] = (mark, note)
    return list(matches.values())


def advise_before(
    call: dict[str, Any], lookup: Lookup, levels: Mapping[str, str], state: SessionMemory, *, disk: bool = True
) -> dict[str, Any] | None:
    """Return the advice for a call that is about to be made; None for none. The state remembers what was given."""
    if not state.advises:
        return None
    place = make_place(call, lookup)
    context = call.get("context", "")
    best: dict[str, Any] | None = None
    chosen: dict[str, Any] = {}
    for mark, note in find_matches(call, lookup, place, state.list_files(context)):
        if state.has("wrong", note["id"]):
            continue
        advice = _weigh(note, call, place, levels, disk=disk)
        if advice is None or _was_given(note, state, context):
            continue
        if disk and not holds(mark, note, call, place):
            state.add_wrong(note["id"])
            continue
        if best is None or _rank(advice) > _rank(best):
            best, chosen = advice, note
    if best is None or not state.admits() or is_withheld(chosen, best, call, state):
        return None
    state.add("said", name_fact(chosen), context)
    state.add(_WORDS[best["action"]], best["note"], "" if best["action"] == "stop" else context)
    if call.get("call_id") and best["action"] != "stop":  # which has no result to read both with
        state.add("call", best["note"], call["call_id"])
    return best


_WORDS = {"stop": "stopped", "correct": "told", "tell": "told"}


def _rank(advice: Mapping[str, Any]) -> tuple[int, float, int]:
    return _ORDER[advice["action"]], advice["certainty"], advice["support"]


def _was_given(note: Mapping[str, Any], state: SessionMemory, context: str) -> bool:
    """Return whether a session knows this note, or another one of the same fact: of the project, or of the agent."""
    fact = name_fact(note)
    if state.has("said", fact, context) or state.has("withheld", fact):
        return True
    return state.has("stopped", note["id"]) or state.has("told", note["id"], context)


def measure_certainty(note: Mapping[str, Any]) -> float:
    """Return how sure it is that a call with the note's trigger fails, between 0 and 1."""
    failures, against = note.get("failures", 0), note.get("against", 0)
    return float(failures / (failures + against + 0.5)) if failures else 0.0


def _weigh(
    note: dict[str, Any], call: dict[str, Any], place: Place, levels: Mapping[str, str], *, disk: bool
) -> dict[str, Any] | None:
    kind = note.get("kind", "")
    level = levels.get(kind, levels.get("", "tell"))
    certainty = measure_certainty(note)
    if level == "off" or kind == "where" or _creates(note, call, place):
        return None
    advice: dict[str, Any] = {"note": note["id"], "certainty": certainty, "support": note.get("support", 0)}
    if level == "correct":
        from warmstart.notes.rewrite import correct_call

        least = LIKELY if disk and kind == "path" else SURE
        sure = certainty >= least and advice["support"] >= 2
        arguments = correct_call(note, call, place, disk=disk) if sure else None
        if arguments is not None:
            text = state_note(note, "[warmstart] corrected the call: ")
            return advice | {"action": "correct", "text": text, "arguments": arguments, "fallback": state_note(note)}
    if level == "stop" and _may_stop(note, call, certainty):
        return advice | {"action": "stop", "text": state_note(note, STOPPED, ". The same call again goes through")}
    if certainty >= LIKELY or kind in _TOLD_ANYWAY:
        return advice | {"action": "tell", "text": state_note(note)}
    return None


def _may_stop(note: Mapping[str, Any], call: Mapping[str, Any], certainty: float) -> bool:
    if certainty < SURE or note.get("support", 0) < 2 or note.get("kind") in _NEVER_STOPPED:
        return False
    line = find_command(call["arguments"]) if is_shell(call["tool"]) else None
    return line is None or not _expects_failure(line)


def _expects_failure(line: str) -> bool:
    """Return whether a command line deals with a failure itself: `cat x || true`, `test -f x`."""
    return any(guard in line for guard in _GUARDS) or any(words[0] in _PROBES for words in split_simple(line))


def _creates(note: Mapping[str, Any], call: Mapping[str, Any], place: Place) -> bool:
    """Return whether a call makes the path that a note says is missing."""
    if note.get("kind") != "path":
        return False
    tool, arguments = call["tool"], call["arguments"]
    if not is_shell(tool):
        if tool.lower() in _CREATORS:
            return True
        return isinstance(arguments, dict) and "" in (arguments.get("old_string"), arguments.get("oldString"))
    from warmstart.notes.rewrite import locate

    named = list(locate(note["subject"], dict(call), place))
    return bool(named) and all(_makes(word, words) for word, _folder, _argument, words in named)


def _makes(word: str, words: list[str]) -> bool:
    programs = {part.rpartition("/")[2] for part in words[:3]}
    if programs & _MAKERS or ("git" in programs and _MAKING & set(words[:4])):
        return True
    at = words.index(word)
    return words[at - 1] in _OUTPUTS if not programs & _COPIERS else at == len(words) - 1


# The check on disk


def holds(mark: str, note: Mapping[str, Any], call: dict[str, Any], place: Place) -> bool:
    """Return whether the real disk agrees with a note about a path or a program."""
    kind = note.get("kind")
    if kind == "path":
        return _is_missing(note, call, place)
    if kind == "large":
        return _is_large(call, place)
    if kind == "environment":
        return _is_absent(note["subject"], mark)
    if mark.startswith("fresh:"):
        return _exists(call, place)
    return True


def _is_missing(note: Mapping[str, Any], call: dict[str, Any], place: Place) -> bool:
    from warmstart.notes.rewrite import locate, resolve

    paths = [resolve(word, folder) for word, folder, _argument, _words in locate(note["subject"], call, place)]
    if not paths or any(path is None or os.path.lexists(path) for path in paths):
        return False
    return not note.get("fix") or _has_fix(note["fix"], place)


def _has_fix(fix: str, place: Place) -> bool:
    candidates = [fix] if fix.startswith("/") else [f"{root}/{fix}" for root in place.roots]
    return any(os.path.exists(os.path.expanduser(path) if fix.startswith("~") else path) for path in candidates)


def _find_touched(call: Mapping[str, Any], place: Place) -> str | None:
    from warmstart.notes.rewrite import resolve

    arguments = call["arguments"]
    if not isinstance(arguments, dict):
        return None
    relative = touched_path(call["tool"], arguments, place)
    values = (value for value in arguments.values() if isinstance(value, str) and place.relate(value) == relative)
    return next((resolve(value, place.folder) for value in values), None) if relative else None


def _is_large(call: Mapping[str, Any], place: Place) -> bool:
    path = _find_touched(call, place)
    try:
        return path is not None and os.stat(path).st_size >= _LARGE
    except OSError:
        return False


def _exists(call: Mapping[str, Any], place: Place) -> bool:
    path = _find_touched(call, place)
    return path is not None and os.path.exists(path)


def _is_absent(subject: str, mark: str) -> bool:
    from warmstart.notes.rewrite import has_program

    if subject.isupper():
        return subject not in os.environ
    return mark.partition(":")[2].split(" ")[0] != subject or not has_program(subject)


# After a call


def note_file(call: Mapping[str, Any], lookup: Lookup, state: SessionMemory) -> None:
    """Remember the file that a call has read or written."""
    tool = call["tool"]
    if is_reader(tool) or is_editor(tool):
        path = touched_path(tool, call["arguments"], make_place(call, lookup))
        if path:
            state.add("file", path, call.get("context", ""))


def helps_after(kind: str, fix: str) -> bool:
    """Return whether a note says more after a failure than the failure itself does."""
    return bool(fix) or kind in _AFTER


def advise_after(
    keys: Iterable[str],
    call: Mapping[str, Any],
    lookup: Lookup,
    levels: Mapping[str, str],
    state: SessionMemory,
    *,
    disk: bool = True,
) -> dict[str, Any] | None:
    """Return the advice after a failure with these causes: the fix that worked before, or that it is a known baseline."""
    if not state.advises:
        return None
    place, context = make_place(call, lookup), call.get("context", "")
    for key in keys:
        for note in lookup.find(f"={key}"):
            kind = note.get("kind", "")
            if levels.get(kind, levels.get("", "tell")) == "off" or not helps_after(kind, note.get("fix", "")):
                continue
            if state.has("after", note["id"], context) or state.has("wrong", note["id"]):
                continue
            if state.has("call", note["id"], call.get("call_id") or " "):
                continue  # shown before this call: the agent reads both with its result
            if disk and kind == "path" and not _has_fix(note.get("fix", ""), place):
                state.add_wrong(note["id"])
                continue
            if not state.admits():
                return None
            if is_withheld(note, {"action": "after"}, call, state):
                continue
            state.add("after", note["id"], context)
            known = "; earlier sessions met it too: it may be no fault of this one" if kind == "baseline" else ""
            return {"action": "tell", "text": state_note(note, closing=make_inert(known)), "note": note["id"]}
    return None
