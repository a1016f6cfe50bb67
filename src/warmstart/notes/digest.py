"""One session as counts: the causes it met, how often each mark of its calls worked, and what followed a failure.

Digests of a project's sessions add up (see mine), so a new session costs its own size and not the history's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher

import msgspec
from msgspec import Struct, field

from warmstart.calls.checks import runs_check
from warmstart.calls.fixes import Fix, list_fixes
from warmstart.calls.shell import command_in
from warmstart.insights.gather import InsightCounts
from warmstart.model import PastCall, PastSession
from warmstart.notes.marks import (
    Place,
    find_marks,
    is_editor,
    is_reader,
    is_shell,
    split_commands,
    touched_path,
)
from warmstart.notes.sightings import Sighting, find_sightings
from warmstart.notes.touched import find_edits, find_reads, find_rewrites, keep_most, split_request
from warmstart.notes.types import NoteKind

REACH = 10  # calls after a failure in which its fix is looked for
_TIMES = 20
_WORDS = 120  # characters of a person's words
_ASKING = frozenset(("ExitPlanMode", "AskUserQuestion", "EnterPlanMode", "update_plan"))
BESIDE = frozenset("cd echo printf tail head grep rg wc sed awk cat sort tee sleep true export set".split())
_REMEDIES = frozenset("install i ci build sync add setup bootstrap restore prepare generate".split())
_FORMATTERS = re.compile(r"(?:^|[:_-])(?:fix|fmt|format|write)\b")
_ONLY_FORMATS = re.compile(r"(?:^|[:_-])(?:fmt|format)\b")  # of these, the ones that report no findings but format
_VALUE = frozenset("\n$'\"`{}()<>|;=\\")
_LEFT_OUT = re.compile(r"\s*\[\.\.\. \d+ characters left out \.\.\.\]\s*")
_COMPLAINS = re.compile(r"(?:[a-z]*sh: )?(?:line \d+: )?([\w.@+-]+): ")  # a program's own name before its message
_SCRIPT = re.compile(r"\s*(?:const|let|var|await|text|for|import)\b[^\n]*[({=]")


class Cause(Struct):
    """A specific cause that one session met."""

    kind: NoteKind
    subject: str
    calls: int = 0
    marks: dict[str, int] = field(default_factory=dict)  # marks of the failed calls -> how many
    fixes: dict[str, int] = field(default_factory=dict)  # what worked next -> how often
    forms: dict[str, int] = field(default_factory=dict)  # forms of the failed commands
    quote: str = ""
    files: dict[str, int] = field(default_factory=dict)  # files that the failed calls named


class Runs(Struct):
    """How often a check ran, worked, and how long it took."""

    worked: int = 0
    failed: int = 0
    seconds: list[float] = field(default_factory=list)  # of its runs, where known; the first twenty


class Digest(Struct):
    """The counts that one session adds to a project's notes."""

    session: str  # id of the root session
    agent: str
    at: float | None
    person: str
    key: str = ""  # of the session itself
    started: float | None = None
    calls: int = 0
    causes: dict[str, Cause] = field(default_factory=dict)
    marks: dict[str, tuple[int, int]] = field(default_factory=dict)  # mark -> calls that worked, calls that failed
    runs: dict[str, Runs] = field(default_factory=dict)  # form of a test, lint or build command -> its runs
    folder: str = ""  # these four as in touched.Visit
    words: list[str] = field(default_factory=list)
    edited: dict[str, int] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)


_decoder = msgspec.json.Decoder(Digest)


class DigestedCall(Struct, frozen=True):
    """A call with its marks and, if it failed, its causes."""

    call: PastCall
    marks: list[str]
    sightings: list[Sighting]
    commands: list[list[str]]  # of a shell call
    path: str | None  # that another tool reads or writes


def decode_digest(body: str | None) -> Digest | None:
    """Return a stored digest; None if there is none or it cannot be read."""
    try:
        return _decoder.decode(body) if body else None
    except (msgspec.DecodeError, RecursionError):
        return None


