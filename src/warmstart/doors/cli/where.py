"""`warmstart where`: the files that earlier requests like a task led to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import structs

from warmstart.doors.cli.main import PATH, json_option
from warmstart.doors.render.terminal import clean, print_json, print_table
from warmstart.plurals import format_count

if TYPE_CHECKING:
    from warmstart.notes.where import Where
    from warmstart.pipeline import Warmstart


@click.command()
@click.argument("task")
@click.option("--cwd", type=PATH, help="Folder of the session.  [default: this folder]")
@click.option(
    "--project", help="The project: its name, the end of it, or a folder. Its files are not looked for on disk."
)
@click.option("--limit", type=click.IntRange(1, 10), default=10, show_default=True, help="Maximum files.")
@json_option
@click.pass_obj
def where(ws: Warmstart, task: str, cwd: Path | None, project: str | None, limit: int, as_json: bool) -> None:
    """Name the files that requests like TASK led to in earlier sessions, the likeliest first.

    Nothing is named where the request names its files itself, or where no earlier request is similar.
    """
    folder = (cwd or Path.cwd()).absolute() if project is None else None
    answer = ws.where(task, project=project, folder=folder, limit=limit)
    if as_json:
        print_json(describe_where(answer))
        return
    if not answer.files:
        click.echo(f"no file to name for {clean(answer.project or 'this folder')}: {clean(answer.silent)}")
        return
    rows = [(file.path, file.sessions, file.edited, file.reason) for file in answer.files]
    print_table(("file", "#similar", "#edited", "why"), rows)
    count = format_count(answer.sessions, "earlier request is", "earlier requests are")
    click.echo(f"{count} similar in {clean(answer.project or '')}; the column says how many of them edited a file")


def describe_where(answer: Where) -> dict[str, Any]:
    """Return the JSON form of the answer."""
    return structs.asdict(answer) | {"files": [structs.asdict(file) for file in answer.files], "line": answer.line}
