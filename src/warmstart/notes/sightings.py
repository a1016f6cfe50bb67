"""The specific causes in the message of a failed call, each with its subject.

A cause is specific when it names something: a path, a program, an option, a linter rule, a test, or a message of a tool
that stays the same when file names and numbers are masked. Text that is masked altogether names nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from msgspec import Struct

from warmstart.calls.fixes import error_line
from warmstart.insights.errors import mask_message
from warmstart.model import PastCall
from warmstart.notes.marks import Place, is_shell, mask_digits, touched_path
from warmstart.notes.types import NoteKind

_TEXT = 4_000  # characters of a result that are searched
_MISSING = tuple(
    re.compile(pattern, re.M | re.I)
    for pattern in (
        r"(?:^|[\s'\"`(])([^\s:'\"`()]{1,300}): No such file or directory",
        r"\bno such file or directory: ['\"]?([^\s'\"]{1,300})",
        r"\bENOENT\b[^'\"\n]{0,80}['\"]([^'\"\n]{1,300})['\"]",
        r"\b(?:cannot|can't|could not) (?:access|open|stat|read|find)(?: file)? ['\"]([^'\"\n]{1,300})['\"]",
        r"\bpathspec ['\"]([^'\"\n]{1,300})['\"] did not match",
        r"\b(?:path|file|directory|folder) (?:does not exist|not found): ['\"]?([^\s'\"]{1,300})",
        r"\bno matches found: (\S{1,300})",
    )
)
_MISSING_HERE = re.compile(r"(?:^|>)\s*(?:Error: )?(?:File|Path|Directory) (?:does not exist|not found)", re.I)
_FOLDER = re.compile(r"\bEISDIR\b|is a directory\b", re.I)
_PATH = re.compile(r"(?=[\w.~/@+-]*/)[\w.~@+-]*(?:/[\w.@+-]+)+|\.?[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,5}")
_PASSING = re.compile(
    r"/(?:\.git|node_modules|dist|target|build|out|coverage|\.venv|venv|__pycache__|\.next|\.cache)/|^//?(?:tmp|var|private|dev|proc)/|\.lock$|\.pid$|REDACTED"
)
_ABSENT = tuple(
    re.compile(pattern, re.M)
    for pattern in (
        r"command not found: ['\"`]?([\w.@/+-]{1,60})",
        r"(?:^|[\s:])([A-Za-z][\w.@+-]{0,59}): command not found",
        r"^(?:/\S+/)?(?:ba|z|da)?sh: (?:line )?(?:\d+: )?([\w.@+-]{1,60}): not found",
        r"[Cc]ould not (?:locate|find) executable [`'\"]([\w.@+-]{1,60})",
        r"Command [\"'`]([\w.@+-]{1,60})[\"'`] not found",
        r"\bexec: [\"']([\w.@+-]{1,60})[\"']: executable file not found",
        r"\bspawn ([\w.@+-]{1,60}) ENOENT",
        r"No module named ['\"]?([\w.]{1,60})",
        r"Cannot find (?:module|package) ['\"]((?![./])[\w.@/+-]{1,60})['\"]",
    )
)
_UNSET = re.compile(
    r"(?i:\bmissing|\brequired?|not (?:set|configured|defined|found)|\bundefined)\b[^\n]{0,60}?"
    r"\b([A-Z][A-Z0-9]{2,}_[A-Z0-9_]{2,40})\b"
    r"|\b([A-Z][A-Z0-9]{2,}_[A-Z0-9_]{2,40})\b[^\n]{0,40}?(?i:missing|required|not (?:set|configured|defined))"
)
_USAGE = tuple(
    re.compile(pattern, re.M | re.I)
    for pattern in (
        r"\billegal option -- ['\"`]?(\w)",
        r"\b(?:unknown|unrecogni[sz]ed|invalid|illegal|unsupported|unexpected|no such)\s+"
        r"(?:sub-?command|command|option|flag|argument|switch|shorthand flag|task|script|skill|field|parameter|json field)s?"
        r"(?: name)?:?\s+['\"`]?(-{0,2}[A-Za-z][\w:.-]{0,60}|-\w)",
        r"\bunexpected argument ['\"`](-{0,2}[\w:.-]{1,60})['\"`]",
        r"\bscript not found ['\"`]([\w:.-]{1,60})",
        r"\bmissing script:? ['\"`]?([\w:.-]{1,60})",
        r"\bno[tn]e? .{0,40}\bhas an? ['\"`]([\w:.-]{1,60})['\"`] script",
        r"\bno such (?:sub)?command:? ['\"`]?([\w:.-]{1,60})",
        r"['\"`]([\w:.-]{1,60})['\"`] is not an? \w+ (?:command|subcommand)",
        r"\bno task ['\"`]?([\w:.-]{1,60})['\"`]? found",
    )
)
_LARGE = re.compile(r"exceeds? (?:the )?maximum allowed (?:tokens|size)|too large to (?:read|display|open)", re.I)
_SLOW = re.compile(r"\btimed[ -]?out\b|\btimeout (?:of|after|exceeded)|command timeout", re.I)
_FORMAT = re.compile(
    r"formatter would have printed|\bformat ━{3}|would be reformatted|^would reformat |code style issues (?:found )?in"
    r"|^\s*Diff in \S+\.rs|files? (?:is|are) not (?:formatted|gofmt)|run prettier|not properly formatted|needs formatting",
    re.I | re.M,
)
_STATE = re.compile(  # the state of other work, which a call reports: no mistake of the call
    r"\bCONFLICT\b|merge conflict|could not apply \S+\.\.\.|\b(?:pending|skipping|fail|pass|success|cancelled)\s+(?:<|\d)",
    re.I,
)
_TELLING = re.compile(
    r"error|exception|fail|cannot|can't|could not|unable|missing|invalid|denied|refus|unknown|unexpected|no such|not "
    r"|n't |undefined|expected|already|requir|must|illegal|unsupported|abort|fatal|panic|exceed|too |no \w+ (?:found|target)",
    re.I,
)
_EMPTY_WORDS = re.compile(
    r"\b(?:found|errors?|failed|fatal|script|command|exited|with|code|run|task|completed|tests?|in)\b", re.I
)
_PLACEHOLDER = re.compile(r"<(?:text|path|id|n|url|date|secret|email)>|\W+")


class Sighting(Struct, frozen=True):
    """One specific cause of one failed call."""

    kind: NoteKind
    subject: str
    quote: str = ""  # the message, masked; shown only where it is plain

    @property
    def key(self) -> str:
        """The same message is one cause, whether a check or another command shows it."""
        is_message = self.quote and self.quote.casefold() == self.subject
        return f"message:{self.subject}" if is_message else f"{self.kind}:{self.subject}"


def find_sightings(
    call: PastCall, place: Place, *, is_check: bool, marks: Collection[str] | None = None
) -> list[Sighting]:
    """Return the specific causes of a failed call, the most telling first. `marks`: of the call, where they are known."""
    text = (call.excerpt or "")[:_TEXT]
    line = call.outcome.cause or error_line(call)
    own = touched_path(call.tool, call.arguments, place)
    if _LARGE.search(text):
        return [Sighting("large", mask_digits(own))] if own else [Sighting("tool", "too large", mask_message(line))]
    sightings = [*_name_missing(text, own, place, marks)]
    if is_shell(call.tool):
        sightings += _name_absent(text) + _name_usage(text)
    if is_check or call.outcome.findings:
        sightings += _name_findings(call, text)
    if not sightings and not any(pattern.search(text) for pattern in _MISSING):
        sightings = _name_message(call, line, is_check=is_check)
    return list({sighting.key: sighting for sighting in sightings}.values())


def _name_missing(text: str, own: str | None, place: Place, marks: Collection[str] | None) -> list[Sighting]:
    paths = []
    if own and _is_lasting(own) and (_MISSING_HERE.search(text) or _FOLDER.search(text)):
        paths.append(own)
    for pattern in _MISSING:
        for match in pattern.finditer(text):
            path = place.relate(match[1].rstrip(".,;:"))
            if path is not None and _is_lasting(path) and _is_path(path, marks):
                paths.append(path)
    return [Sighting("path", path) for path in dict.fromkeys(paths[:6])]


def _is_path(path: str, marks: Collection[str] | None) -> bool:
    """Return whether a name in a message is a path: the call names it, or it looks like nothing else."""
    if marks is not None and f"path:{path}" in marks:
        return True
    return _PATH.fullmatch(path) is not None


def _is_lasting(path: str) -> bool:
    """Return whether a path can be missing for good: not one that programs make and delete."""
    return path not in (".", "..", "/", "~") and not _PASSING.search(f"/{path}")


def _name_absent(text: str) -> list[Sighting]:
    names = [match[1] for pattern in _ABSENT for match in pattern.finditer(text)]
    names += [match[1] or match[2] for match in _UNSET.finditer(text)]
    return [Sighting("environment", name) for name in dict.fromkeys(names[:4])]


def _name_usage(text: str) -> list[Sighting]:
    found = []
    for pattern in _USAGE:
        if match := pattern.search(text):
            name = match[1]
            found.append(Sighting("command", f"-{name}" if len(name) == 1 else name, mask_message(match[0])))
    return found[:2]


def _name_findings(call: PastCall, text: str) -> list[Sighting]:
    found = []
    for finding in call.outcome.findings:
        sort, _, name = finding.partition(":")
        found.append(Sighting("baseline" if sort == "test" else "check", name))
    if _FORMAT.search(text):
        found.append(Sighting("check", "format"))
    return found


def _name_message(call: PastCall, line: str, *, is_check: bool) -> list[Sighting]:
    masked = mask_message(line)
    if len(_PLACEHOLDER.sub("", _EMPTY_WORDS.sub("", masked))) < 8 or _STATE.search(line):
        return []
    if not _TELLING.search(masked):
        return []
    if _SLOW.search(masked):
        return [Sighting("slow", call.tool, masked)]
    if is_shell(call.tool):
        return [Sighting("baseline" if is_check else "command", masked.casefold(), masked)]
    return [Sighting("tool", masked.casefold(), masked)]
