"""Corrections of a call: only where the fix is exact, and only into calls that read.

A correction runs without a person's word, so what it results in must be something that no agent asks a person about:
one of a few tools and programs that read, on a path that is there, without redirections, substitutions and variables.
"""

from __future__ import annotations

import os

from warmstart.notes.marks import Place, find_command, is_shell, split_simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Arguments = dict[str, Any]

_READ_TOOLS = frozenset(
    "read read_file view view_file grep glob ls list_directory search_files grep_search search_file_content".split()
)
_PROGRAMS = frozenset(
    "cat head tail nl wc ls stat du tree grep egrep fgrep rg diff cmp realpath readlink cd pwd".split()
)
_GIT = frozenset("status log diff show blame grep ls-files ls-tree rev-parse describe shortlog".split())
_PYTHONS = frozenset("python python3".split())
_SAFE_MODULES = frozenset(("json.tool",))
_TESTERS = frozenset(("pytest", "unittest"))
_WRITING = ("-o", "--output", "--ext-diff", "--textconv", "--open-files-in-pager", "-O", "--pre", "--hostname-bin")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-+@")
_ENDS = frozenset(" \t\n\"';|&)")
_HARMLESS = ("2>/dev/null", "2> /dev/null", ">/dev/null", "> /dev/null", "2>&1")
_LONGEST = 2_000
_SAMPLE = 60_000  # bytes that fit into one read
_LINES = 400  # read where the file cannot be looked at


def correct_call(note: dict[str, Any], call: dict[str, Any], place: Place, *, disk: bool = True) -> Arguments | None:
    """Return the corrected arguments of a call; None where there is no exact and harmless correction."""
    arguments = call["arguments"]
    if not isinstance(arguments, dict):
        return None
    kind = note.get("kind")
    if kind == "path":
        return _correct_path(note, call, place, disk=disk)
    if kind == "large":
        return _limit_read(call, place, disk=disk)
    if kind in ("environment", "command") and is_shell(call["tool"]):
        return _replace_program(note, arguments, place, disk=disk)
    return None


def needs_trust(arguments: Arguments) -> bool:
    """Return whether a corrected call runs a project's own code; it is corrected only where the agent asks no person anyway."""
    line = find_command(arguments)
    return line is not None and any(words[0] in _PYTHONS for words in split_simple(line) if words)


# Paths


def locate(subject: str, call: dict[str, Any], place: Place) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield where a call names a path: the word, the folder it is relative to, the argument, and the words around it."""
    arguments, tool = call["arguments"], call["tool"]
    line = find_command(arguments) if is_shell(tool) else None
    if line is None:
        if isinstance(arguments, dict):
            for name, value in arguments.items():
                if isinstance(value, str) and place.relate(value) == subject:
                    yield value, place.folder, name, []
        return
    folder = place.folder
    for words in split_simple(line):
        for word in words:
            if not word.startswith("-") and place.relate(word, folder) == subject:
                yield word, folder, "", words
        if words and words[0] in ("cd", "pushd") and len(words) > 1:
            folder = words[1] if words[1].startswith("/") else os.path.normpath(f"{folder}/{words[1]}")


def resolve(word: str, folder: str) -> str | None:
    """Return the absolute path that a word names; None where a shell or the user's home would decide that."""
    if word.startswith("file://"):
        word = word[7:]
    if word.startswith("~/"):
        word = os.path.expanduser(word)
    path = word if word.startswith("/") else f"{folder}/{word}"
    if not path.startswith("/") or any(char in path for char in "$*?[]{}<>`\0~"):
        return None
    return os.path.normpath(path)


def _correct_path(note: dict[str, Any], call: dict[str, Any], place: Place, *, disk: bool) -> Arguments | None:
    subject, fix = note["subject"], note.get("fix", "")
    named = list(locate(subject, call, place))
    if not fix or len(named) != 1 or not set(fix) <= _PLAIN or fix.startswith(("-", "/", "..")):
        return None
    word, folder, argument, _words = named[0]
    if not word.rstrip("/").endswith(subject):
        return None
    better = word.rstrip("/")[: -len(subject)] + fix
    path, missing = resolve(better, folder), resolve(word, folder)
    if path is None or missing is None or not _is_inside(path, place):
        return None
    if disk and (os.path.lexists(missing) or not os.path.exists(path)):
        return None
    if argument:
        return _replace_argument(call, argument, better)
    return _replace_word(call["arguments"], word, better, place)


def _replace_argument(call: dict[str, Any], argument: str, better: str) -> Arguments | None:
    others = [value for name, value in call["arguments"].items() if name != argument and isinstance(value, str)]
    if call["tool"].lower() not in _READ_TOOLS or any(value.startswith(("/", "~", "..")) for value in others):
        return None
    return {**call["arguments"], argument: better}


