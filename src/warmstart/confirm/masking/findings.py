"""Find what a person should look at first in the arguments of a request: commands that destroy or hide, encoded text, and
words that look like others.

The agent writes the arguments and may bury one line among thousands. Findings do not decide anything: they stand above the
arguments, which are shown whole. All patterns are RE2, linear in the text.
"""

from __future__ import annotations

import base64
import binascii
import re
import time
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

import re2

from warmstart.confirm.lookalikes import write_latin

FindingKind = Literal["danger", "encoded", "lookalike", "hidden", "unsearched"]
MOST = 40  # findings of one request
BUDGET = 1.0  # seconds
_LONGEST_SHOWN = 300  # characters of a line or of decoded text
_OF_A_KIND = 4  # places of one kind in one text that are listed
_MANY_HIDDEN = 8  # invisible characters in one text that are worth a word


class ArgumentFinding(NamedTuple):
    """Something to look at."""

    kind: FindingKind
    where: str  # the argument: arguments.command
    line: int  # from 1
    note: str  # why, for people
    text: str  # the line, or the decoded text


# Name and pattern of what destroys, hides, escapes or stays. Case matters only where programs care.
_DANGERS: tuple[tuple[str, str], ...] = (
    ("pipes text into a shell or an interpreter",
     r"\|\s*(?:sudo\s+)?(?:\S*/)?(?:env\s+)?(?:(?:ba|z|da|k|fi|c)?sh|python[0-9.]*|perl|ruby|node|php)\b"),
    ("runs text as a command", r"(?:^|[\s;&|(`])(?:eval|source|exec)\s|\b(?:ba|z|da)?sh\s+(?:-\w+\s+)*(?:<\(|-\w*c\b)"),
    ("runs code from the command line", r"\b(?:python[0-9.]*|perl|ruby|node|php)\s+(?:-\w+\s+)*-[ceEr]\b"),
    ("deletes files", r"\brm\s+(?:-\S+\s+)*-\w*[rRf]|\bfind\b.*\s-delete\b|\bshred\s|\bunlink\s"),
    ("overwrites history or work in git",
     r"\bgit\b.*\bpush\b.*(?:\s--force|\s-f\b|\s\+\S)|\bgit\b.*\breset\b.*--hard|\bgit\b.*\bclean\b.*\s-\w*[fdx]"),
    ("writes to a disk or a device", r"\bdd\b.*\bof=|\bmkfs|>\s*/dev/(?:sd|nvme|disk|mem)|\bwipefs\b"),
    ("gets more rights", r"(?:^|[\s;&|(])(?:sudo|doas|su|pkexec|setcap)\s|\bchmod\s.*(?:\+s|777|4755)|\bchown\s"),
    ("sends data elsewhere",
     r"\bcurl\b.*\s(?:-d|-F|-T|--data\S*|--form|--upload-file)\b|\bwget\b.*--post|\b(?:nc|ncat|socat|telnet)\s|/dev/tcp/"
     r"|\b(?:scp|rsync|sftp)\s.*\S+:"),
    ("runs later by itself",
     r"\bcrontab\b|\bsystemctl\b.*\b(?:enable|start|edit)\b|\blaunchctl\b|\bat\s+now\b|authorized_keys|\bnohup\b"
     r"|(?:\.(?:bashrc|zshrc|profile|bash_profile|zshenv|zprofile)|\.git/(?:hooks|config)|\.claude/|\.codex/|guard\.toml)"),
    ("changes how every program runs", r"\b(?:LD_PRELOAD|LD_LIBRARY_PATH|BASH_ENV|PYTHONSTARTUP|PROMPT_COMMAND|PATH)="),
    ("hides what it runs",
     r"\$\{?IFS\b|\$'(?:\\x[0-9a-fA-F]{2}|\\[0-7]{3}|\\u[0-9a-fA-F]{4})|\bbase64\s+(?:-d|-D|--decode)|\bxxd\s+-r"),
    ("destroys data in a database",
     r"(?i)\bdrop\s+(?:table|database|schema)\b|\btruncate\s+(?:table\s+)?\w|\bdelete\s+from\s+\S+\s*(?:;|$)"),
    ("changes what runs for users",
     r"\bkubectl\b.*\b(?:delete|apply|drain|scale)\b|\bterraform\b.*\b(?:apply|destroy)\b|\bhelm\b.*\b(?:install|upgrade|delete|uninstall)\b"
     r"|\bdocker\b.*--privileged|\baws\b.*\b(?:delete|terminate|rm)\b"),
)  # fmt: skip

_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")
_HEX = re.compile(r"(?:\\x)?[0-9a-fA-F]{2}(?:(?:\\x|[ :])?[0-9a-fA-F]{2}){11,}")
_WORD = re.compile(r"[^\W\d_]{2,}(?:[.-][^\W\d_]+)*")
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def find_dangers(details: Any, budget: float = BUDGET) -> list[ArgumentFinding]:
    """Return what to look at, the most dangerous first. After the budget the rest stays unsearched, and a finding says so."""
    end = time.monotonic() + budget
    findings: list[ArgumentFinding] = []
    for where, text in _walk(details):
        findings += _search(where, text, end)
        if time.monotonic() > end:
            note = "there was not enough time to search all arguments: read them yourself"
            findings.append(ArgumentFinding("unsearched", where, 1, note, ""))
            break
    order = {"danger": 0, "encoded": 1, "lookalike": 2, "hidden": 3, "unsearched": -1}
    findings.sort(key=lambda finding: order[finding.kind])
    if len(findings) > MOST:
        more = f"{len(findings) - MOST + 1} more places like these"
        findings = [*findings[: MOST - 1], ArgumentFinding("unsearched", "", 1, more, "")]
    return findings


