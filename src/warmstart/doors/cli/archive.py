"""`warmstart archive`: keep transcripts before agents delete them, and get them back."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from msgspec import structs

from warmstart.archive.entries import ArchiveEntry
from warmstart.doors.cli.main import PATH, json_option
from warmstart.doors.render.fitted import Column, print_fitted
from warmstart.doors.render.terminal import clean, format_iso, format_time, print_json, progress_bar
from warmstart.ingest.records import Recorder
from warmstart.model import Problem
from warmstart.pipeline import Warmstart
from warmstart.plurals import format_count

_COLUMNS = (
    Column("id", 12),
    Column("archived (UTC)", 16, drop=2),
    Column("agent", 14, drop=1),
    Column("session", 20),
    Column("#bytes", 12, drop=3),
    Column("#packed", 12),
    Column("redacted", 8),
    Column("path", grows=True),
)


@click.group()
def archive() -> None:
    """Keep transcripts before agents delete them, and get them back byte for byte."""


@archive.command("add")
@click.argument("paths", nargs=-1, type=PATH)
@click.option("--redacted", is_flag=True, help="Keep copies in which secrets are replaced; the secrets are then gone.")
@json_option
@click.pass_obj
def add_transcripts(ws: Warmstart, paths: tuple[Path, ...], redacted: bool, as_json: bool) -> None:
    """Archive transcripts. Without a path: those in the agents' usual places. Databases are not archived."""
    places: list[Path] = list(paths) or [path for _agent, path in ws.places() if path.suffix != ".db"]
    if not places:
        raise click.ClickException("no transcripts in the agents' usual places; name a file or folder")
    with progress_bar("archiving") as report_progress:
        report = ws.archive.add(places, redacted=redacted, progress=report_progress)
    if as_json:
        print_json(report)
    else:
        click.echo(
            f"{format_count(report.added, 'transcript')} archived, {report.unchanged} unchanged, {report.skipped} skipped; "
            f"{report.size:,} bytes take {report.packed:,}"
        )
        if report.replaced:
            click.echo(f"{format_count(report.replaced, 'older version')} dropped, which the new ones begin with")
        if report.deleted:
            click.echo(f"not archived: {format_count(report.deleted, 'transcript')} with a session that you deleted")
        _print_problems(ws, report.problems)
    if report.problems and not (report.added or report.unchanged):
        sys.exit(1)


@archive.command("list")
@json_option
@click.pass_obj
def list_entries(ws: Warmstart, as_json: bool) -> None:
    """List the archived transcripts, newest first."""
    library = ws.archive
    entries = library.entries.list()
    if as_json:
        print_json([_entry_json(entry) for entry in entries])
    elif not entries:
        click.echo("the archive is empty; fill it with: warmstart archive add")
    else:
        print_fitted(_COLUMNS, [_entry_line(entry) for entry in entries])
        click.echo(
            f"{format_count(len(entries), 'transcript')}: {sum(e.size for e in entries):,} bytes, "
            f"packed {sum({e.digest: e.packed for e in entries}.values()):,}"
        )
    _print_problems(ws, library.entries.problems)


@archive.command("restore")
@click.argument("name", metavar="ID|PATH")
@click.option("--to", "folder", type=PATH, help="Write it into this folder.  [default: where it was]")
@json_option
@click.pass_obj
def restore_transcript(ws: Warmstart, name: str, folder: Path | None, as_json: bool) -> None:
    """Write a transcript back: by its id, its path or a session's id. A file that differs is never replaced.

    Of several versions the newest is written. Claude Code deletes a file again when it has not been used for long.
    """
    library = ws.archive
    found = library.entries.find(name)
    if others := {entry.path for entry in found} - {found[0].path}:
        ids = ", ".join(entry.id for entry in found[:10])
        raise click.UsageError(f"{name} names {len(others) + 1} transcripts: {ids}; give the id of one")
    restored = library.restore(found[0], folder)
    if as_json:
        print_json({"path": restored.path, "written": restored.written, **_entry_json(restored.entry)})
        return
    kind = "redacted copy" if restored.entry.redacted else "transcript"
    state = "restored" if restored.written else "is there already"
    click.echo(f"{kind} {state}: {clean(restored.path)} ({restored.entry.size:,} bytes)")


@archive.command("verify")
@json_option
@click.pass_obj
def verify_archive(ws: Warmstart, as_json: bool) -> None:
    """Unpack everything and compare it with its checksums. Exit code 1 if anything is damaged."""
    library = ws.archive
    problems = library.verify()
    count = len(library.entries.list())
    if as_json:
        print_json({"transcripts": count, "problems": problems})
    else:
        _print_problems(ws, problems)
        click.echo(f"{format_count(count, 'transcript')} checked, {format_count(len(problems), 'problem')}")
    if problems:
        sys.exit(1)


@archive.command("delete")
@click.argument("names", metavar="ID|PATH...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def delete_entries(ws: Warmstart, names: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Delete archived transcripts, with all their versions. The agents' own files are not touched."""
    library = ws.archive
    found = {entry.id: entry for name in names for entry in library.entries.find(name)}
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("deleting cannot be undone; add --yes")
        for entry in found.values():
            click.echo(f"{entry.id} {clean(entry.path)}", err=True)
        click.confirm(f"delete {format_count(len(found), 'archived transcript')}?", abort=True, err=True)
    library.delete(found.values())
    if as_json:
        print_json({"deleted": list(found)})
    else:
        click.echo(f"deleted {format_count(len(found), 'archived transcript')}")


def _entry_json(entry: ArchiveEntry) -> dict[str, object]:
    return structs.asdict(entry) | {"at": format_iso(entry.at)}


def _entry_line(entry: ArchiveEntry) -> tuple[object, ...]:
    session = entry.sessions[0].id if len(entry.sessions) == 1 else format_count(len(entry.sessions), "session")
    state = "redacted" if entry.redacted else ""
    return (entry.id, format_time(entry.at), entry.agent, session, entry.size, entry.packed, state, entry.path)


def _print_problems(ws: Warmstart, problems: list[Problem]) -> None:
    recorder = Recorder(ws.settings.secrets)
    for problem in problems[:1_000]:
        click.echo(f"{clean(recorder.name(problem.path))}: {clean(problem.reason)}", err=True)