def _is_inside(path: str, place: Place) -> bool:
    """Return whether a path lies in the project, also with links resolved: agents ask before they read elsewhere."""
    real = os.path.realpath(path) + "/"
    return any(
        f"{path}/".startswith(root + "/") and real.startswith((root + "/", os.path.realpath(root) + "/"))
        for root in place.roots
    )


def _limit_read(call: dict[str, Any], place: Place, *, disk: bool) -> Arguments | None:
    arguments = call["arguments"]
    path = arguments.get("file_path")
    if call["tool"] != "Read" or not isinstance(path, str) or "limit" in arguments or "offset" in arguments:
        return None
    lines = _LINES
    found = resolve(path, place.folder)
    if found is None or not _is_inside(found, place):
        return None
    if disk:
        try:
            with open(found, "rb") as file:
                lines = max(1, min(2_000, file.read(_SAMPLE).count(b"\n")))
        except (OSError, ValueError):
            return None
    return {**arguments, "offset": 1, "limit": lines}


# Commands


def _replace_program(note: dict[str, Any], arguments: Arguments, place: Place, *, disk: bool) -> Arguments | None:
    """Return the call with another program in place of one that is not here: `python3 x` for `python x`."""
    old, form = note["subject"], note.get("fix", "").split()
    if not form or form[-1] == "first" or old in form:
        return None
    new = form[0]
    if not {old, new} <= _PYTHONS and not {old, new} <= _PROGRAMS:
        return None
    line = find_command(arguments) or ""
    if sum(words[:1] == [old] for words in split_simple(line)) != 1 or (disk and not has_program(new)):
        return None
    return _replace_word(arguments, old, new, place)


def _replace_word(arguments: Arguments, word: str, better: str, place: Place) -> Arguments | None:
    """Return the arguments with one word of the command line replaced, if the result only reads."""
    name = next((name for name in ("command", "cmd") if isinstance(arguments.get(name), str)), None)
    if name is None or not set(word) <= _PLAIN or not set(better) <= _PLAIN:
        return None
    line = arguments[name]
    places = [at for at in _find_all(line, word) if _stands_alone(line, at, len(word))]
    if len(places) != 1:
        return None
    corrected = line[: places[0]] + better + line[places[0] + len(word) :]
    return {**arguments, name: corrected} if only_reads(corrected) and _stays_inside(corrected, place) else None


def _stays_inside(line: str, place: Place) -> bool:
    """Return whether every path of a command line lies in the project."""
    for word in (word for words in split_simple(line) for word in words):
        name, _, value = word.rpartition("=")
        if (
            ".." in word
            or (word.startswith("-") and "/" in (name or value))
            or value.startswith("~")
            or (value.startswith("/") and not _is_inside(value, place))
        ):
            return False
    return True


def _find_all(line: str, word: str) -> Iterator[int]:
    at = line.find(word)
    while at >= 0:
        yield at
        at = line.find(word, at + 1)


def _stands_alone(line: str, at: int, size: int) -> bool:
    before, after = line[at - 1 : at], line[at + size : at + size + 1]
    return (not before or before in _ENDS) and (not after or after in _ENDS)


def only_reads(line: str) -> bool:
    """Return whether a command line only reads. Programs that are not known to be harmless count as writing."""
    if len(line) > _LONGEST:
        return False
    for redirection in _HARMLESS:
        line = line.replace(redirection, " ")
    if any(char in line for char in "`<>$\\{}!#") or "&" in line.replace("&&", "  "):
        return False
    commands = list(split_simple(line))
    return bool(commands) and all(_reads(words) for words in commands)


def _reads(words: list[str]) -> bool:
    program, rest = words[0], words[1:]
    if program in _PYTHONS:
        return _runs_known_module(rest)
    if program == "git":
        rest = rest[1:] if rest[:1] == ["--no-pager"] else rest
        if not rest or rest[0] not in _GIT:
            return False
    elif program == "sed":
        return rest[:1] == ["-n"] and _only_prints(rest[1:])
    elif program not in _PROGRAMS:
        return False
    finds = program in ("grep", "egrep", "fgrep", "rg") or (program == "git" and rest[0] == "grep")
    return not any(word.startswith(_WRITING) and not (finds and _is_only_matching(word)) for word in rest)


def _only_prints(words: list[str]) -> bool:
    """Return whether sed prints lines by their numbers, and nothing else."""
    script, files = "".join(words[:1]), words[1:]
    return (
        bool(script) and set(script) <= frozenset("0123456789,$p") and not any(name.startswith("-") for name in files)
    )


def _is_only_matching(word: str) -> bool:
    return word in ("-o", "-on", "-oh", "-oE", "-oP", "-ohE", "-onE")


def _runs_known_module(rest: list[str]) -> bool:
    if rest in (["--version"], ["-V"]):
        return True
    return (
        rest[:1] == ["-m"] and len(rest) > 1 and (rest[1] in _TESTERS or (rest[1] in _SAFE_MODULES and len(rest) <= 3))
    )


def has_program(name: str) -> bool:
    """Return whether a program is on the PATH."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return True
    return False