def digest_session(session: PastSession, *, roots: Sequence[str] = (), skip: Collection[str] = ()) -> Digest:
    """Return the counts of a session. `skip`: ids of calls that this fork copied from an earlier session."""
    return digest_both(session, roots=roots, skip=skip)[0]


def digest_both(
    session: PastSession, *, roots: Sequence[str] = (), skip: Collection[str] = ()
) -> tuple[Digest, InsightCounts]:
    """Return the counts of a session for notes, and those for insights, in which calls of forks count again."""
    place = Place(session.folder or session.project, (*roots, *((session.root,) if session.root else ())))
    entries = read_calls(session, place)
    counts = InsightCounts()
    counts.add(session, {at: [one.key for one in entry.sightings] for at, entry in enumerate(entries)})
    return _digest(session, place, [entry for entry in entries if entry.call.call_id not in skip]), counts


def _digest(session: PastSession, place: Place, calls: Sequence[DigestedCall]) -> Digest:
    digest = Digest(
        session=session.parent or session.id,
        agent=session.agent,
        at=session.ended or session.started,
        person=_name_person(session),
        key=session.key,
        started=session.started,
        folder=session.root or session.folder or session.project or "",
        words=split_request(session.task),
    )
    changes = {fix.at: fix for _index, fix in list_fixes(session.calls)}
    digest.calls = len(calls)
    for at, entry in enumerate(calls):
        status = entry.call.outcome.status
        if status == "rejected":
            _count_refusal(digest, entry)
        if status in ("ok", "unknown"):  # scripts of Codex mostly report no exit code
            _count_files(digest, entry, place)
        if status not in ("ok", "error"):
            continue
        _count_run(digest, entry)
        for mark in entry.marks:
            worked, failed = digest.marks.get(mark, (0, 0))
            digest.marks[mark] = (worked + (status == "ok"), failed + (status == "error"))
        for sighting in entry.sightings:
            fix = find_fix(sighting, entry, calls[at + 1 : at + 1 + REACH])
            _count(digest, sighting, entry, fix or _take_over(changes.get(entry.call.ordinal), sighting, place))
    digest.edited, digest.read = keep_most(digest.edited), keep_most(digest.read)
    return digest


def read_calls(session: PastSession, place: Place) -> list[DigestedCall]:
    """Return a session's calls with their marks, and the causes of those that failed."""
    seen: set[str] = set()
    entries = []
    for call in session.calls:
        line = read_command(call)
        arguments = call.arguments if line is None else {"command": line}
        path = touched_path(call.tool, call.arguments, place)
        marks = find_marks(call.tool, arguments, place, seen)
        sightings: list[Sighting] = []
        if call.outcome.status == "error":
            sightings = find_sightings(call, place, is_check=line is not None and runs_check(line), marks=marks)
        elif path and (is_reader(call.tool) or is_editor(call.tool)):
            seen.add(path)
        entries.append(DigestedCall(call, marks, sightings, split_commands(line) if line else [], path))
    return entries


def read_command(call: PastCall) -> str | None:
    """Return the command line of a shell call, also one inside a script of Codex; "" for a script without any."""
    if not is_shell(call.tool):
        return None
    line = _LEFT_OUT.sub("\n", command_in(call.arguments))
    return "" if _SCRIPT.match(line) else line


def _name_person(session: PastSession) -> str:
    if session.scope:
        return session.scope
    parts = (session.folder or session.project or "").split("/")
    return parts[2] if len(parts) > 2 and parts[1] in ("Users", "home") else ""


