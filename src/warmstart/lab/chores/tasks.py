"""A task of the lab: a request, the files of its folder, and a check of the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct


class ChoreCall(Struct, frozen=True):
    """A tool call that a model proposes."""

    tool: str
    arguments: dict[str, Any]


class Finished(Struct, frozen=True):
    """The result of a session."""

    folder: Path
    answer: str  # the model's last words; without any, the output of its last call that worked


Check = Callable[[Finished], bool]


class LabTask(Struct, frozen=True, kw_only=True):
    """One task with all that is needed to set it up, solve it and judge it."""

    id: str  # "count_lines-test-03": stable for a random seed
    family: str
    request: str  # the user's words
    files: Mapping[str, str | bytes]  # path below the folder -> content at the start
    solution: tuple[ChoreCall, ...]  # the right calls, which the solver makes
    check: Check  # of files and answers, never of the calls
