"""`warmstart lake`: keep a lake small, and delete sessions from it."""

from __future__ import annotations

import sys

import click

from warmstart.doors.cli.main import json_option
from warmstart.doors.render.lake import name_left_out
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
    """Rewrite each project's month as one file, without older versions and copies of sessions.

    A project's month with files that cannot be read is left alone; the files are named, and the exit code is 1.
    """
    library = ws.lake(url)
    with progress_bar("compacting") as report_progress:
        report = library.compact(report_progress)
    if as_json:
        print_json(report)
    else:
        click.echo(
            f"{format_count(report.before, 'file')} of sessions became {report.after}; "
            f"{format_count(report.dropped, 'row')} dropped: older versions, copies, deleted sessions"
        )
        if report.left_alone:
            months = format_count(report.left_alone, "month of a project", "months of projects")
            click.echo(f"left alone, because files cannot be read: {months}")
        name_left_out(library)
    if report.problems:
        sys.exit(1)


@lake.command("delete")
@click.argument("url", metavar="DIR_OR_URL")
@click.argument("session")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def delete_from_lake(ws: Warmstart, url: str, session: str, yes: bool, as_json: bool) -> None:
    """Delete a session from every file of a lake; it is not written again.

    SESSION is an id as `sessions list` shows it, the agent's id, the key, or a unique beginning of either.
    """
    library = ws.lake(url)
    found = library.find_session(session)
    if not yes:
        name = f"{found.key} ({found.agent} {found.id})" if found.id else found.key
        click.confirm(f"Delete session {clean(name)} from the lake?", abort=True, err=True)
    deleted = library.delete(found)
    if as_json:
        print_json(deleted)
    else:
        parts = [
            f"{format_count(rows, 'row')} of {table} ({format_count(deleted.files[table], 'file')})"
            for table, rows in deleted.rows.items()
        ]
        was_gone = not any(deleted.rows.values())
        click.echo("it was deleted before" if was_gone else f"deleted {clean(found.key)}: {', '.join(parts)}")
        if deleted.problems:
            click.echo(f"{format_count(len(deleted.problems), 'file')} cannot be read and may still hold it")
            name_left_out(library)
    if deleted.problems:
        sys.exit(1)