def _take_over(change: Fix | None, sighting: Sighting, place: Place) -> str:
    """Return the fix that insights find, where it says exactly what to do about this cause."""
    if (
        change is None
        or not change.worked
        or sighting.kind not in ("path", "command", "environment", "baseline", "tool")
    ):
        return ""
    if sighting.kind == "path":
        return (place.relate(change.worked) or "") if change.kind == "path" else ""
    if change.kind == "precondition" and sighting.kind != "tool":
        return f"{change.worked} first" if len(change.worked) <= 60 else ""
    if sighting.kind == "tool":
        return change.worked if change.kind == "precondition" else ""
    return change.worked if change.kind in ("program", "option") and len(change.worked) <= 60 else ""


def _count(digest: Digest, sighting: Sighting, entry: DigestedCall, fix: str) -> None:
    cause = digest.causes.setdefault(sighting.key, Cause(sighting.kind, sighting.subject))
    cause.calls += 1
    cause.quote = cause.quote or sighting.quote
    for mark in entry.marks:
        cause.marks[mark] = cause.marks.get(mark, 0) + 1
    if entry.path:
        cause.files[entry.path] = cause.files.get(entry.path, 0) + 1
    if form := find_form(sighting, entry):
        cause.forms[form] = cause.forms.get(form, 0) + 1
    if fix:
        cause.fixes[fix] = cause.fixes.get(fix, 0) + 1


def _count_refusal(digest: Digest, entry: DigestedCall) -> None:
    """Count a call that a person rejected. Approving a plan by starting anew is recorded as a rejection, but is none."""
    commands = [words for words in entry.commands if words[0] not in BESIDE]
    if len(commands) != 1 or entry.call.tool in _ASKING:
        return  # a line of several commands does not show which one was refused
    form = find_form(Sighting("refusal", ""), entry)
    words = " ".join((entry.call.outcome.words or "").split())[:_WORDS]
    if form:
        _count(digest, Sighting("refusal", form, words), entry, "")


def _count_run(digest: Digest, entry: DigestedCall) -> None:
    """Count the run of a check, by its form. Lines that run several checks say nothing about one of them."""
    checks = [words for words in entry.commands if runs_check(" ".join(words[:8]))]
    if len(checks) != 1:
        return
    runs = digest.runs.setdefault(state_form(checks[0]), Runs())
    runs.worked += entry.call.outcome.status == "ok"
    runs.failed += entry.call.outcome.status == "error"
    began, ended = entry.call.at, entry.call.answered
    if began is not None and ended is not None and ended >= began and len(runs.seconds) < _TIMES:
        runs.seconds.append(round(ended - began, 1))


def _count_files(digest: Digest, entry: DigestedCall, place: Place) -> None:
    """Count the files that a call edited or read."""
    edits = find_edits(entry.call, entry.path, place) or find_rewrites(read_command(entry.call) or "", place)
    for path in edits:
        digest.edited[path] = digest.edited.get(path, 0) + 1
    for path in find_reads(entry.call, entry.path, entry.marks):
        digest.read[path] = digest.read.get(path, 0) + 1


def find_form(sighting: Sighting, entry: DigestedCall) -> str:
    """Return the command that is to blame, as its form: the one that names the subject, else the check that ran last."""
    commands = [words for words in entry.commands if words[0] not in BESIDE] or entry.commands
    blamed = [words for words in commands if sighting.subject in words or words[0].endswith("/" + sighting.subject)]
    checks = [words for words in commands if runs_check(" ".join(words[:8]))]
    speaker = _COMPLAINS.match(entry.call.outcome.cause or "")
    spoke = [words for words in entry.commands if speaker and words[0].rpartition("/")[2] == speaker[1]]
    if sighting.kind in ("check", "baseline"):
        able = [words for words in checks if _only_formats(words) == (sighting.subject == "format")]
        checks = (able or checks)[-1:]  # a failed check ends a line
    else:
        checks = []
    chosen = blamed or spoke or checks or commands
    return state_form(chosen[0], names=3) if chosen else ""


