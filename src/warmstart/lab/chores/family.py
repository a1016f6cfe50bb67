"""What a family of tasks is: one kind of chore, asked for in several ways, with a fresh instance for each draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from warmstart.lab.chores.draw import Draw
from warmstart.lab.chores.tasks import Call, Check


class Instance(Struct, frozen=True, kw_only=True):
    """One chore with its names and values."""

    slots: dict[str, str]  # what fills the phrasings
    files: Mapping[str, str | bytes]
    ways: tuple[tuple[Call, ...], ...]  # right ways to do it, the plainest first: training shows each of them
    check: Check


class Family(Struct, frozen=True, kw_only=True):
    """One kind of chore."""

    name: str
    phrasings: tuple[str, ...]  # in training and, for the tasks of the same wording, in tests
    rewordings: tuple[str, ...]  # in tests only; of most families the last is far from the phrasings in its words
    make: Callable[[Draw], Instance]
    held_out: bool = False  # never tested: its sessions are shown where other work than the asked one is to be shown


def terminal(command: str) -> Call:
    return Call("terminal", {"command": command})


def read_file(path: str) -> Call:
    return Call("read_file", {"path": path})


def write_file(path: str, content: str) -> Call:
    return Call("write_file", {"path": path, "content": content})


def search_files(pattern: str, **more: str) -> Call:
    return Call("search_files", {"pattern": pattern, **more})


def execute_code(code: str) -> Call:
    return Call("execute_code", {"code": code})


def sqlite_query(database: str, sql: str) -> Call:
    return Call("sqlite_query", {"database": database, "sql": sql})
