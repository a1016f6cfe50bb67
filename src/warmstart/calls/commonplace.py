"""Calls that every coding agent makes by itself: plain reads, edits and searches, everyday Unix and git commands.

A capable model needs no example of them. What it cannot know is the project: its commands, its scripts, its own tools.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from warmstart import lazy_regex as re
from warmstart.calls import tools
from warmstart.calls.shapes import COMMONPLACE, Stage, command_of, split_stages
from warmstart.model import Arguments, Category

_CODING: frozenset[Category] = frozenset(("coding", "ops"))
_AGENTS = frozenset(  # programs made for coding; other loops run any model on any work, and keep their plain examples
    "claude-code codex gemini-cli qwen-code opencode openhands mini-swe-agent swe-agent aider cline cursor copilot goose "
    "amp crush".split()
)
_TOOLS = frozenset(
    (tools.READ, tools.WRITE, tools.PATCH, tools.SEARCH, tools.WEB_SEARCH, tools.WEB_READ, tools.PROCESS)
)
_HARNESS = frozenset(  # of the agent's program itself: other agents, waiting, plans
    "task agent subagent dispatch_agent spawn_agent wait_agent send_input close_agent delegate_task wait update_plan "
    "view_image request_user_input exit_plan_mode".split()
)
_PROGRAMS = COMMONPLACE | frozenset(
    """mkdir rmdir touch cp mv rm ln chmod less more awk gawk egrep fgrep cut tr uniq column tee xargs diff cmp du df date
    sleep true false test [ [[ exit return set unset export source . type command basename dirname realpath readlink
    ps kill pgrep pkill xxd od hexdump strings id whoami uname env printenv read shift local wait break continue pushd popd
    : jq seq rev paste""".split()
)
_GIT = frozenset(
    """status diff log add commit show branch checkout switch restore fetch pull push stash rev-parse blame remote reset rm
    mv ls-files merge-base""".split()
)
_INTERPRETER = re.compile(r"(?:python|node|ruby|perl|php|bash|sh|zsh|deno|bun)[\d.]*")
_INLINE = frozenset(("-c", "-e", "-", "-lc", "--eval", "-p"))  # code on the command line: it serves one occasion
_OPENS = frozenset("do then else elif if while until ! { (".split())  # shell words before a command
_CLOSES = frozenset("for done fi case esac in select function } )".split())
_PROGRAM = re.compile(r"(?:[\w.~$-]*/)*[a-z_][\w.+-]*")  # not a line of prose inside a quoted message
_SCRIPT = re.compile(r"\s*(?:const|let|var|await|text|for|import)\b[^\n]*[({=]")  # of Codex, in JavaScript
_CALLED = re.compile(r"\btools\.(\w+)\s*\(")


def teaches_nothing(agent: str | None, category: Category, tool: str, arguments: Arguments) -> bool:
    """Return whether a call in such a session shows only what a coding agent does by itself.

    Other kinds of work are left alone: their tools (of a business, an API) are not known to a model.
    """
    return is_coding(agent, category) and is_commonplace(tool, arguments)


def is_coding(agent: str | None, category: Category) -> bool:
    """Return whether sessions of this agent and category are a coding agent's work."""
    return agent in _AGENTS and category in _CODING


def is_commonplace(tool: str, arguments: Arguments) -> bool:
    """Return whether every coding agent makes such a call by itself. A tool of an MCP server is never commonplace."""
    line = command_of(tool, arguments)
    return is_commonplace_line(line) if line is not None else _is_builtin(tool)


@lru_cache(4_096)
def is_commonplace_line(line: str) -> bool:
    """Return whether a command line runs everyday programs only."""
    called = find_called(line)
    return all(map(_is_builtin, called)) if called is not None else not find_own_commands(line)


def find_called(line: str) -> list[str] | None:
    """Return the tools that a script of Codex calls; None where the line is a command line."""
    return _CALLED.findall(line) if _SCRIPT.match(line) else None


@lru_cache(4_096)
def find_own_commands(line: str) -> tuple[tuple[str, ...], ...]:
    """Return the commands of a line that are not commonplace, in words: program, subcommands, then flags and operands."""
    commands = (_strip_opening(stage) for stage in split_stages(line))
    return tuple(words for words in commands if not _is_everyday(words))


def _is_builtin(tool: str) -> bool:
    name = tool.lower()
    return not name.startswith("mcp__") and (name in _HARNESS or tools.base_tool(tool) in _TOOLS)


def _strip_opening(stage: Stage) -> tuple[str, ...]:
    """Return the words of a command without the `do` or `then` before it."""
    words = (stage.program, *stage.head.split(" ")[1:], *stage.words)
    while words and words[0] in _OPENS:
        words = words[1:]
    return words


def _is_everyday(words: Sequence[str]) -> bool:
    if not words or words[0] in _CLOSES or not _PROGRAM.fullmatch(words[0].strip("'\"")):
        return True
    program = words[0].strip("'\"").rpartition("/")[2]
    if program == "git":
        return _find_subcommand(words) in _GIT
    if _INTERPRETER.fullmatch(program):
        return any(word in _INLINE or word.startswith("<<") for word in words[1:3])
    return program in _PROGRAMS


def _find_subcommand(words: Sequence[str]) -> str:
    """Return the first word after git's own options."""
    return next((word for before, word in pairwise(words) if word[0] != "-" and before not in ("-C", "-c")), "status")
