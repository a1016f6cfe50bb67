"""The files and folders that a call names: by an argument, in a patch, or as words of a command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from warmstart import lazy_regex as re
from warmstart.calls import tools
from warmstart.calls.shapes import command_of, operands
from warmstart.model import Arguments

_FILE_TOOLS = frozenset((tools.READ, tools.WRITE, tools.PATCH, tools.SEARCH))
_NAMES = frozenset(  # of arguments that hold a path, without case and separators
    "path paths file files filepath filepaths filename notebookpath targetfile absolutepath relativepath dirpath "
    "directory folder relativeworkspacepath targetdirectory uri".split()
)
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+?)\s*$|^(?:\+\+\+|---) [ab]/(\S+)", re.M)
_WORD = re.compile(r"^[\w@.~+/\\:-]{3,200}$")
_COULD_NAME = re.compile(r"/[^\s/]*\.")  # a command line without this names no file in a folder
_LARGEST = 20_000  # characters of a patch that are searched


def find_paths(tool: str, arguments: Arguments) -> set[str]:
    """Return the paths that a call names, as it writes them."""
    line = command_of(tool, arguments)
    if line is not None:
        if not _COULD_NAME.search(line):
            return _patched(line)
        return {word for word in operands(line) if _looks_like_path(word)} | _patched(line)
    if tools.base_tool(tool) not in _FILE_TOOLS:
        return set()
    if isinstance(arguments, str):
        return _patched(arguments)
    return {path for name, value in arguments.items() for path in _paths_in(name, value)}


def _paths_in(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if name.lower().replace("_", "").replace("-", "") in _NAMES:
            yield value
        else:
            yield from _patched(value)
    elif isinstance(value, list):
        for inner in value[:100]:
            if isinstance(inner, dict):
                for key, deeper in inner.items():
                    yield from _paths_in(key, deeper) if isinstance(deeper, str) else ()
            else:
                yield from _paths_in(name, inner)


def _patched(text: str) -> set[str]:
    if "*** " not in text and "+++ " not in text:
        return set()
    return {first or second for first, second in _PATCHED.findall(text[:_LARGEST])}


def _looks_like_path(word: str) -> bool:
    """Return whether a word of a command line names a file in a folder: it has a slash and an ending."""
    return "/" in word and "." in word.rpartition("/")[2] and "://" not in word and bool(_WORD.match(word))
