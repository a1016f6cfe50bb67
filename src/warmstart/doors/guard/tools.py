"""What the tools of an agent do: `tools.toml` in the package, extended by `guard.toml`.

Rules are written for one tool, such as `Bash`. An agent often has others that run commands too, and a rule that names one
of them counts for all of its class.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from warmstart.doors.guard.calls import GuardedCall, read_texts

ToolClass = Literal["shell", "write", "later", "harmless"]
_FILE = Path(__file__).with_name("tools.toml")
_NAMED_IN_RULES = ("Bash", "terminal")  # Claude Code's and Codex', Hermes'; both take a `command`
ANY = "*"  # all texts of a call


class ShellTool(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool that runs commands."""

    text: str  # the argument that holds the command; *: any
    when: dict[str, list[str]] = {}  # only with one of these values; otherwise it runs nothing


class AgentTools(Struct, frozen=True, forbid_unknown_fields=True):
    """The tools of one agent, by name or pattern."""

    shell: dict[str, ShellTool] = {}
    write: dict[str, list[str]] = {}  # names of the arguments that hold paths
    later: list[str] = []
    harmless: list[str] = []

    def list_names(self) -> list[str]:
        """Return every tool that is known, sorted."""
        return sorted({*self.shell, *self.write, *self.later, *self.harmless})

    def extend(self, more: ToolNames) -> AgentTools:
        """Return these tools and those that a person added."""
        return AgentTools(
            shell=self.shell | {name: ShellTool(ANY) for name in more.shell},
            write=self.write | {name: [ANY] for name in more.write},
            later=[*self.later, *more.later],
            harmless=[*self.harmless, *more.harmless],
        )

    def classify(self, call: GuardedCall) -> ToolClass | None:
        """Return the class of a call, or None for an unknown tool. Dangerous classes come first."""
        if self.find_shell(call) is not None:
            return "shell"
        if _find(self.write, call.tool) is not None:
            return "write"
        if _find(dict.fromkeys(self.later, ""), call.tool) is not None:
            return "later"
        return "harmless" if _find(dict.fromkeys(self.harmless, ""), call.tool) is not None else None

    def find_shell(self, call: GuardedCall) -> ShellTool | None:
        """Return the entry of a call that runs something."""
        tool: ShellTool | None = _find(self.shell, call.tool)
        if tool is None or not all(call.arguments.get(name) in values for name, values in tool.when.items()):
            return None
        return tool

    def read_command(self, call: GuardedCall) -> str | None:
        """Return the command that a call runs, or None if it runs none."""
        tool = self.find_shell(call)
        return None if tool is None else "\n".join(read_texts(tool.text, call.arguments))

    def list_equals(self, call: GuardedCall) -> Iterator[GuardedCall]:
        """Yield a call, and the same command as a call of the tools for which people write rules."""
        yield call
        command = self.read_command(call)
        for name in _NAMED_IN_RULES if command is not None else ():
            if name.lower() != call.tool.lower():
                yield msgspec.structs.replace(call, tool=name, arguments={**call.arguments, "command": command})

    def find_odd_path(self, call: GuardedCall) -> str | None:
        """Return a path with a line break or another control character: what it names is not what a person reads."""
        names = [name for name in _find(self.write, call.tool) or [] if name.endswith("path")]
        texts = (text for name in names for text in read_texts(name, call.arguments))
        return next((text for text in texts if any(char < " " or "\x7f" <= char < "\xa0" for char in text)), None)

    def read_paths(self, call: GuardedCall) -> list[str]:
        """Return the paths that a call writes to, as it names them."""
        names = _find(self.write, call.tool) or []
        texts = [text for name in names for text in read_texts(name, call.arguments)]
        return [path for text in texts for path in _read_patch(text)]


class ToolNames(Struct, frozen=True, forbid_unknown_fields=True):
    """Tools that a person adds in `guard.toml`: names or patterns, for all agents."""

    shell: list[str] = []
    write: list[str] = []
    later: list[str] = []
    harmless: list[str] = []


class LaterCode(Struct, frozen=True, forbid_unknown_fields=True):
    """Patterns of what can run code later."""

    code_later: list[str]
    writes: str
    commands: list[str]


class _Traps(Struct, frozen=True, forbid_unknown_fields=True):
    traps: list[str]


@cache
def _load() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text("utf-8"))


@cache
def load_tools(agent: str) -> AgentTools:
    """Return the tools of an agent; none are known of an agent that is not listed."""
    return msgspec.convert(_load().get(agent, {}), AgentTools)


@cache
def load_later_code() -> LaterCode:
    return msgspec.convert(_load()["paths"], LaterCode)


def list_traps() -> list[str]:
    """Return the variables that change what other programs do."""
    return msgspec.convert(_load()["environment"], _Traps).traps


def _find(entries: Mapping[str, Any], tool: str) -> Any:
    """Return the entry for a tool, or None. Case does not matter; names may be patterns."""
    return next((entry for name, entry in entries.items() if fnmatchcase(tool.lower(), name.lower())), None)


_FILE_LINES = ("*** update file:", "*** add file:", "*** delete file:", "*** move to:", "+++ ", "--- ", "rename to ")


def _read_patch(text: str) -> Sequence[str]:
    """Return the paths that a patch names; any other text is a path itself."""
    lines = [line.strip() for line in text.splitlines()]
    named = [line[len(mark) :].strip() for line in lines for mark in _FILE_LINES if line.lower().startswith(mark)]
    if named:
        return [path.split("\t")[0].removeprefix("a/").removeprefix("b/") for path in named]
    return [text] if len(lines) <= 1 else []
