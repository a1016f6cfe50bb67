"""Read the message of a failed call: the kind of complaint, and the word of the call that it names.

A complaint counts only if the call itself holds the word: a test that prints "No such file" does not complain about the
path of the test. Where a message names no word of the call, the cause is unknown.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

Subject = Literal["path", "option", "value", "program", "module", "command"]

MISSING = re.compile(
    r"no such (?:file|path|dir|folder)|(?:does not|doesn't) exist|(?:file|path|directory|folder) (?:was )?not found"
    r"|(?:cannot|can't|could not|couldn't|unable to) (?:find|open|access|stat|read|locate|load)\b|enoent|did not match any"
    r"|not found: |is not a (?:file|directory)|not a directory|cannot find the (?:file|path)|no files? (?:matched|found)",
    re.I,
)
_REFUSED = re.compile(
    r"unknown|unrecogni[sz]ed|invalid|illegal|unexpected|no such|bad |not (?:a |an )?(?:recogni[sz]ed|defined|supported|valid"
    r"|allowed|permitted|found|available|exist)|ambiguous|cannot be used|conflict|mutually exclusive|incompatible|deprecated"
    r"|unsupported|could not (?:find|resolve|parse)|must be|can't (?:find|be)|doesn't (?:exist|support)"
    r"|does not (?:exist|support)|syntax error|wrong|expected|malformed|no .{0,40}found",
    re.I,
)
REQUIRED = re.compile(
    r"requir|missing|must (?:be (?:given|provided|set|specified)|provide|specify|have|include|supply)|needs?\b"
    r"|not (?:provided|set|specified)|please (?:use|provide|specify|set|pass)|try |use |is false|to (?:replace all|allow)",
    re.I,
)
SURPLUS = re.compile(
    r"unexpected|unknown|not allowed|extra|additional|unrecogni[sz]ed|unsupported|cannot be used|not permitted", re.I
)
QUOTING = re.compile(
    r"syntax error|unexpected (?:eof|end of file|token)|unmatched|unterminated|parse error|bad substitution|no matches found"
    r"|event not found|unclosed|missing (?:quote|terminat)|looking for matching|bad pattern",
    re.I,
)
UNREAD = re.compile(
    r"not been read|read (?:it|the file|this file) (?:first|again|before)|(?:modified|changed) since"
    r"|(?:unexpectedly|externally) modified|must (?:first )?(?:be )?read",
    re.I,
)
UNMATCHED = re.compile(
    r"(?:string|text|old_?str\w*|pattern|context|lines?|hunk)\b.{0,60}\b(?:not found|no match|did not (?:match|appear)|failed)"
    r"|could not find (?:the )?(?:string|text|old_?str\w*)|failed to find (?:expected|context)"
    r"|no match(?:es)? found for|multiple matches|found \d+ matches|not unique",
    re.I,
)
NOT_HERE = re.compile(
    r"not found|no such|(?:could not|couldn't|cannot|can't|unable to) (?:find|open|access|locate|stat|load|read)|not a git repo"
    r"|does not (?:exist|appear|contain)|doesn't exist|missing script|no .{0,60} (?:found|in (?:this|the|any)|file)|outside"
    r"|enoent|no (?:module|package|target|rule|makefile|test files|tests?)\b|did not match",
    re.I,
)
_PROGRAMS: tuple[tuple[Subject, re.Pattern[str]], ...] = (
    ("program", re.compile(r"command not found: ?(?P<word>[\w.@/+-]+)", re.I)),
    ("program", re.compile(r"(?:^|[\s:])(?P<word>[\w.@/+-]+): (?:command )?not found(?=$|[\"'\\])", re.I | re.M)),
    ("program", re.compile(r"exec(?:utable)?:? \"?(?P<word>[\w.@/+-]+)\"?: executable file not found", re.I)),
    ("program", re.compile(r"'(?P<word>[\w.@/+-]+)' is not recognized", re.I)),
    (
        "program",
        re.compile(
            r"(?:failed to spawn|cannot find|could not find|no such) (?:command|program|executable|binary):? ['\"`]?"
            r"(?P<word>[\w.@/+-]+)",
            re.I,
        ),
    ),
    (
        "program",
        re.compile(
            r"unsupported (?:tool )?call:? ['\"`]?(?P<word>[\w.@/+-]+)|no such tool(?: available)?: ['\"`]?(?P<word2>[\w.@/+-]+)",
            re.I,
        ),
    ),
    (
        "command",
        re.compile(
            r"(?:unknown|unrecogni[sz]ed|invalid|no such) (?:sub-?)?command:? ['\"`]?(?P<word>[\w.@:/+-]+)", re.I
        ),
    ),
    ("command", re.compile(r"['\"`](?P<word>[\w.@:/+-]+)['\"`] is not a \w+ command", re.I)),
    (
        "command",
        re.compile(
            r"(?:missing script|script not found|no script|no task|task not found|no recipe|unknown task)\b[: ]*(?:named )?"
            r"['\"`]?(?P<word>[\w.@:/+-]+)",
            re.I,
        ),
    ),
    (
        "command",
        re.compile(
            r"(?:script|task|recipe|target|command) ['\"`](?P<word>[\w.@:/+-]+)['\"`] "
            r"(?:was )?(?:not found|is not|does not|not defined)",
            re.I,
        ),
    ),
    ("command", re.compile(r"no rule to make target ['\"`](?P<word>[\w.@:/+-]+)", re.I)),
    ("command", re.compile(r"none of the .{0,40}has a ['\"`](?P<word>[\w.@:/+-]+)['\"`] script", re.I)),
    ("command", re.compile(r"no task (?P<word>[\w.@:/+-]+) found", re.I)),
    ("module", re.compile(r"no module named ['\"]?(?P<word>[\w.]+)", re.I)),
)
_QUOTES = "\"'`‘’“”"
_SHORT = re.compile(
    r"(?:option|flag)s?.{0,4}(?:--|:) ['\"‘`]?(?P<letter>[A-Za-z0-9])['\"’`]?(?: in (?P<flag>-\S+))?(?![\w-])", re.I
)


class Complaint(NamedTuple):
    """The subject of a message's complaint."""

    subject: Subject
    word: str  # of the call


