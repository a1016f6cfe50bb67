"""aider: `.aider.chat.history.md` in a project's folder; each `# aider chat started at` begins a session.

aider has no tool calls. Applied and failed edits, shell commands that it proposed, and failed lint or test runs are read as
calls of `edit`, `bash`, `lint` and `test`. A command's output is not in the file, so that its outcome is unknown; one that
the user declined is rejected. Follows files of aider 0.37 to 0.86.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warmstart.formats.fields import parse_time
from warmstart.formats.markdown import TextBlock, read_lines
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Session, Signal, Usage
from warmstart.ports import Judge

NAME = "aider"

_FILE = ".aider.chat.history.md"
_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$")
_HEAD = re.compile(r"\s*# aider chat started at \d{4}-\d\d-\d\d")
_MODELS = re.compile(r"(?:Main model|Models?): (\S+) with ")
_TOKENS = re.compile(
    r"Tokens: ([\d.,]+k?) sent,(?: [\d.,]+k? cache (?:write|hit),)* ([\d.,]+k?) received\.(?: Cost: \$([\d.]+) message)?"
)
_OLD_TOKENS = re.compile(r"([\d,]+) prompt tokens, ([\d,]+) completion tokens, \$([\d.]+) cost")
_APPLIED = re.compile(r"Applied edit to (.+)$")
_ASKED = re.compile(r"Run shell commands?\?.*?(?::\s*|\?\s+)(\w+)\s*$")
_REPAIR = re.compile(r"Attempt to fix (lint|test) errors\?")
_DECLINED = ("n", "no", "s", "skip")
_TALK = re.compile(r"/(?:ask|code|architect|context)\s+(.+)$", re.S)
_MISFORMED = "The LLM did not conform to the edit format"
_PASSING = re.compile(  # lines that belong to nothing that follows
    r"(?:Tokens: |Commit \w+|Applied edit|Run shell command|Running |Add command output|Added |Committing |Aider v|Model|"
    r"Main model|Weak model|Editor model|Git repo|Repo-map|Use /help|Warning|[\d,]+ prompt tokens|Dropping|"
    r"Only \d|https?://|Attempt to fix)"
)
_NO_OUTCOME = Signal(status="unknown", basis="none")


def sniff(head: SourceHead) -> bool:
    return _HEAD.match(head.text) is not None


def read(source: Source, judge: Judge) -> Iterator[Session]:
    reader: _Reader | None = None
    for number, line in read_lines(source):
        if start := _START.match(line):
            if reader is not None:
                yield from reader.sessions()
            reader = _Reader(source, judge, start[1])
        elif reader is not None:
            reader.take(line, number)
    if reader is not None:
        yield from reader.sessions()


class _Reader:
    def __init__(self, source: Source, judge: Judge, started: str) -> None:
        self._draft = draft = SessionBuilder(source, judge, format=NAME, agent="aider")
        draft.fragment = started.replace(" ", "T")
        draft.started = parse_time(started)
        draft.project = str(source.path.absolute().parent) if source.local and source.path.name == _FILE else None
        self._text = TextBlock(source)
        self._kind = ""  # of the text that is collected: "user", "assistant" or "output"
        self._asked = False

    def take(self, line: str, number: int) -> None:
        """Read a line: the user's, aider's own, or the model's."""
        if line.startswith("####") and (len(line) == 4 or line[4] == " "):
            self._turn("user")
            self._text.add(line[5:].rstrip(), number)
        elif line.startswith(">") and (len(line) == 1 or line[1] == " "):
            self._turn("output")
            self._take_output(line[2:].rstrip(), number)
        elif line or self._kind == "assistant":
            self._turn("assistant")
            self._text.add(line, number)

    def _turn(self, kind: str) -> None:
        if kind == self._kind:
            return
        text = self._text.take().strip()
        if self._kind == "user":
            self._add_words(text)
        elif self._kind == "assistant" and self._asked:
            self._draft.message("assistant", text)
        self._kind = kind

    def _add_words(self, text: str) -> None:
        self._asked = True
        talk = _TALK.match(text)
        if talk or not text.startswith("/"):
            text = talk[1] if talk else text
            self._draft.message("user", "" if text == "<blank>" else text)

    def _take_output(self, line: str, number: int) -> None:
        draft = self._draft
        if model := _MODELS.match(line):
            draft.model = model[1]
        if tokens := _TOKENS.match(line) or _OLD_TOKENS.match(line):
            cost = float(tokens[3]) if tokens[3] and tokens[3].count(".") <= 1 and tokens[3] != "." else None
            draft.spend(Usage(input=_count(tokens[1]), output=_count(tokens[2]), cost=cost), draft.model)
        elif applied := _APPLIED.match(line):
            draft.call("", "edit", {"path": applied[1]})
            draft.result("", line)
        elif asked := _ASKED.match(line):
            self._add_command(declined=asked[1].lower() in _DECLINED)
        elif repair := _REPAIR.match(line):
            draft.call("", repair[1], {})
            draft.result("", self._text.take(), None, Signal(failed=True, basis="structure"))
        elif line.startswith(_MISFORMED):
            draft.call("", "edit", {})
            draft.result("", line, None, Signal(failed=True, basis="structure"))
        if _PASSING.match(line):
            self._text.take()
        else:
            self._text.add(line, number)

    def _add_command(self, *, declined: bool) -> None:
        command = self._text.take().strip()
        if command:
            self._draft.call("", "bash", {"command": command})
            self._draft.result("", "", None, Signal(status="rejected") if declined else _NO_OUTCOME)

    def sessions(self) -> Iterator[Session]:
        self._turn("")
        if not self._draft.empty:
            yield self._draft.close()


def _count(text: str) -> int | None:
    """Return a number of tokens that aider rounded, such as `6.5k`."""
    digits = text.rstrip("k").replace(",", "")
    try:
        return int(float(digits) * (1000 if text.endswith("k") else 1))
    except (ValueError, OverflowError):
        return None