def find_fix(sighting: Sighting, failed: DigestedCall, later: Sequence[DigestedCall]) -> str:
    """Return what was done about the cause and worked; "" where that is unknown."""
    worked = [entry for entry in later if entry.call.outcome.status == "ok"]
    match sighting.kind:
        case "path":
            return _find_path(sighting.subject, failed, worked)
        case "environment" | "command" | "slow":
            return _find_other_form(sighting.subject, failed, worked) or _find_remedy(failed, worked)
        case "check":
            return _find_formatter(failed, worked) if sighting.subject == "format" else ""
        case "tool":
            return _find_precondition(failed, worked)
        case _:
            return ""


def _find_path(missing: str, failed: DigestedCall, worked: Sequence[DigestedCall]) -> str:
    used = {mark for mark in failed.marks if mark.startswith("path:")}
    name = missing.rpartition("/")[2]
    stem = name.rpartition(".")[0] or name
    best, score = "", 0.7
    for entry in worked:
        for mark in entry.marks:
            path = mark[5:]
            if not mark.startswith("path:") or mark in used or path == missing or "*" in path:
                continue
            other = path.rpartition("/")[2]
            likeness = SequenceMatcher(None, missing, path).ratio()
            if other == name:
                likeness += 0.5
            elif (other.rpartition(".")[0] or other) == stem:
                likeness += 0.25
            elif SequenceMatcher(None, name, other).ratio() < 0.75:
                continue
            if likeness > score:
                best, score = path, likeness
    return best


def _find_other_form(subject: str, failed: DigestedCall, worked: Sequence[DigestedCall]) -> str:
    """Return the command that did the same without the subject: `python3 x.py` for `python x.py`."""
    wrong = next((words for words in failed.commands if subject in words), [])
    if not wrong:
        return ""
    rest = wrong[1:] if subject in wrong[1:] and wrong[0] != subject else [word for word in wrong if word != subject]
    for entry in worked[:6]:
        for words in entry.commands:
            if words[0] in BESIDE or (subject in words and words[0] == wrong[0]):
                continue
            shared = sum(word in words for word in rest)
            is_kin = shared > 1 or words[0] == wrong[0] or any(subject in word for word in words)
            if rest and is_kin and shared * 2 >= len(rest) and shared * 3 >= len(words):
                return state_form(words, names=3)
    return ""


def _find_remedy(failed: DigestedCall, worked: Sequence[DigestedCall]) -> str:
    """Return the installation or build after which the same command worked."""
    remedy = ""
    for entry in worked:
        if any(words in entry.commands for words in failed.commands if words[0] not in BESIDE):
            return remedy
        for words in entry.commands:
            if _REMEDIES & set(words[1:4]):
                remedy = f"{state_form(words, names=3)} first"
    return ""


def _find_formatter(failed: DigestedCall, worked: Sequence[DigestedCall]) -> str:
    programs = {words[0] for words in failed.commands} - BESIDE
    for entry in worked:
        for words in entry.commands:
            if words[0] in programs and any(_FORMATTERS.search(word) for word in words[1:6]):
                return state_form(words, names=3)
    return ""


def _only_formats(words: Sequence[str]) -> bool:
    return any(_ONLY_FORMATS.search(word) for word in words[1:6])


def _find_precondition(failed: DigestedCall, worked: Sequence[DigestedCall]) -> str:
    """Return the tool that was called on the same file before the failed tool worked on it."""
    if failed.path is None:
        return ""
    before = ""
    for entry in worked:
        if entry.path == failed.path:
            if entry.call.tool == failed.call.tool:
                return before
            before = entry.call.tool
    return ""


def state_form(words: Sequence[str], names: int = 3) -> str:
    """Return a command as its form: program, subcommands and options, without the values of one occasion."""
    kept: list[str] = []
    for word in words[:8]:
        if word.startswith("-"):
            kept.append(word.partition("=")[0])
        elif len(word) <= 40 and names > 0 and not set(word) & _VALUE:
            kept.append(word)
            names -= 1
        else:
            break
    return " ".join(kept[:5])[:80]