def _walk(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text of the arguments with its place; keys too, because they can mislead as well."""
    if isinstance(value, str):
        yield where or "details", value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            place = f"{where}.{key[:60]}" if where else key[:60]
            if not key.isascii():
                yield f"the name {place}", key
            yield from _walk(inner, place)
    elif isinstance(value, list):
        for number, inner in enumerate(value, 1):
            yield from _walk(inner, f"{where}[{number}]" if where else f"[{number}]")


def _search(where: str, text: str, end: float) -> Iterator[ArgumentFinding]:
    """Yield the findings of one text. Of each kind only the first few are listed, so that many harmless ones do not hide
    another kind."""
    data = text.encode("utf-8", "replace")
    for note, pattern in _compiled() if _any_danger().search(data) else ():
        yield from _list_dangers(where, data, note, pattern)
    decoded = sorted(_find_encoded(text, end), key=lambda one: _any_danger().search(one.text.encode()) is None)
    for one in decoded[:_OF_A_KIND]:
        yield one._replace(where=where)
    if len(decoded) > _OF_A_KIND:
        yield ArgumentFinding("encoded", where, 1, f"{len(decoded) - _OF_A_KIND:,} more encoded texts", "")
    if not text.isascii():
        yield from _find_lookalikes(where, text)
        hidden = len(_HIDDEN.findall(text))
        if hidden >= _MANY_HIDDEN:
            yield ArgumentFinding("hidden", where, 1, f"{hidden:,} invisible characters", "")


def _list_dangers(where: str, data: bytes, note: str, pattern: Any) -> Iterator[ArgumentFinding]:
    """Yield the first lines with one danger, and whether there are more."""
    known: set[int] = set()
    for match in pattern.finditer(data):
        line = data.count(b"\n", 0, match.end()) + 1
        if line in known:
            continue
        if len(known) == _OF_A_KIND:
            yield ArgumentFinding("danger", where, line, f"{note}: more lines, from this one on", "")
            return
        known.add(line)
        yield ArgumentFinding("danger", where, line, note, _cut_line(data, match.start(), match.end()))


def _cut_line(data: bytes, start: int, end: int) -> str:
    """Return the line around a match, of a long one the part around it."""
    first = data.rfind(b"\n", 0, max(start, end - 1)) + 1
    last = data.find(b"\n", end)
    last = len(data) if last < 0 else last
    begin = max(first, min(start, last) - 60) if last - first > _LONGEST_SHOWN else first
    line = data[begin:last].decode("utf-8", "ignore").strip()
    shown = line if len(line) <= _LONGEST_SHOWN else f"{line[:_LONGEST_SHOWN]}…"
    return f"…{shown}" if begin > first else shown


def _find_encoded(text: str, end: float) -> Iterator[ArgumentFinding]:
    """Yield what base64 or hex means, if it is text: an agent may hide a command in it."""
    seen: set[int] = set()
    for match in _HEX.finditer(text):
        if time.monotonic() > end:
            return
        digits = re.sub(r"\\x|[ :]", "", match.group())
        if plain := _read_text(bytes.fromhex(digits)):
            seen.add(match.start())
            yield ArgumentFinding("encoded", "", text.count("\n", 0, match.start()) + 1, "hexadecimal, decoded", plain)
    for match in _ENCODED.finditer(text):
        if time.monotonic() > end:
            return
        if match.start() not in seen and (plain := _decode_base64(match.group())):
            yield ArgumentFinding("encoded", "", text.count("\n", 0, match.start()) + 1, "base64, decoded", plain)


def _decode_base64(run: str, depth: int = 0) -> str:
    body = run.rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        raw = base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
    except (binascii.Error, ValueError):
        return ""
    inner = _ENCODED.fullmatch(raw.decode("ascii")) if raw.isascii() and depth < 3 else None
    return (inner and _decode_base64(inner.group(), depth + 1)) or _read_text(raw)


def _read_text(raw: bytes) -> str:
    """Return the text that bytes hold, empty if they hold none that a person could read."""
    for encoding in ("utf-16-le", "utf-8"):  # PowerShell's -EncodedCommand is UTF-16
        try:
            text = raw.decode(encoding).strip("\0 \r\n")
        except UnicodeDecodeError:
            continue
        readable = sum(character.isascii() and (character.isprintable() or character.isspace()) for character in text)
        if len(text) >= 8 and readable >= 0.95 * len(text) and any(character in " /;|=-" for character in text):
            return text[:_LONGEST_SHOWN]
    return ""


def _find_lookalikes(where: str, text: str) -> Iterator[ArgumentFinding]:
    """Yield words of another alphabet that read as Latin ones: `сору` in Cyrillic letters looks like `copy`."""
    known: set[str] = set()
    for match in _WORD.finditer(text):
        word = match.group()
        if word.isascii() or word in known:
            continue
        known.add(word)
        looks = write_latin(word)
        if looks.isascii():
            line = text.count("\n", 0, match.start()) + 1
            letters = sorted(
                {unicodedata.name(letter, "?").split()[0].title() for letter in word if not letter.isascii()}
            )
            note = f"looks like “{looks}”, but has letters that are not Latin: {', '.join(letters)}"
            yield ArgumentFinding("lookalike", where, line, note, word)


@cache
def _compiled() -> list[tuple[str, Any]]:
    return [(note, re2.compile(f"(?m){pattern}")) for note, pattern in _DANGERS]


@cache
def _any_danger() -> Any:
    """One pattern for all, so that most lines are searched once."""
    return re2.compile("(?m)" + "|".join(f"(?:{pattern})" for _, pattern in _DANGERS))
