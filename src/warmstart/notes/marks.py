"""The marks of a call: short strings that name what the call touches, by which notes are found.

`run:git checkout` is a program with its subcommand, `with:cat -A` one of its options or words, `path:src/app.py` a file
or folder relative to the project, `whole:src/app.py` a read of all of it, `tool:Edit` a tool, `arg:search.team=Troy` an
argument, and `fresh:Edit` an edit of a file that the session has not read yet. A note's trigger is one mark.

Hooks run this for every call of an agent, so the module imports nothing but `os`, which Python has loaded anyway.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from typing import Any

_SHELLS = frozenset(
    "bash shell terminal exec exec_command shell_command local_shell run_shell_command execute_command run_terminal_cmd "
    "run_in_terminal run_command execute_bash unified_exec execute_code".split()
)
_READERS = frozenset("read read_file view view_file open_file readfile notebookread read_text_file".split())
_EDITORS = frozenset(
    "edit write multiedit notebookedit notebook_edit edit_file write_file patch replace str_replace create_file "
    "str_replace_editor write_to_file replace_in_file apply_diff".split()
)
_PATHS = frozenset(
    "file_path path notebook_path filepath target_file absolute_path file filename dir directory folder relative_path "
    "target_directory directory_path dir_path".split()
)
_PARTS = frozenset("offset limit view_range start_line end_line pages start end max_lines line_range".split())
_COMMENTS = frozenset(
    "description explanation timeout timeout_ms justification run_in_background content new_string old_string newstring "
    "oldstring newtext oldtext edits patchtext prompt "
    "command cmd code script input text message body query pattern todos questions plan".split()
)
_WRAPPERS = frozenset("sudo time nohup env command exec nice stdbuf timeout gtimeout builtin caffeinate".split())
_FILE_PROGRAMS = frozenset(
    "ls cat head tail less more wc stat file tree nl du rm mv cp mkdir rmdir touch ln chmod chown source . open bat "
    "realpath readlink diff cmp cd pushd".split()
)
_PATTERN_PROGRAMS = frozenset("grep egrep fgrep rg ag ack sed awk gawk perl jq yq".split())
_TALK = frozenset("echo printf true : false sleep exit return".split())
_DEEP = frozenset("gh docker podman kubectl aws gcloud az heroku fly nix helm".split())
_LIMIT, _COMMANDS, _WORDS, _LONGEST = 6_000, 12, 24, 160
_BREAKS = frozenset(";|&\n()")


def find_command(arguments: Mapping[str, Any] | str) -> str | None:
    """Return the command line among the arguments of a shell call; None where there is none."""
    if isinstance(arguments, str):
        return arguments
    for name in ("command", "cmd", "script", "input", "code"):
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value:
            words = [word for word in value if isinstance(word, str)]
            if len(words) >= 3 and words[1].startswith("-") and words[1].endswith("c"):
                return words[2]
            return " ".join(words)
    return None


def is_shell(tool: str) -> bool:
    """Return whether a tool runs command lines."""
    return tool.lower() in _SHELLS


def is_editor(tool: str) -> bool:
    """Return whether a tool changes one file that its arguments name."""
    return tool.lower() in _EDITORS


def is_reader(tool: str) -> bool:
    """Return whether a tool reads one file that its arguments name."""
    return tool.lower() in _READERS


class Place:
    """Where a call runs: the roots of its project and its working folder."""

    __slots__ = ("folder", "roots")

    def __init__(self, folder: str | None = None, roots: Iterable[str] = ()) -> None:
        self.folder = folder or ""
        known = {root.rstrip("/") for root in (*roots, *((folder,) if folder else ())) if len(root) > 1}
        self.roots = sorted(known, key=len, reverse=True)  # the innermost first

    def relate(self, path: str, folder: str | None = None) -> str | None:
        """Return a path relative to the project: `~/...` for one in a home folder; None for one that names nothing."""
        path = path.strip().rstrip("/")
        if not path or len(path) > 400 or (not path.isprintable() and _has_controls(path)):
            return None
        if path.startswith("file://"):
            path = path[7:]
        if len(path) > 2 and path[1] == ":" and path[2] in "\\/":
            path = path.replace("\\", "/")
        elif not path.startswith(("/", "~", "$", "<", "http")):
            path = f"{folder if folder is not None else self.folder}/{path}"
        if path.startswith("/private/tmp/"):
            path = path[8:]
        path = os.path.normpath(path)
        for root in self.roots:
            if path == root:
                return "."
            if path.startswith(root + "/"):
                return path[len(root) + 1 :]
            slug = root.replace("/", "-")  # agents keep one folder a project under such a name
            if slug in path:
                path = path.replace(slug, "*")
        return _shorten_home(path)


def _has_controls(text: str) -> bool:
    return any(ord(char) < 32 for char in text) or "\x7f" in text


def mask_digits(path: str) -> str:
    """Return a path with its longer numbers masked, so that `verify_64942.log` and `verify_71003.log` are one."""
    masked, at = "", 0
    while at < len(path):
        end = at
        while end < len(path) and path[end].isdigit():
            end += 1
        masked += path[at] if end == at else path[at:end] if end - at <= 2 else "*"
        at = max(end, at + 1)
    return masked


def _shorten_home(path: str) -> str:
    for top in ("/Users/", "/home/"):
        if path.startswith(top):
            _user, _, rest = path[len(top) :].partition("/")
            return f"~/{rest}" if rest else "~"
    return path


def find_marks(
    tool: str, arguments: Mapping[str, Any] | str, place: Place, seen: Collection[str] | None = None
) -> list[str]:
    """Return the marks of a call, each once. `seen`: files that the session has read or written; None: unknown."""
    marks: dict[str, None] = {f"tool:{tool}": None}
    line = find_command(arguments) if is_shell(tool) else None
    if line is not None:
        for mark in _mark_line(line, place):
            marks[mark] = None
    elif not isinstance(arguments, str):
        for mark in _mark_arguments(tool, arguments, place, seen):
            marks[mark] = None
    return [mark for mark in marks if len(mark) <= _LONGEST]


def touched_path(tool: str, arguments: Mapping[str, Any] | str, place: Place) -> str | None:
    """Return the file that a tool other than a shell reads or writes, relative to the project."""
    if isinstance(arguments, str) or is_shell(tool):
        return None
    for name, value in arguments.items():
        if name.lower() in _PATHS and isinstance(value, str) and value:
            return place.relate(value)
    return None


def _mark_arguments(
    tool: str, arguments: Mapping[str, Any], place: Place, seen: Collection[str] | None
) -> Iterator[str]:
    lowered = {name.lower() for name in arguments}
    for name, value in arguments.items():
        if name.lower() in _PATHS and isinstance(value, str):
            path = place.relate(value)
            if path is None:
                continue
            yield f"path:{path}"
            if is_reader(tool) and not lowered & _PARTS:
                yield f"whole:{mask_digits(path)}"
            if is_editor(tool) and seen is not None and path not in seen:
                yield f"fresh:{tool}"
        elif name.lower() not in _COMMENTS:
            yield f"arg:{tool}.{name}"
            if isinstance(value, (str, int, bool)) and len(str(value)) <= 60 and "\n" not in str(value):
                yield f"arg:{tool}.{name}={value}"


def _mark_line(line: str, place: Place) -> Iterator[str]:
    folder = place.folder
    for words in split_commands(line):
        program = words[0].rpartition("/")[2]
        if program in _TALK or not program:
            continue
        if "/" in words[0]:
            path = place.relate(words[0], folder)
            if path is not None:
                yield f"path:{path}"
                if not path.startswith("/"):
                    program = path
        yield f"run:{program}"
        if program in ("cd", "pushd"):
            if len(words) > 1:
                path = place.relate(words[1], folder)
                if path is not None:
                    yield f"path:{path}"
                folder = _enter(folder, words[1])
            continue
        yield from _mark_words(program, words[1:_WORDS], folder, place)


def _enter(folder: str, target: str) -> str:
    if target.startswith("/"):
        return target
    return os.path.normpath(f"{folder}/{target}") if folder else target


def _mark_words(program: str, words: list[str], folder: str, place: Place) -> Iterator[str]:
    head, bare = program, 0
    names_files = program in _FILE_PROGRAMS
    pattern_next = program in _PATTERN_PROGRAMS
    for at, word in enumerate(words):
        if word.startswith("-"):
            if len(word) > 1:
                option = word.partition("=")[0]
                yield f"with:{head} {option}"
                if head != program:
                    yield f"with:{program} {option}"
            continue
        if pattern_next:
            pattern_next = False
            continue
        is_path = names_files or program in _PATTERN_PROGRAMS or _has_extension(word) or _is_rooted(word)
        if is_path and len(word) < 300 and not word.startswith(("http:", "https:", "$", "@")):
            path = place.relate(word, folder)
            if path is not None:
                yield f"path:{path}"
        if is_path or names_files:
            continue
        if "," in word and len(word) <= 200:
            for part in word.split(",")[:12]:
                if part and _is_bare(part):
                    yield f"with:{program} {part}"
        if "/" not in word and _is_bare(word):
            bare += 1
            if bare <= 2 and not any(previous.startswith("-") for previous in words[:at]):
                head = f"{head} {word}"
                yield f"run:{head}"
            yield f"with:{program} {word}"


def _has_extension(word: str) -> bool:
    stem, dot, ending = word.rpartition(".")
    return bool(dot) and bool(stem) and 1 <= len(ending) <= 5 and ending.isalnum() and not ending.isdigit()


def _is_rooted(word: str) -> bool:
    """Return whether a word can only be a path. `jdx/mise` may be a repository, `@scope/name` a package."""
    return word.startswith(("./", "../", "/", "~/")) or word.endswith("/")


def _is_bare(word: str) -> bool:
    return (
        len(word) <= 40
        and word[0].isalpha()
        and all(char.isalnum() or char in "-_:.@" for char in word)
        and not _looks_random(word)
    )


def _looks_random(word: str) -> bool:
    digits = sum(char.isdigit() for char in word)
    return digits >= 4 or (digits >= 2 and len(word) >= 12)


def split_commands(line: str) -> list[list[str]]:
    """Return the simple commands of a command line as lists of words, without redirections, wrappers and assignments."""
    commands: list[list[str]] = []
    for words in _split(line[:_LIMIT]):
        words = _unwrap(words)
        if words:
            commands.append(words)
            if len(commands) >= _COMMANDS:
                break
    return commands


def split_simple(line: str) -> list[list[str]]:
    """Return all simple commands of a command line as they stand, with their wrappers and assignments."""
    return list(_split(line))


def _unwrap(words: list[str]) -> list[str]:
    at = 0
    while at < len(words):
        word = words[at]
        name, equals, _value = word.partition("=")
        if equals and name.replace("_", "a").isalnum() and not name[0].isdigit():
            at += 1
        elif word in _WRAPPERS:
            at += 1
            while at < len(words) and (words[at].startswith("-") or words[at].rstrip("smh").isdigit()):
                at += 1
        elif word in ("!", "{", "}", "then", "do", "else", "if", "while", "done", "fi", "for", "in"):
            if word == "for":
                return []
            at += 1
        else:
            break
    return words[at:]


def _split(line: str) -> Iterator[list[str]]:
    words: list[str] = []
    word, quoted, at, end = "", False, 0, len(line)
    skip = False  # the next word is the target of a redirection
    heredoc = ""

    def close() -> None:
        nonlocal word, quoted, skip
        if word or quoted:
            if skip:
                skip = False
            elif word:
                words.append(word)
        word, quoted = "", False

    while at < end:
        char = line[at]
        if char == "\\" and at + 1 < end:
            if line[at + 1] != "\n":
                word += line[at + 1]
            at += 2
        elif char == "'" or char == '"' or char == "`":
            stop = at + 1
            while stop < end and line[stop] != char:
                stop += 2 if line[stop] == "\\" and char != "'" else 1
            word += line[at + 1 : stop]
            quoted = True
            at = stop + 1
        elif char == "$" and line[at + 1 : at + 2] == "(":
            depth, stop = 1, at + 2
            while stop < end and depth:
                depth += (line[stop] == "(") - (line[stop] == ")")
                stop += 1
            word += "$(...)"
            at = stop
        elif char == "<" and line[at : at + 2] == "<<" and line[at : at + 3] != "<<<":
            close()
            at += 2
            while at < end and line[at] in "-~ '\"":
                at += 1
            start = at
            while at < end and (line[at].isalnum() or line[at] == "_"):
                at += 1
            heredoc = line[start:at]
            if at < end and line[at] in "'\"":
                at += 1
        elif char in "<>":
            if word.isdigit() or word == "&":
                word = ""
            close()
            at += 1
            while at < end and line[at] in ">&<":
                at += 1
            if at < end and line[at].isdigit() and line[at - 1] == "&":
                at += 1
            else:
                skip = True
        elif char == "#" and not word and (at == 0 or line[at - 1] in " \t\n;"):
            stop = line.find("\n", at)
            at = end if stop < 0 else stop
        elif char in _BREAKS:
            if char == "&" and line[at + 1 : at + 2] == ">":
                at += 1
                continue
            close()
            skip = False
            if words:
                yield words
                words = []
            at += 1
            if char == "\n" and heredoc:
                stop = line.find("\n" + heredoc, at - 1)
                at = end if stop < 0 else stop + 1 + len(heredoc)
                heredoc = ""
        elif char in " \t\r":
            close()
            at += 1
        else:
            word += char
            at += 1
    close()
    if words:
        yield words
