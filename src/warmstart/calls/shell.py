"""Command lines, taken apart to see which failures reach the exit code.

`pytest | tail` and `make; echo done` exit with 0 even when pytest or make fails. To judge a shell result by its text one
must know whose exit code the shell reported.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Literal

from msgspec import Struct, structs

from warmstart import lazy_regex as re
from warmstart.model import Arguments

Reach = Literal["whole", "last", "none"]

_FILTERS = frozenset(
    "head tail grep egrep fgrep rg sed awk gawk wc sort uniq cut tr tee cat less more column nl jq yq xargs fold "
    "rev paste strings hexdump xxd base64 perl python3 python node sponge ts bat fmt".split()
)
_HARMLESS = frozenset("echo printf true : pwd date sleep".split())
_SILENT = _HARMLESS | {"cd", "export", "source", ".", "set", "unset", "mkdir"}
_QUOTERS = frozenset(
    "cat head tail sed grep egrep fgrep rg ag ack less more awk nl bat jq yq strings xxd hexdump od echo printf "
    "history journalctl dmesg env printenv man find fd ls tree wc sort uniq cut column diff".split()
)
_QUOTING_GIT = frozenset("log show diff blame grep ls-files cat-file reflog shortlog".split())
_LOGS = re.compile(
    r"^(?:docker|podman|kubectl|heroku|fly|pm2|gh|gcloud|aws|systemctl|adb)\b.*\b(?:logs?|view|status|logcat)\b"
)
_MATCHERS = frozenset("grep egrep fgrep rg ag ack pgrep diff cmp test [ [[ which type command git-grep".split())
_HEREDOC = re.compile(r"<<[-~]?\s*(['\"]?)([A-Za-z_][\w.-]*)\1")
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=(?:'[^']*'|\"[^\"]*\"|\S*)\s*")
_WRAPPERS = frozenset("sudo time nohup command exec env nice stdbuf timeout gtimeout npx uv poetry xvfb-run".split())
_PLAIN = re.compile(  # words, escaped characters and closed quotes
    r"(?:[^\\'\"`<\n(){}|&;#]++|\\.|'[^']*+'|\"(?:[^\"\\]++|\\.)*+\"|`(?:[^`\\]++|\\.)*+`)++", re.S
)
_CATCHES = re.compile(r"\bexcept\b[^\n]*:|\btraceback\.print_exc|\bcatch\s*[({]|\brescue\b")
_LIMIT = 6_000
_COMMAND_NAMES = ("command", "cmd", "script", "commands", "input", "code", "CommandLine")
_SCRIPTED = re.compile(  # Codex' JavaScript tool: await tools.exec_command({cmd: "...", ...})
    r"tools\.exec_command\(\s*\{.*?[\"']?\bcmd[\"']?\s*:\s*(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)",
    re.S,
)
_LOGIN_SHELL = re.compile(r"\s*(?:/\S*/)?(?:ba|z|da|k)?sh\s+-[a-z]*c\s+(['\"]?)(.*)\1\s*$", re.S)


class ShellLine(Struct, frozen=True):
    """A command line, as far as its exit code depends on it."""

    reach: Reach  # "whole": any failure shows; "last": only the last command's; "none": the last command cannot fail
    program: str  # the program whose exit code counts
    quotes: bool  # its output is other text: files, logs, listings
    matches: bool  # exit 1 without output only means that nothing matched
    text: str = ""  # the command line itself
    commits: bool = False  # `git commit` fails when there is nothing to commit
    handles: bool = False  # the code in it catches exceptions, so a printed exception is not its failure


def command_in(arguments: Arguments) -> str:
    """Return the command line of a shell call, under whatever name the agent passes it; "" where there is none."""
    if isinstance(arguments, str):
        return _inside_script(arguments)
    for name in _COMMAND_NAMES:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            wrapped = _LOGIN_SHELL.match(value)
            return wrapped[2] if wrapped else _inside_script(value)
        if isinstance(value, list) and value:
            words = [word for word in value if isinstance(word, str)]
            if len(words) >= 3 and words[1].startswith("-") and words[1].endswith("c"):
                return words[2]
            return " ".join(words)
    return ""


def _inside_script(text: str) -> str:
    """Return the commands that a script hands to a shell tool, one a line; the text itself where it is no such script."""
    return _list_commands(text) if "tools.exec_command(" in text else text


@lru_cache(1_024)
def _list_commands(text: str) -> str:
    commands = []
    for quoted in _SCRIPTED.findall(text):
        try:
            commands.append(json.loads(quoted) if quoted[0] == '"' else quoted[1:-1])
        except ValueError:
            commands.append(quoted[1:-1])
    return "\n".join(commands) or text


@lru_cache(1_024)
def read_line(command: str) -> ShellLine:
    """Take a command line apart as far as its exit code depends on it."""
    return structs.replace(
        _read(command), text=command, commits="git commit" in command, handles=bool(_CATCHES.search(command))
    )


def _read(command: str) -> ShellLine:
    pipefail = "pipefail" in command
    lists = split_line(command[:_LIMIT])
    while len(lists) > 1 and not any(stage.strip() for _op, pipe in lists[-1] for stage in pipe):
        lists.pop()
    last = lists[-1] if lists else [("", [""])]
    stages = last[-1][1]
    group = stages[-1].strip()
    if len(lists) == len(last) == len(stages) == 1 and group[:1] in ("(", "{") and group[-1:] in (")", "}"):
        return _read(group[1:-1].strip().rstrip(";"))
    program, rest = find_program(stages[-1])
    if any(op == "||" for op, _pipe in last[1:]) and program in _HARMLESS:
        return ShellLine("none", program, False, False)
    if len(stages) > 1 and program in _FILTERS and not pipefail:
        return ShellLine("none", program, True, program in _MATCHERS)
    if program in _HARMLESS and (len(lists) > 1 or len(last) == 1):
        return ShellLine("none", program, True, False)
    whole = len(lists) == 1 and (len(stages) == 1 or pipefail)
    programs = [find_program(pipe[0]) for _op, pipe in last]
    quotes = all(_quotes(p, r) for p, r in programs if p not in _SILENT)
    quotes = quotes or (len(stages) > 1 and _quotes(*find_program(stages[0])))
    return ShellLine(
        "whole" if whole else "last", program, quotes, program in _MATCHERS or _is_git(program, rest, "grep")
    )


def _quotes(program: str, rest: str) -> bool:
    if program in _QUOTERS:
        return not (program == "sed" and re.search(r"(?:^|\s)-\w*i", rest))
    if program == "git":
        return any(_is_git(program, rest, sub) for sub in _QUOTING_GIT)
    return bool(_LOGS.match(f"{program} {rest}"))


def _is_git(program: str, rest: str, sub: str) -> bool:
    return program == "git" and bool(re.match(rf"(?:-\S+\s+(?:\S+\s+)?)*?{sub}\b", rest))


def find_program(stage: str) -> tuple[str, str]:
    """Return the program of a simple command, after assignments and wrappers, and the words that follow it."""
    text = stage.strip().lstrip("({! \t")
    for _ in range(6):
        assignment = _ASSIGNMENT.match(text)
        if assignment and assignment.end() < len(text):
            text = text[assignment.end() :]
            continue
        word, _, rest = text.partition(" ")
        name = word.strip("'\"").rpartition("/")[2]
        if name not in _WRAPPERS:
            return name, rest.strip()
        text = re.sub(r"^(?:-\S+\s+|\d+[smh]?\s+|run\s+|exec\s+)*", "", rest.strip())
        if not text:
            return name, ""
    return text.split(" ", 1)[0], ""


def split_line(command: str) -> list[list[tuple[str, list[str]]]]:
    """Split a command line into lists (at ; and newlines) of pipelines (at && and ||) of stages (at |)."""
    lists: list[list[tuple[str, list[str]]]] = [[("", [""])]]
    at, depth, end = 0, 0, len(command)
    pending: list[str] = []  # here-documents whose bodies start after this line

    def add(text: str) -> None:
        lists[-1][-1][1][-1] += text

    while at < end:
        if plain := _PLAIN.match(command, at):
            add(plain[0])
            at = plain.end()
            continue
        char = command[at]
        pair = command[at : at + 2]
        if char == "\\":
            add(pair)
            at += 2
        elif char in "'\"`":  # a quote that is never closed: _PLAIN takes the others
            add(command[at:])
            at = end
        elif pair == "<<" and command[at : at + 3] != "<<<" and (here := _HEREDOC.match(command, at)):
            pending.append(here[2])
            add(here[0])
            at = here.end()
        elif char == "\n" and pending:
            at = _past_heredocs(command, at, pending)
            pending = []
            lists.append([("", [""])])
        elif char in "({" and (char == "(" or pair == "{ "):
            depth += 1
            add(char)
            at += 1
        elif char in ")}" and depth:
            depth -= 1
            add(char)
            at += 1
        elif depth:
            add(char)
            at += 1
        elif pair in ("&&", "||"):
            lists[-1].append((pair, [""]))
            at += 2
        elif char == "|":
            lists[-1][-1][1].append("")
            at += 2 if pair == "|&" else 1
        elif char in ";\n" or (char == "&" and command[at - 1 : at] not in (">", "<") and pair != "&>"):
            lists.append([("", [""])])
            at += 1
        elif char == "#" and (at == 0 or command[at - 1] in " \t\n;"):
            newline = command.find("\n", at)
            at = end if newline < 0 else newline
        else:
            add(char)
            at += 1
    return lists


def _past_heredocs(command: str, at: int, words: list[str]) -> int:
    for word in words:
        closing = re.compile(rf"^[ \t]*{re.escape(word)}[ \t]*$", re.M).search(command, at)
        if not closing:
            return len(command)
        at = closing.end()
    return at
