"""The fence around `terminal`: it reads and checks a command line, so that no shell ever sees it.

Small models really propose `rm -r` and `npm install`. The fence splits a line into words, pipes, redirects and sequences.
It refuses everything else that a shell can do (`$(...)`, variables, background jobs, here-documents) in words that the
model can act on. Programs and their options are an allowlist, and every path, symbolic links followed, must lead into the
folder. This keeps mistakes in; it is no security boundary against hostile code.
"""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path

from msgspec import Struct

LONGEST_LINE = 100_000
MOST_STAGES = 16
_GLOB = frozenset("*?[")
_EXPANDS = re.compile(r"\$[A-Za-z_0-9{@#*?!$]")
_BRACES = re.compile(r"\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_OPERATORS = ("&>>", "&>", "&&", "||", "|&", "|", ";", "&", "<<<", "<<", "<>", ">>", ">&", ">|", ">", "<", "(", ")")
_JOINING = ("&&", "||", ";")
_REFUSED_OPERATORS = {
    "|&": "|& is not offered; use 2>&1 |",
    "&": "background jobs (&) are not offered",
    "<<<": "here-strings (<<<) are not offered",
    "<<": "here-documents (<<) are not offered; use write_file",
    "<>": "<> is not offered",
    "(": "subshells ( ) are not offered",
    ")": "subshells ( ) are not offered",
}


class CommandRefused(Exception):
    """The fence refuses a command line or a path; the message is for the model."""

    def __init__(self, why: str, exit_code: int = 126) -> None:
        super().__init__(why)
        self.exit_code = exit_code


class Word(Struct, frozen=True):
    """One word of a command line, without its quotes."""

    text: str
    pattern: str | None = None  # the word as a glob pattern, if it has an unquoted * ? or [


class Redirect(Struct, frozen=True):
    """The target or source of a stream: a path, or the number of another stream."""

    stream: int
    target: Word | int
    append: bool = False


class Command(Struct, frozen=True):
    """A program with its arguments; without words for a line such as `> file`."""

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()


class Pipeline(Struct, frozen=True):
    """Commands joined by `|`; `joined` is the operator before them: "" for the first pipeline, else `;`, `&&` or `||`."""

    joined: str
    commands: tuple[Command, ...]


class Operator(Struct, frozen=True):
    """A shell operator, with the stream number of a redirect such as `2>`."""

    sign: str
    stream: int | None = None


def read_line(line: str) -> tuple[Pipeline, ...]:
    """Parse a command line, or refuse it. This checks syntax alone and looks up neither programs nor files."""
    if len(line) > LONGEST_LINE:
        raise CommandRefused(f"the command is longer than {LONGEST_LINE} characters", 2)
    if "\0" in line:
        raise CommandRefused("the command holds a NUL character", 2)
    tokens = _split(line)
    while tokens and isinstance(tokens[-1], Operator) and tokens[-1].sign == ";":
        tokens.pop()
    pipelines: list[Pipeline] = []
    joined, commands, part = "", list[Command](), list[Word | Operator]()
    for token in [*tokens, Operator("end")]:
        if isinstance(token, Word) or token.sign not in (*_JOINING, "|", "end"):
            part.append(token)
            continue
        if not part:
            if token.sign == "end" and not tokens:
                raise CommandRefused("the command is empty", 2)
            where = "at the end" if token.sign == "end" else f"before {token.sign}"
            raise CommandRefused(f"syntax error: no command {where}", 2)
        commands.append(_read_command(part))
        part = []
        if token.sign != "|":
            if len(commands) > MOST_STAGES:
                raise CommandRefused(f"more than {MOST_STAGES} commands in one pipe")
            pipelines.append(Pipeline(joined, tuple(commands)))
            joined, commands = token.sign, []
    return tuple(pipelines)


def _read_command(tokens: list[Word | Operator]) -> Command:
    words: list[Word] = []
    redirects: list[Redirect] = []
    rest = iter(tokens)
    for token in rest:
        if isinstance(token, Word):
            words.append(token)
            continue
        target = next(rest, None)
        if not isinstance(target, Word):
            raise CommandRefused(f"syntax error: {token.sign} without a file name", 2)
        redirects.extend(_read_redirect(token, target))
    if words and _ASSIGNMENT.match(words[0].text):
        raise CommandRefused("variables are not offered")
    return Command(tuple(words), tuple(redirects))


def _read_redirect(operator: Operator, target: Word) -> list[Redirect]:
    sign = operator.sign
    if sign in ("&>", "&>>"):
        return [Redirect(1, target, sign == "&>>"), Redirect(2, 1)]
    stream = operator.stream if operator.stream is not None else 0 if sign == "<" else 1
    if stream > 2 or (stream == 0) != (sign == "<"):
        raise CommandRefused(f"{stream}{sign} is not offered")
    if sign == ">&":
        if target.text not in ("1", "2"):
            raise CommandRefused(f">&{target.text} is not offered")
        return [Redirect(stream, int(target.text))]
    return [Redirect(stream, target, sign == ">>")]


def _split(line: str) -> list[Word | Operator]:
    """Return words and operators as a shell would see them."""
    tokens: list[Word | Operator] = []
    at, end = 0, len(line)
    while at < end:
        char = line[at]
        if line.startswith("\\\n", at):
            at += 2
        elif char in " \t\r":
            at += 1
        elif char == "\n":
            at += 1
            if tokens and not (isinstance(tokens[-1], Operator) and tokens[-1].sign in (*_JOINING, "|")):
                tokens.append(Operator(";"))
        elif char == "#":
            newline = line.find("\n", at)
            at = end if newline < 0 else newline
        elif (sign := _operator_at(line, at)) is not None:
            tokens.append(Operator(sign))
            at += len(sign)
        else:
            word, at = _read_word(line, at)
            if word.text in ("0", "1", "2") and line[at : at + 1] in ("<", ">") and line[at - 1] == word.text:
                sign = _operator_at(line, at) or ""
                tokens.append(Operator(sign, int(word.text)))
                at += len(sign)
            else:
                tokens.append(word)
    return tokens


def _operator_at(line: str, at: int) -> str | None:
    sign = next((sign for sign in _OPERATORS if line.startswith(sign, at)), None)
    if sign in _REFUSED_OPERATORS:
        raise CommandRefused(_REFUSED_OPERATORS[sign])
    return sign


def _read_word(line: str, at: int) -> tuple[Word, int]:
    """Return the word that starts at `at`, and where it ends."""
    text: list[str] = []
    pattern: list[str] = []
    globs, bare, end = False, list[str](), len(line)
    if line[at] == "~" and line[at + 1 : at + 2] in ("", "/", " "):
        raise CommandRefused("~ is not offered; paths are relative to the folder")
    while at < end and (char := line[at]) not in " \t\r\n|&;<>()":
        if char == "\\":
            piece, at, quoted = line[at + 1 : at + 2].replace("\n", ""), at + 2, True
        elif char in "'\"":
            piece, at = _read_quoted(line, at)
            quoted = True
        else:
            _refuse_expansion(line, at)
            if line.startswith(("$'", '$"'), at):
                raise CommandRefused("$'...' is not offered; printf writes tabs and newlines")
            piece, at, quoted = char, at + 1, False
        text.append(piece)
        globs = globs or (not quoted and piece in _GLOB)
        pattern.append(glob.escape(piece) if quoted else piece)
        bare.append("_" * len(piece) if quoted else piece)
    if "{" in bare and _BRACES.search("".join(bare)):
        raise CommandRefused("brace expansion { , } is not offered; write the names out")
    return Word("".join(text), "".join(pattern) if globs else None), at


def _read_quoted(line: str, at: int) -> tuple[str, int]:
    quote, start = line[at], at + 1
    if quote == "'":
        close = line.find("'", start)
        if close < 0:
            raise CommandRefused("syntax error: ' is not closed", 2)
        return line[start:close], close + 1
    text: list[str] = []
    at = start
    while at < len(line):
        char = line[at]
        if char == '"':
            return "".join(text), at + 1
        if char == "\\" and line[at + 1 : at + 2] in ('"', "\\", "$", "`", "\n"):
            text.append(line[at + 1].replace("\n", ""))
            at += 2
            continue
        _refuse_expansion(line, at)
        text.append(char)
        at += 1
    raise CommandRefused('syntax error: " is not closed', 2)


def _refuse_expansion(line: str, at: int) -> None:
    if line[at] == "`" or line.startswith("$(", at):
        raise CommandRefused("command substitution is not offered; run one command after the other")
    if line[at] == "$" and _EXPANDS.match(line, at):
        raise CommandRefused("variables ($NAME) are not offered; put $ in single quotes to mean the character")


def resolve_inside(folder: Path, here: Path, path: str) -> Path:
    """Return where `path`, seen from `here`, really leads; refuse it unless that is the folder or inside it."""
    if not path:
        raise CommandRefused("the path is empty")
    if "\0" in path:
        raise CommandRefused("the path holds a NUL character")
    real = Path(os.path.realpath(here / path))
    if real != folder and folder not in real.parents:
        shown = path if len(path) <= 80 else path[:77] + "..."
        raise CommandRefused(f"{shown}: outside the folder; only paths inside it are offered")
    return real


def expand_word(word: Word, folder: Path, here: Path) -> list[str]:
    """Return the names that a word stands for: sorted matches inside the folder, or the word if nothing matches."""
    if word.pattern is None:
        return [word.text]
    first = re.split(r"[*?\[]", word.pattern, maxsplit=1)[0]
    if first.startswith(("/", "-")) or ".." in word.pattern.split("/"):
        return [word.text]
    names = sorted(glob.glob(word.pattern, root_dir=here))  # noqa: PTH207 - relative names, ** no more than *
    inside = [name for name in names if _is_inside(folder, here, name)]
    return [f"./{name}" if name.startswith("-") else name for name in inside] or [word.text]


def _is_inside(folder: Path, here: Path, name: str) -> bool:
    try:
        resolve_inside(folder, here, name)
    except CommandRefused:
        return False
    return True
