"""`warmstart advise`: advice at calls, as JSON lines, for agents without hooks and for replays."""

from __future__ import annotations

import sys
from typing import Any, Literal

import click
import msgspec
from msgspec import Struct

from warmstart.doors.cli.main import json_lines_option
from warmstart.doors.render.as_json import describe_advice
from warmstart.doors.render.terminal import print_json
from warmstart.errors import WarmstartError
from warmstart.notes.types import Advice, CallEvent
from warmstart.pipeline import Warmstart

_LONGEST = 32_000_000  # characters of a line


class CallLine(Struct, frozen=True):
    """One line of input."""

    tool: str
    arguments: dict[str, Any] | str
    when: Literal["before", "after"] = "before"
    session: str | None = None
    agent: str | None = None
    cwd: str | None = None
    project: str | None = None
    result: Any = None
    error: bool | str | None = None  # a text: the error's, in place of a result


_line = msgspec.json.Decoder(CallLine)


@click.command()
@click.option("--no-disk", is_flag=True, help="Do not check notes on the real disk: for replays of other machines.")
@click.option(
    "--project", help="Project whose notes answer, wherever the calls run: its name, the end of its name, or a folder."
)
@json_lines_option
@click.pass_obj
def advise(ws: Warmstart, no_disk: bool, project: str | None, as_json: bool) -> None:
    """Answer calls with what the project knows: JSON lines in, one line out for each.

    In: {session, agent, cwd, tool, arguments, when: "before" or "after", result?, error?}. Out: {action: "none", "tell",
    "correct" or "stop", text, note, arguments?}; a line that cannot be read is answered with {error}. Each session is shown
    a note once while this process runs.
    """
    del as_json  # there is no other form
    known = ws.projects.find(project).name if project else None
    for number, line in enumerate(sys.stdin, 1):
        if line.strip():
            print_json(_answer(ws, line, number, disk=not no_disk, project=known))
            sys.stdout.flush()


def _answer(ws: Warmstart, line: str, number: int, *, disk: bool, project: str | None) -> dict[str, Any]:
    try:
        if len(line) > _LONGEST:
            raise ValueError("the line is too long")
        return describe_advice(ws.advise(_read(line, project), disk=disk))
    except (ValueError, RecursionError, WarmstartError) as error:
        problem = {"line": number, "type": type(error).__name__, "reason": str(error)[:300]}
        return describe_advice(Advice()) | {"error": problem}


def _read(line: str, project: str | None) -> CallEvent:
    read = _line.decode(line.encode("utf-8", "surrogatepass"))
    result = read.error if read.result is None and isinstance(read.error, str) else read.result
    return CallEvent(
        tool=read.tool,
        arguments=read.arguments,
        when=read.when,
        session=read.session,
        agent=read.agent or "",
        cwd=read.cwd,
        project=project or read.project,
        result=result if result is None or isinstance(result, str) else msgspec.json.encode(result).decode(),
        error=bool(read.error) if read.error is not None else None,
    )
