"""A family of tasks: one kind of chore in several wordings, with a fresh instance for each draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from warmstart.lab.chores.draw import Draw
from warmstart.lab.chores.tasks import Check, ChoreCall


class Instance(Struct, frozen=True, kw_only=True):
    """One chore with its names and values."""

    slots: dict[str, str]  # the values for the phrasings
    files: Mapping[str, str | bytes]
    ways: tuple[tuple[ChoreCall, ...], ...]  # right ways to do it, the plainest first; training shows all of them
    check: Check


class Family(Struct, frozen=True, kw_only=True):
    """One kind of chore."""

    name: str
    phrasings: tuple[str, ...]  # for training, and for tests in the same wording
    rewordings: tuple[str, ...]  # for tests only; in most families the last shares few words with the phrasings
    make: Callable[[Draw], Instance]
    held_out: bool = False  # never tested: the control arms show its sessions as work that does not fit


def terminal(command: str) -> ChoreCall:
    return ChoreCall("terminal", {"command": command})


def read_file(path: str) -> ChoreCall:
    return ChoreCall("read_file", {"path": path})


def write_file(path: str, content: str) -> ChoreCall:
    return ChoreCall("write_file", {"path": path, "content": content})


def search_files(pattern: str, **more: str) -> ChoreCall:
    return ChoreCall("search_files", {"pattern": pattern, **more})


def execute_code(code: str) -> ChoreCall:
    return ChoreCall("execute_code", {"code": code})


def sqlite_query(database: str, sql: str) -> ChoreCall:
    return ChoreCall("sqlite_query", {"database": database, "sql": sql})