@lru_cache(64)
def find_program_complaints(text: str) -> tuple[Complaint, ...]:
    """Return the programs, subcommands and modules that a message calls missing."""
    found = []
    for subject, pattern in _PROGRAMS:
        for match in pattern.finditer(text):
            if word := next((group for group in match.groups() if group), ""):
                found.append(Complaint(subject, word.strip("'\"`.:")))
    return tuple(found)


@lru_cache(64)
def find_missing_lines(text: str) -> tuple[str, ...]:
    """Return the lines of a message that call a file or folder missing."""
    return tuple(line for line in text.splitlines() if MISSING.search(line))


@lru_cache(64)
def find_options(text: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the flags among a command's words that a message refuses."""
    flags = [word.partition("=")[0] for word in words if word.startswith("-") and len(word) > 1]
    refused: dict[str, None] = {}
    for line in text.splitlines():
        if not _REFUSED.search(line):
            continue
        refused |= {flag: None for flag in flags if names_word(line, flag)}
        for match in _SHORT.finditer(line):
            cluster = match["flag"] or ""
            refused |= {f: None for f in flags if f == cluster or (f[1:2] != "-" and match["letter"] in f[1:])}
    return tuple(refused)


@lru_cache(64)
def find_values(text: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a call, other than flags, that a message refuses. They must stand in quotes or after a colon."""
    refused: dict[str, None] = {}
    lines = [line for line in text.splitlines() if _REFUSED.search(line)]
    for word in words:
        for part in (word, *word.split(",")):
            part = part.strip("'\"")
            if len(part) > 1 and part[0] != "-" and any(_quotes_word(line, part) for line in lines):
                refused[part] = None
    return tuple(refused)


def names_word(line: str, word: str) -> bool:
    """Return whether a line holds a word as a whole."""
    at = line.find(word) if word else -1
    while at >= 0:
        before, after = line[at - 1 : at], line[at + len(word) : at + len(word) + 1]
        if not (before and (before.isalnum() or before in "_./-")) and not (
            after and (after.isalnum() or after in "_-")
        ):
            return True
        at = line.find(word, at + 1)
    return False


def _quotes_word(line: str, word: str) -> bool:
    at = line.find(word)
    while at >= 0:
        before, after = line[max(0, at - 2) : at], line[at + len(word) : at + len(word) + 1]
        if (before[-1:] in _QUOTES and after in _QUOTES and before and after) or (
            before == ": " and (not after or after in " ,(")
        ):
            return True
        at = line.find(word, at + 1)
    return False
