"""`warmstart lake`: keep a lake small, and delete sessions from it."""

from __future__ import annotations

import click

from warmstart.doors.cli.main import json_option
from warmstart.doors.render.terminal import clean, print_json, progress_bar
from warmstart.pipeline import Warmstart
from warmstart.plurals import format_count


@click.group()
def lake() -> None:
    """Look after a lake: Parquet files that `ingest --lake` writes."""


@lake.command("compact")
@click.argument("url", metavar="DIR_OR_URL")
@json_option
@click.pass_obj
def compact_lake(ws: Warmstart, url: str, as_json: bool) -> None:
    """Rewrite each project's month as one file, without older versions and copies of sessions."""
    with progress_bar("compacting") as report_progress:
        report = ws.lake(url).compact(report_progress)
    if as_json:
        print_json(report)
        return
    click.echo(
        f"{format_count(report.before, 'file')} of sessions became {report.after}; "
        f"{format_count(report.dropped, 'row')} dropped: older versions, copies, deleted sessions"
    )
    for problem in report.problems:
        click.echo(f"{clean(problem.path)}: {clean(problem.reason)}", err=True)


@lake.command("delete")
@click.argument("url", metavar="DIR_OR_URL")
@click.argument("key")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def delete_from_lake(ws: Warmstart, url: str, key: str, yes: bool, as_json: bool) -> None:
    """Delete a session, given by its key, from every file of a lake; it is not written again."""
    if not yes:
        click.confirm(f"Delete session {clean(key)} from the lake?", abort=True, err=True)
    files = ws.lake(url).delete(key)
    if as_json:
        print_json({"key": key, "files": files})
    else:
        click.echo(f"deleted from {format_count(files, 'file')}" if files else "no file held it; it will not be added")
