"""The words of a command line that may be paths, wherever they stand: behind `>`, before `;` or `)`, in quotes, in the body
of a here-document, in a text for another shell. Too many words cost a question, a missing one a hole."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import NamedTuple

import re2

from warmstart.calls.shell import find_program, split_line

_MOST = 100_000  # characters that are taken apart; the patterns see all
_SEPARATORS = re2.compile(r"[\s;&|()<>=`{},]+")
_TARGETS = re2.compile(r">[>|&]?\s*([^\s;&|()<>`]+)")
_FOLDERS = re2.compile(
    r"(?:\b(?:cd|pushd|chdir|Set-Location)\s+(?:-\w+\s+|--\s+)*|\s-C\s*|--directory[=\s])([^\s;&|()<>`]+)"
)
_REMOVERS = frozenset(("rm", "mv", "rmdir", "unlink", "shred", "chmod", "chown", "rsync", "Remove-Item", "Move-Item"))


class CommandWords(NamedTuple):
    """A command line, taken apart."""

    bare: str  # without quotes and continued lines
    words: list[str]
    targets: set[str]  # files that its output goes to
    folders: list[str]  # where it goes before it writes
    removed: list[str]  # arguments of programs that remove or move files


def read_command_line(command: str) -> CommandWords:
    """Take a command line apart."""
    text = command[:_MOST]
    bare = text.replace("\\\n", "").replace('"', "").replace("'", "").replace("\\", "")
    words = [word for word in _SEPARATORS.split(bare) if word]
    removed: list[str] = []
    for stage in _list_stages(text):
        quoted = _split_words(stage)
        words.extend(word for word in quoted if " " in word)
        if find_program(stage)[0] in _REMOVERS:
            removed.extend(word for word in quoted[1:] if not word.startswith("-"))
    folders, targets = _FOLDERS.findall(bare), _TARGETS.findall(bare)
    return CommandWords(bare, list(dict.fromkeys(words)), set(targets), list(dict.fromkeys(folders)), removed)


def _list_stages(text: str, depth: int = 3) -> Iterator[str]:
    """Yield the simple commands, those in groups too."""
    for pipelines in split_line(text):
        for _, stages in pipelines:
            for stage in stages:
                group = stage.strip()
                if depth and group[:1] in ("(", "{"):
                    yield from _list_stages(group[1:].rstrip(")} "), depth - 1)
                else:
                    yield group


def _split_words(stage: str) -> list[str]:
    try:
        return shlex.split(stage)
    except ValueError:  # an open quote
        return stage.replace('"', "").replace("'", "").split()
