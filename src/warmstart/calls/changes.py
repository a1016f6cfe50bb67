"""The change from a call that failed to one that worked, and what both calls are for."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from warmstart.calls import tools
from warmstart.calls.shapes import COMMONPLACE, Stage, command_of, split_stages, values_of
from warmstart.model import PastCall

FixKind = Literal["path", "option", "value", "program", "precondition", "cwd", "quoting", "retry"]

FOLDERS = ("workdir", "cwd", "working_directory", "dir_path", "directory")  # arguments that name the folder to run in
LOOKING = frozenset((tools.READ, tools.SEARCH, tools.WEB_READ, tools.BROWSE))
CHANGING = frozenset((tools.WRITE, tools.PATCH))
_CHANGES = re.compile(
    r"(?<![\d&])>>?\s*(?!/dev/null)[\w./~$\"']|\bsed -i|apply_patch|\binstall\b"
    r"|\bgit (?:apply|checkout|switch|stash|merge|pull|reset|rebase|commit|push|add|restore|cherry-pick|clone)\b"
    r"|\bgit (?:worktree|rm|mv|fetch|tag)\b"
    r"|\b(?:rm|mv|cp|mkdir|touch|ln|chmod|kill|pkill|tee|docker|npm|pnpm|yarn|bun|cargo|make|uv|brew|apt|apt-get|pip|pip3)\b"
    r"|\b(?:curl -X|systemctl|start|up|create|delete|restart|deploy)\b"
)
_HARMLESS = re.compile(
    r"(?:^|[_.-])(?:get|list|search|find|read|view|show|snapshot|query|lookup|fetch|check|think|todo\w*)", re.I
)
_PLAIN = re.compile(r"[\w.@:/ +=-]{1,80}$")
_PATCH = "*** Begin Patch"


class CallChange(NamedTuple):
    """The difference between the failed call and the one that worked."""

    kind: FixKind
    failed: str  # the part that failed
    worked: str  # the text in its place
    words: str  # the change in a few words
    lesson: str | None = None
    form: bool = False  # the form of the call changed, not only a value


def command_line(call: PastCall) -> str | None:
    """Return the command line of a shell call; None for other calls, and for scripts that hold a patch."""
    line = command_of(call.tool, call.arguments)
    return None if line is None or _PATCH in line or line.lstrip().startswith(("const ", "let ", "await ")) else line


def is_looking(call: PastCall) -> bool:
    """Return whether a call only looks at files: a reading tool, or a command line of reading programs."""
    line = command_line(call)
    if line is None:
        return tools.base_tool(call.tool) in LOOKING
    return all(stage.head.split(" ")[0] in COMMONPLACE for stage in split_stages(line))


def changes_things(call: PastCall) -> bool:
    """Return whether a call may have changed files or the environment, so that a later success says nothing."""
    line = command_of(call.tool, call.arguments)
    if line is not None:
        return bool(_CHANGES.search(line))
    base = tools.base_tool(call.tool)
    return base in CHANGING or (base is None and not _HARMLESS.search(call.tool))


def find_paths(call: PastCall) -> list[str]:
    """Return the path that a call of a file tool is about, or the operands of a command line."""
    line = command_line(call)
    if line is not None:
        words = (word.strip("'\"`;,") for stage in split_stages(line) for word in _find_operands(stage))
        plain = (word for word in words if word and word[0] not in "-<>$({|&*" and len(word) < 200 and " " not in word)
        return list(dict.fromkeys(word.rstrip("/") or word for word in plain))
    values = values_of(call.arguments).values() if isinstance(call.arguments, dict) else ()
    return [str(value).rstrip("/") for form, value in values if form.endswith(" path") and "list" not in form]


def _find_operands(stage: Stage) -> list[str]:
    """Return the words of a command that may be paths: not flags, nor what a search searches for."""
    words = list(stage.words)
    if stage.head in ("find", "fd"):
        return words[: next((at for at, word in enumerate(words) if word.startswith("-")), len(words))]
    operands = [word for word in words if not word.startswith("-")]
    return operands[1:] if stage.head in ("grep", "rg", "egrep", "fgrep", "ag", "ack", "sed", "awk") else operands


def is_plain(*texts: str) -> bool:
    """Return whether texts are made of names, paths and flags only, so that they can stand in a rule."""
    return all(map(_PLAIN.match, texts))
