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
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

import re2

FindingKind = Literal["danger", "encoded", "lookalike", "hidden", "unsearched"]
MOST = 40  # findings of one request
BUDGET = 1.0  # seconds
_LONGEST_SHOWN = 300  # characters of a line or of decoded text
_LONGEST_LINE = 20_000  # characters of a line that are searched for encoded text at a time
_OF_A_KIND = 4  # places of one kind in one text that are listed
_MANY_HIDDEN = 8  # invisible characters in one text that are worth a word


class Finding(NamedTuple):
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
# Letters of other alphabets that look like Latin ones in common fonts.
_LOOKS = str.maketrans(
    "аеорсухіјѕһԁԛԝвкмнтгьпӏӀАВЕКМНОРСТУХІЈЅԌԚԜօսհոցզյլքառւԁՕՍՏԼՈαονρικυτγηχεΑΒΕΖΗΙΚΜΝΟΡΤΥΧᎪᏴᏟᎠᎬᎻᎫᏦᏞᎷᏢᏒᏚᎢᏙᎳᏃ",
    "aeopcyxijshdqwbkmhtrbnlIABEKMHOPCTYXIJSGQWouhngqjlpwnldOUSLNaovpikutynxeABEZHIKMNOPTYXABCDEHJKLMPRSTVWZ",
)
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def find_dangers(details: Any, budget: float = BUDGET) -> list[Finding]:
    """Return what to look at, the most dangerous first. After the budget the rest stays unsearched, and a finding says so."""
    end, findings = time.monotonic() + budget, []
    for where, text in _walk(details):
        findings += _search(where, text)
        if time.monotonic() > end:
            note = "there was not enough time to search all arguments: read them yourself"
            findings.append(Finding("unsearched", where, 1, note, ""))
            break
    order = {"danger": 0, "encoded": 1, "lookalike": 2, "hidden": 3, "unsearched": -1}
    findings.sort(key=lambda finding: order[finding.kind])
    if len(findings) > MOST:
        more = f"{len(findings) - MOST + 1} more places like these"
        findings = [*findings[: MOST - 1], Finding("unsearched", "", 1, more, "")]
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


def _search(where: str, text: str) -> list[Finding]:
    findings = []
    counts: Counter[str] = Counter()
    for number, line in enumerate(text.split("\n"), 1):
        found = [(note, "danger", "") for note in _find_notes(line)]
        for note, kind, shown in [*found, *((note, "encoded", shown) for note, shown in _find_encoded(line))]:
            counts[note] += 1
            if counts[note] <= _OF_A_KIND:  # many harmless lines must not hide another kind
                shown = shown or _shorten(line.strip(), note)
                findings.append(Finding("danger" if kind == "danger" else "encoded", where, number, note, shown))
    for note, count in counts.items():
        if count > _OF_A_KIND:
            findings.append(Finding("danger", where, 1, f"{note}: {count - _OF_A_KIND:,} more lines", ""))
    if not text.isascii():
        findings += _find_lookalikes(where, text)
        hidden = len(_HIDDEN.findall(text))
        if hidden >= _MANY_HIDDEN:
            findings.append(Finding("hidden", where, 1, f"{hidden:,} invisible characters", ""))
    return findings


def _find_notes(line: str) -> list[str]:
    if not line or not _any_danger().search(line.encode("utf-8", "replace")):
        return []
    return [note for note, pattern in _compiled() if pattern.search(line.encode("utf-8", "replace"))]


def _find_encoded(line: str) -> Iterator[tuple[str, str]]:
    """Yield what base64 or hex in a line means, if it is text: an agent may hide a command in it."""
    seen = 0
    for match in _HEX.finditer(line[:_LONGEST_LINE]):
        digits = re.sub(r"\\x|[ :]", "", match.group())
        if plain := _read_text(bytes.fromhex(digits)):
            seen = match.end()
            yield "hexadecimal, decoded", plain
    for match in _ENCODED.finditer(line[:_LONGEST_LINE]):
        if match.start() < seen or match.group().isalpha():
            continue
        if plain := _decode_base64(match.group()):
            yield "base64, decoded", plain


def _decode_base64(run: str, depth: int = 0) -> str:
    body = run.rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        raw = base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
    except (binascii.Error, ValueError):
        return ""
    plain = _read_text(raw)
    inner = _ENCODED.fullmatch(plain) if plain and depth < 3 else None
    return (inner and _decode_base64(inner.group(), depth + 1)) or plain


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


def _find_lookalikes(where: str, text: str) -> Iterator[Finding]:
    """Yield words of another alphabet that read as Latin ones: `сору` in Cyrillic letters looks like `copy`."""
    known: set[str] = set()
    for match in _WORD.finditer(text):
        word = match.group()
        if word.isascii() or word in known:
            continue
        known.add(word)
        looks = unicodedata.normalize("NFKC", word).translate(_LOOKS)
        if looks.isascii():
            line = text.count("\n", 0, match.start()) + 1
            letters = sorted(
                {unicodedata.name(letter, "?").split()[0].title() for letter in word if not letter.isascii()}
            )
            note = f"looks like “{looks}”, but has letters that are not Latin: {', '.join(letters)}"
            yield Finding("lookalike", where, line, note, word)


def _shorten(line: str, note: str) -> str:
    """Return a line, of a long one the part around what was found."""
    if len(line) <= _LONGEST_SHOWN:
        return line
    pattern = dict(_compiled())[note]
    match = pattern.search(line.encode("utf-8", "replace"))
    start = max(0, len(line.encode("utf-8", "replace")[: match.start()].decode("utf-8", "ignore")) - 60) if match else 0
    return ("…" if start else "") + line[start : start + _LONGEST_SHOWN] + "…"


@cache
def _compiled() -> list[tuple[str, Any]]:
    return [(note, re2.compile(pattern)) for note, pattern in _DANGERS]


@cache
def _any_danger() -> Any:
    """One pattern for all, so that most lines are searched once."""
    return re2.compile("|".join(f"(?:{pattern})" for _, pattern in _DANGERS))
