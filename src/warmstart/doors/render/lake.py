"""What is said about the files of a lake that cannot be read: each is named once, and the figures say how many they leave out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from warmstart.doors.render.terminal import clean, print_error_json
from warmstart.plurals import format_count

if TYPE_CHECKING:
    from warmstart.lake.library import LakeLibrary


def describe_unread(files: int) -> str:
    """Say that files of a lake are missing from the figures."""
    return f"Not counted: {format_count(files, 'file')} of the lake that could not be read"


def name_left_out(library: LakeLibrary, *, as_json: bool = False) -> None:
    """Name on standard error each file that the last question to a lake left out or mended."""
    for problem in (*library.lake.problems, *library.lake.mended):
        if as_json:
            print_error_json({"problem": {"path": problem.path, "line": None, "reason": problem.reason}})
        else:
            click.echo(f"{clean(problem.path)}: {clean(problem.reason)}", err=True)
