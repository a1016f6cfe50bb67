"""What the lab asks of a model: a request, a folder to do it in, and a checker that looks at what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct


class ChoreCall(Struct, frozen=True):
    """A tool call as a model asks for it."""

    tool: str
    arguments: dict[str, Any]


class Finished(Struct, frozen=True):
    """What a session has left behind."""

    folder: Path
    answer: str  # the model's last words; where it said none, what its last call that worked put out


Check = Callable[[Finished], bool]


class LabTask(Struct, frozen=True, kw_only=True):
    """One task with everything needed to set it up, solve it and judge it."""

    id: str  # "count_lines-test-03": stable for a random seed
    family: str
    request: str  # what the user says
    files: Mapping[str, str | bytes]  # path below the folder -> what lies there before
    solution: tuple[ChoreCall, ...]  # the right calls, which the solver plays
    check: Check  # of files and answers, never of how they came about
