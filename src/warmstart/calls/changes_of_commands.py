"""Another command line that did what the failed one should: another program, flag, value, quoting or folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from warmstart.calls.changes import FOLDERS, CallChange, changes_things, command_line, is_plain
from warmstart.calls.complaints import (
    NOT_HERE,
    QUOTING,
    REQUIRED,
    Complaint,
    find_options,
    find_program_complaints,
    find_values,
    names_word,
)
from warmstart.calls.shapes import COMMONPLACE, Stage, split_stages
from warmstart.model import PastCall

_FOLDER = re.compile(r"^\s*(?:cd|pushd)\s+(?P<folder>'[^']+'|\"[^\"]+\"|[^\s;&|]+)\s*(?:&&|;)\s*")
_FILTER = re.compile(r"(?:\s*2>&1)?(?:\s*\|\s*(?:tail|head|cat|grep|tee)\b[^|;&]*)*\s*$")
_STRICT = re.compile(
    r"check|dry|diff|verify|strict|fail|exit|deny|warn|frozen|locked|immutable"
)  # flags that look for faults
_MARKS = re.compile(r"[\s'\"\\`]+")
_SPEAKER = re.compile(r"(?:^|[\n;&|(]\s*)([a-z][\w.-]*)")  # the first word of a command
_INNER = re.compile(r"[A-Za-z_]\w+")
_SURPLUS = re.compile(r"unexpected|too many|extra", re.I)
_ALIKE, _NEAR = 0.6, 0.75
_LOOKERS = COMMONPLACE | frozenset("fd ag ack bat eza exa awk less more egrep fgrep fdfind batcat".split())
_DATA = re.compile(r"\d|^[0-9a-f]{7,}$")


def explain_folder(failed: PastCall, worked: PastCall, text: str) -> CallChange | None:
    """Return the change where the same command line worked in another folder."""
    old, new = command_line(failed), command_line(worked)
    if old is None or new is None or not NOT_HERE.search(text):
        return None
    (before, start), (after, end) = _split_folder(failed, old), _split_folder(worked, new)
    if start == end or not end or before.split() != after.split():
        return None
    return CallChange("cwd", start, end, "from another folder", form=True)


def _split_folder(call: PastCall, line: str) -> tuple[str, str]:
    """Return a command line without its `cd`, and the folder that it runs in; "" where the line does not say."""
    folder = _FOLDER.match(line)
    if folder:
        return line[folder.end() :], folder["folder"].strip("'\"").rstrip("/")
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    return line, next((str(arguments[name]).rstrip("/") for name in FOLDERS if arguments.get(name)), "")


def explain_command(old: str, new: str, between: Sequence[PastCall], text: str) -> CallChange | None:
    """Return the change of a command line that its message asks for."""
    if old.split() == new.split() or ("||" in new and "||" not in old):  # which of the alternatives worked is unknown
        return None
    change = _find_change(old, new, text) or _explain_dropped(old, new, between)
    if change is None or _got_further(old, between) or _failed_too(change, between):
        return None
    same_program = change.failed.split()[:1] == change.worked.split()[:1]
    moved = _find_cd(new) not in ("", _find_cd(old))
    return None if change.kind == "program" and same_program and moved else change  # the folder or the name: unclear


def _explain_dropped(old: str, new: str, between: Sequence[PastCall]) -> CallChange | None:
    """Return the change where the same command worked without one flag, and nothing else was changed meanwhile."""
    before, after = _FILTER.sub("", old).split(), _FILTER.sub("", new).split()
    flags = [word for word in before if word.startswith("--") and word not in after]
    if len(flags) != 1 or [word for word in before if word != flags[0]] != after or _STRICT.search(flags[0]):
        return None
    head = next((_find_innermost(stage) for stage in split_stages(old) if flags[0] in stage.words), "")
    if not is_plain(head, flags[0]) or any(map(changes_things, between)):
        return None
    words = f"`{head}` without {flags[0]}"
    return CallChange("option", f"{head} {flags[0]}", head, words, f"`{head}` works without {flags[0]}", form=True)


def _find_innermost(stage: Stage) -> str:
    """Return the head of a command, or of the command that it runs after `--`."""
    if "--" not in stage.words[:-1]:
        return stage.head
    inner = " ".join(stage.words[stage.words.index("--") + 1 :])
    return split_stages(inner)[0].head if split_stages(inner) else stage.head


def _find_change(old: str, new: str, text: str) -> CallChange | None:
    for stage in split_stages(old):
        for other in split_stages(new):
            change = (
                _explain_program(stage, other, text, new)
                or _explain_option(stage, other, _leave_others(old, stage, text))
                or _explain_value(stage, other, text)
            )
            if change:
                return change
    return _explain_quoting(old, new, text)


def _leave_others(line: str, stage: Stage, text: str) -> str:
    """Return a message without the lines that begin with the name of another program of the command line."""
    others = {other.program for other in split_stages(line)} | set(_SPEAKER.findall(line)) - {stage.program}
    return "\n".join(
        part for part in text.splitlines() if part.partition(":")[0].strip() not in others - {stage.program}
    )


def _got_further(old: str, between: Sequence[PastCall]) -> bool:
    """Return whether the same command failed for another reason in between: then it was not the command."""
    bare = _FOLDER.sub("", old).split()
    lines = ((call, command_line(call)) for call in between if call.outcome.counts)
    return any(
        line is not None and _FOLDER.sub("", line).split() == bare and not _repeats_complaint(call, old)
        for call, line in lines
    )


def _failed_too(change: CallChange, between: Sequence[PastCall]) -> bool:
    """Return whether the new form had failed in between for the same kind of reason: then it was not the form."""
    for call in between:
        line = command_line(call) if call.outcome.status == "error" and change.kind == "program" else None
        if line is not None and change.worked in line and find_program_complaints(call.excerpt or ""):
            return any(stage.lead.startswith(change.worked) for stage in split_stages(line))
    return False


def _find_cd(line: str) -> str:
    folder = _FOLDER.match(line)
    return folder["folder"].strip("'\"").rstrip("/") if folder else ""


def _repeats_complaint(call: PastCall, old: str) -> bool:
    text = call.excerpt or ""
    stages = split_stages(old)
    programs = any(_is_about(complaint, stage) for complaint in find_program_complaints(text) for stage in stages)
    return programs or any(find_options(text, stage.words) or find_values(text, stage.words) for stage in stages)


def _explain_program(stage: Stage, other: Stage, text: str, line: str) -> CallChange | None:
    for complaint in find_program_complaints(text):
        if not _is_about(complaint, stage):
            continue
        wrong, right = stage.lead, _find_wrapped(stage, other)
        if right is None and complaint.subject == "command":
            wrong, right = _find_inner(stage, other) or (wrong, None)
        if right is None and _replaces(complaint, stage, other, line):
            wrong, right = _show_pair(stage, other)
        if right is not None and right != wrong:
            lesson = f"`{right}` works here, `{wrong}` fails" if is_plain(right, wrong) else None
            return CallChange("program", wrong, right, f"`{right}` instead of `{wrong}`", lesson, form=True)
    return None


def _show_pair(stage: Stage, other: Stage) -> tuple[str, str]:
    """Return two commands as far as they differ."""
    if stage.head == other.head:
        return stage.program, other.program
    if _joined(other).startswith(_joined(stage)):
        return stage.lead, " ".join(other.lead.split()[: _joined(stage).count("-")])
    return stage.lead, other.lead


def _find_wrapped(stage: Stage, other: Stage) -> str | None:
    """Return the start of a command that runs the whole other one inside: `mise exec -- hk`."""
    wanted = (stage.program, *stage.head.split()[1:], *stage.words[:1])
    size = len(wanted)
    for at in range(1, len(other.words) - size + 1):
        if other.words[at : at + size] == wanted:
            return " ".join((other.lead, *other.words[: at + len(stage.head.split())]))
    return None


def _find_inner(stage: Stage, other: Stage) -> tuple[str, str] | None:
    """Return the starts of a wrapping command and of the one that worked: `rtk bun` and `bun`, or `rtk test bun`."""
    inside = (other.program, *other.head.split()[1:])
    if stage.words[: len(inside)] == inside and _keeps_operands(stage, other, but=len(inside)):
        return f"{stage.lead} {other.lead}", other.lead
    size = min(2, len(stage.words))
    if stage.head == other.head and size and other.words[1 : 1 + size] == stage.words[:size]:
        return f"{stage.lead} {stage.words[0]}", " ".join((other.lead, *other.words[:2]))
    return None


def _is_about(complaint: Complaint, stage: Stage) -> bool:
    """Return whether the missing thing is this command, or a part of its name."""
    word = complaint.word.rpartition("/")[2]
    if complaint.subject == "module":
        return stage.head.split()[-1] == word or _core(stage.head) in ("python", "pytest", "pip")
    names = (*stage.head.split(), *stage.words[:1])
    return complaint.word == stage.program or word in names


def _replaces(complaint: Complaint, stage: Stage, other: Stage, line: str) -> bool:
    """Return whether another command did what the missing one should have done."""
    if stage.program == other.program and stage.head == other.head:
        return False
    same_core = _core(stage.head) == _core(other.head) or _joined(other).startswith(_joined(stage))
    if complaint.subject == "program":
        programs = {_core(word) for word in other.head.split()}
        runs = _core(complaint.word.rpartition("/")[2]) in programs and stage.head.split()[1:] == _after(
            other, complaint
        )
        looks = stage.head in _LOOKERS and other.head in _LOOKERS
        alike = SequenceMatcher(None, stage.program, other.program).ratio() >= _ALIKE
        same_work = (looks or alike) and stage.program != other.program and _shares_most(stage, other)
        return runs or _joined(other).startswith(_joined(stage)) or same_work
    if complaint.subject == "module":
        if stage.head.split()[-1] == complaint.word:
            return same_core
        return same_core and (_shares_most(stage, other) or names_word(line, complaint.word.partition(".")[0]))
    if stage.program != other.program or stage.head == other.head:
        return same_core and stage.program != other.program
    wrong, right = stage.head.split()[-1], other.head.split()[-1]
    similar = SequenceMatcher(None, wrong, right).ratio() >= _ALIKE or bool(_words(wrong) & _words(right))
    return similar or _shares_most(stage, other)


def _after(stage: Stage, complaint: Complaint) -> list[str]:
    """Return the words of a head after the program that was missing."""
    words = stage.head.split()
    core = _core(complaint.word.rpartition("/")[2])
    return words[next(at for at, word in enumerate(words) if _core(word) == core) + 1 :]


def _explain_option(stage: Stage, other: Stage, text: str) -> CallChange | None:
    if stage.head != other.head or not _is_about_same(stage, other):
        return None
    added = [flag for flag in dict.fromkeys(other.flags) if flag not in stage.flags]
    for flag in find_options(text, stage.words):
        if flag not in other.flags:
            wrong, right = f"{stage.head} {flag}", " ".join((stage.head, *added[:2]))
            words = f"`{stage.head}` without {flag}" + (f", with {' '.join(added[:2])}" if added else "")
            lesson = f"`{right}` works here, `{wrong}` fails" if added else f"`{stage.head}` works without {flag}"
            return CallChange("option", wrong, right, words, lesson if is_plain(wrong, right) else None, form=True)
    if not REQUIRED.search(text) or not _keeps_operands(stage, other):
        return None
    asked = (flag for flag in added if names_word(text, flag) or (flag[:2] == "--" and names_word(text, flag[2:])))
    return next((_add_flag(stage.head, flag) for flag in asked), None)


def _add_flag(head: str, flag: str) -> CallChange:
    lesson = f"`{head}` needs {flag}" if is_plain(head, flag) else None
    return CallChange("option", head, f"{head} {flag}", f"`{head}` with {flag}", lesson, form=True)


def _explain_value(stage: Stage, other: Stage, text: str) -> CallChange | None:
    """Return the change where a value that the message quotes was left out of a list or replaced after the same flag."""
    if stage.head != other.head or stage.head in _LOOKERS:
        return None
    if change := _explain_surplus(stage, other, text) or _explain_inner(stage, other, text):
        return change
    for value in find_values(text, stage.words):
        at = next(i for i, word in enumerate(stage.words) if value in word)
        flag = stage.words[at - 1] if at and stage.words[at - 1].startswith("-") else stage.words[at].partition("=")[0]
        if not flag.startswith("-") or flag not in (*other.words, *other.flags) or _DATA.search(value):
            continue
        if any(value in re.split(r"[,\s'\"=]", word) for word in other.words):
            continue
        before = {part for word in stage.words for part in word.strip("'\"").split(",")}
        fresh = [part for part in _value_of(other, flag).split(",") if part and part not in before]
        return _change_value(f"{stage.head} {flag}", value, fresh, is_list="," in stage.words[at])
    return None


def _explain_surplus(stage: Stage, other: Stage, text: str) -> CallChange | None:
    """Return the change where an operand that the message calls too much was left out."""
    old, new = ([word for word in part.words if not word.startswith("-")] for part in (stage, other))
    surplus = [word for word in old if _SURPLUS.search(text) and word in find_values(text, stage.words)]
    if not surplus or not new or len(new) >= len(old) or not set(new) < set(old) or surplus[0] in new:
        return None
    lesson = f"`{stage.head}` takes fewer arguments at a time" if is_plain(stage.head) else None
    return CallChange("value", stage.head, other.head, f"`{stage.head}` with fewer arguments at a time", lesson)


def _explain_inner(stage: Stage, other: Stage, text: str) -> CallChange | None:
    """Return the change of a word inside a quoted text, such as a statement: `orders` instead of `order`."""
    old, new = (_INNER.findall(" ".join(word for word in part.words if " " in word)) for part in (stage, other))
    for value in find_values(text, tuple(dict.fromkeys(old))):
        fresh = [word for word in new if word not in old and SequenceMatcher(None, word, value).ratio() >= _NEAR]
        if value not in new and fresh and not _DATA.search(value):
            return CallChange("value", value, fresh[0], f"{fresh[0]} instead of {value} in `{stage.head}`")
    return None


def _change_value(lead: str, value: str, fresh: list[str], *, is_list: bool) -> CallChange:
    """Return the change of one value after a flag: replaced, or left out of a list."""
    wrong = f"{lead} {value}"
    near = [part for part in fresh if SequenceMatcher(None, part, value).ratio() >= _NEAR]
    instead = near[0] if near else "" if is_list or len(fresh) != 1 else fresh[0]
    if not instead:
        lesson = f"`{lead}` works without {value}" if is_plain(wrong) else None
        return CallChange("value", wrong, lead, f"`{lead}` without {value}", lesson)
    right = f"{lead} {instead}"
    lesson = f"`{right}` works here, `{wrong}` fails" if is_plain(wrong, right) else None
    return CallChange("value", wrong, right, f"`{right}` instead of `{wrong}`", lesson)


def _value_of(stage: Stage, flag: str) -> str:
    for at, word in enumerate(stage.words):
        if word.startswith(f"{flag}="):
            return word.partition("=")[2].strip("'\"")
        if word == flag and at + 1 < len(stage.words):
            return stage.words[at + 1].strip("'\"")
    return ""


def _explain_quoting(old: str, new: str, text: str) -> CallChange | None:
    if not QUOTING.search(text):
        return None
    before, after = _MARKS.sub("", old), _MARKS.sub("", new)
    if before != after:
        return None
    return CallChange("quoting", "", "", "quoted differently", form=True)


def _is_about_same(stage: Stage, other: Stage) -> bool:
    names, others = stage.names, other.names
    return 2 * len(names & others) >= min(len(names), len(others))


def _keeps_operands(stage: Stage, other: Stage, but: int = 0) -> bool:
    """Return whether a command has at least half of another's operands, without the first ones."""
    wanted = [word for word in stage.words[but:] if not word.startswith("-")]
    return 2 * sum(word in other.words for word in wanted) >= len(wanted)


def _shares_most(stage: Stage, other: Stage) -> bool:
    shared = stage.names & other.names
    return bool(shared) and 2 * len(shared) >= min(len(stage.names), len(other.names)) and max(map(len, shared)) > 3


def _core(head: str) -> str:
    """Return the program itself: `pytest` of `uv run pytest` and of `python -m pytest`, `python` of `python3`."""
    return head.split()[-1].rstrip("0123456789.") if head else ""


def _joined(stage: Stage) -> str:
    """Return a head in one word: `docker-compose` and `docker compose` are the same program."""
    return re.sub(r"[\s_-]+", "-", stage.head) + "-"


def _words(name: str) -> set[str]:
    return {part for part in re.split(r"[^a-z0-9]+", name.lower()) if len(part) > 3}
