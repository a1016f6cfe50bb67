"""`warmstart notes`: facts about projects. List, show, decide, brief, publish, export and import.

Agents wait for `notes brief`, so what the other commands need is loaded by them.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import structs

from warmstart.atomic_files import write_whole
from warmstart.doors.cli.agent_commands import BriefOptions, clean_lines, print_brief
from warmstart.doors.cli.main import PATH, json_lines_option, json_option
from warmstart.doors.cli.quick import LONGEST_BRIEF
from warmstart.doors.render.terminal import clean, coloured, format_iso, format_time, print_json
from warmstart.errors import Refused, SourceError
from warmstart.notes.types import KINDS, Note, NoteKind, NoteStatus
from warmstart.pipeline import Warmstart
from warmstart.plurals import format_count

if TYPE_CHECKING:
    from warmstart.notes.library import ShownNote

_MET = 10  # sessions that met a note, as printed
_LARGEST_IMPORT = 50_000_000  # bytes

_project = click.option("--project", help="The project: its name, the end of its name, or a folder.")
_reason = click.option("--reason", default="", help="Kept on the record.")


@click.group()
def notes() -> None:
    """Facts about projects that sessions met, counted and checkable."""


@notes.command("list")
@_project
@click.option("--kind", type=click.Choice(KINDS), help="Only notes of this kind.")
@click.option("--status", type=click.Choice(["proposed", "active", "retired"]), help="Only notes with this status.")
@json_lines_option
@click.pass_obj
def list_notes(
    ws: Warmstart, project: str | None, kind: NoteKind | None, status: NoteStatus | None, as_json: bool
) -> None:
    """List notes, those that matter most first. Without --status, a person sees the active ones; JSON has all."""
    listed = ws.notes.list(project=_find(ws, project), kind=kind, status=status)
    if as_json:
        for note in listed:
            print_json(describe_note(note))
        return
    if not listed:
        _explain_empty(ws, filtered=bool(project or kind or status))
        return
    shown = [note for note in listed if status or note.status == "active"]
    if shown:
        _print_notes(shown)
    others = Counter(note.status for note in listed if note not in shown)
    for name, count in sorted(others.items()):
        click.echo(f"{format_count(count, 'note')} {name}; see: warmstart notes list --status {name}")


def _print_notes(listed: list[Note]) -> None:
    from warmstart.doors.render.fitted import Column, print_fitted

    columns = (
        Column("note", 12),
        Column("project", 24, drop=3),
        Column("kind", 11),
        Column("status", 8),
        Column("#sessions", 8),
        Column("#against", 7, drop=2),
        Column("last seen (UTC)", 16, drop=1),
        Column("text", grows=True),
    )
    print_fitted(columns, [_make_row(note) for note in listed])


def _find(ws: Warmstart, project: str | None) -> str | None:
    return None if project is None else ws.projects.find(project).name


def _make_row(note: Note) -> tuple[Any, ...]:
    name = note.project or f"(all, {note.agent})"
    seen = format_time(note.last_seen)
    return (note.id, name, note.kind, coloured(note.status), note.support, note.against, seen, clean(note.text))


def _explain_empty(ws: Warmstart, *, filtered: bool) -> None:
    if filtered and ws.notes.list():
        click.echo("no note matches; see: warmstart notes list")
    elif ws.count_sessions():
        click.echo("no notes yet; run: warmstart learn")
    else:
        click.echo("no sessions stored yet; run: warmstart ingest, then: warmstart learn")


@notes.command("show")
@click.argument("note")
@json_option
@click.pass_obj
def show_note(ws: Warmstart, note: str, as_json: bool) -> None:
    """Show a note with its evidence, its decisions and whether it came again after it was shown."""
    shown = ws.notes.show(note)
    if as_json:
        print_json(describe_shown_note(shown))
        return
    from warmstart.doors.render.effect import state_recurrence
    from warmstart.doors.render.note_trials import show_note_trial

    one = shown.note
    click.echo(f"{one.id}  {one.kind}  {one.status}  {clean(one.project or 'rule of ' + one.agent)}")
    click.echo(f"  {clean(one.text)}")
    click.echo(f"  trigger    {clean(one.trigger or 'none: it is shown only at the start of a session')}")
    click.echo(
        f"  evidence   {format_count(one.support, 'session')}, {format_count(one.people, 'person', 'people')}; of the calls with"
    )
    click.echo(f"             this trigger {one.failures} failed and {one.against} worked")
    click.echo(f"  seen       {format_time(one.first_seen)} to {format_time(one.last_seen)}")
    for reason in one.suspicions:
        click.echo(f"  suspicious {clean(reason)}")
    for decision in shown.decisions:
        reason = decision.reason.removeprefix(f"{decision.by}: ")
        click.echo(f"  {format_time(decision.at)}  {decision.status} by {decision.by}: {clean(reason)}")
    for number, session in enumerate(shown.met[:_MET]):
        click.echo(f"  {'met by' if number == 0 else '':<10} {clean(session)}")
    if len(shown.met) > _MET:
        click.echo(f"  {'':<10} and {len(shown.met) - _MET} earlier ones; --json lists them")
    if shown.omitted:
        click.echo(f"  not in the brief of a new session: {clean(shown.omitted)}")
    before, since = shown.before, shown.since
    if shown.sessions:
        click.echo(
            f"  shown to {format_count(len(shown.sessions), 'session')}: {state_recurrence(before)} sessions met it before, "
            f"{state_recurrence(since)} since"
        )
    else:
        click.echo("  not shown to any session yet")
    show_note_trial(shown.trial)


@notes.command("approve")
@click.argument("note", nargs=-1, required=True)
@_reason
@json_lines_option
@click.pass_obj
def approve_note(ws: Warmstart, note: tuple[str, ...], reason: str, as_json: bool) -> None:
    """Use notes: your decision, on the record."""
    for name in note:
        _report(ws.notes.approve(name, reason=reason), as_json)


@notes.command("retire")
@click.argument("note", nargs=-1, required=True)
@_reason
@json_lines_option
@click.pass_obj
def retire_note(ws: Warmstart, note: tuple[str, ...], reason: str, as_json: bool) -> None:
    """Stop using notes. They stay retired, however often sessions meet them."""
    for name in note:
        _report(ws.notes.retire(name, reason=reason), as_json)


@notes.command("edit")
@click.argument("note")
@click.argument("text")
@_reason
@json_option
@click.pass_obj
def edit_note(ws: Warmstart, note: str, text: str, reason: str, as_json: bool) -> None:
    """Replace the sentence of a note, and use it."""
    _report(ws.notes.edit(note, text, reason=reason), as_json)


@notes.command("make")
@click.argument("session")
@click.argument("call", type=click.IntRange(0))
@click.argument("text", default="")
@json_option
@click.pass_obj
def make_note(ws: Warmstart, session: str, call: int, text: str, as_json: bool) -> None:
    """Make a note of a failed CALL of SESSION, numbered as `sessions show` numbers it, and use it.

    TEXT replaces the sentence. Where the cause is not recognised it is needed, and only briefs show the note.
    """
    _report(ws.notes.make(session, call, text), as_json)


@notes.command("share")
@click.argument("note")
@json_option
@click.pass_obj
def share_note(ws: Warmstart, note: str, as_json: bool) -> None:
    """Let every user and profile of the project use a note."""
    _report(ws.notes.share(note), as_json)


@notes.command("unshare")
@click.argument("note")
@json_option
@click.pass_obj
def unshare_note(ws: Warmstart, note: str, as_json: bool) -> None:
    """Take a shared note back into the scope that it was made in."""
    _report(ws.notes.unshare(note), as_json)


@notes.command("delete")
@click.argument("note")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def delete_note(ws: Warmstart, note: str, yes: bool, as_json: bool) -> None:
    """Delete a note. Learning makes it again while sessions support it; to silence it, retire it."""
    one = ws.notes.show(note).note
    if not yes:
        if not sys.stdin.isatty():
            raise Refused(f"note {one.id} was not deleted; add --yes")
        click.confirm(f"Delete note {one.id}: {clean(one.text)}?", abort=True)
    ws.notes.delete(one.id)
    if as_json:
        print_json({"deleted": one.id})
    else:
        click.echo(f"deleted {one.id}")


@notes.command("brief")
@click.option("--cwd", type=PATH, help="Folder of the session.  [default: this folder]")
@_project
@click.option("--task", default="", help="The request of the session: notes that fit it move up.")
@click.option("--agent", help="The agent, whose own rules are added.  [default: the one used most in the project]")
@click.option("--budget", type=click.IntRange(0, LONGEST_BRIEF), help="Maximum tokens.  [default: 300]")
@json_option
@click.pass_obj
def write_brief(
    ws: Warmstart,
    cwd: Path | None,
    project: str | None,
    task: str,
    agent: str | None,
    budget: int | None,
    as_json: bool,
) -> None:
    """Print the brief that a session in this project would start with."""
    print_brief(ws, BriefOptions(cwd=cwd, project=project, task=task, agent=agent, budget=budget, as_json=as_json))


@notes.command("publish")
@click.argument("file", type=PATH)
@_project
@click.option("--yes", is_flag=True, help="Write without asking.")
@json_option
@click.pass_obj
def publish_notes(ws: Warmstart, file: Path, project: str | None, yes: bool, as_json: bool) -> None:
    """Write the active notes into a managed block of FILE: AGENTS.md, CLAUDE.md, GEMINI.md or a SKILL.md.

    Shows the difference and asks. Text outside the block is never touched; publishing again updates only the block.
    """
    name = ws.projects.find(project or str(file.absolute().parent)).name
    if not ws.notes.list(project=name):
        raise Refused(f"no notes about {name}; name another project with --project, or run: warmstart learn")
    published = ws.notes.publish(file, project=name)
    if not published.changed:
        _report_published(file, changed=False, lines=published.lines, as_json=as_json)
        return
    if not as_json:
        click.echo(clean_lines(published.diff()))
    if not yes:
        if not sys.stdin.isatty():
            raise Refused(f"{file} was not written; look at the difference and add --yes")
        click.confirm(f"Write {file}?", abort=True)
    published.write()
    _report_published(file, changed=True, lines=published.lines, as_json=as_json)


def _report_published(file: Path, *, changed: bool, lines: int, as_json: bool) -> None:
    if as_json:
        print_json({"file": str(file), "changed": changed, "lines": lines})
    else:
        click.echo(f"{file}: {format_count(lines, 'note')}" + ("" if changed else ", already up to date"))


@notes.command("export")
@click.argument("file", type=PATH)
@_project
@json_option
@click.pass_obj
def export_notes(ws: Warmstart, file: Path, project: str | None, as_json: bool) -> None:
    """Write notes to FILE as JSON lines. Personal scopes and folders of yours are left out."""
    chosen = [note for note in ws.notes.list(project=_find(ws, project)) if note.scope in ("", "*")]
    encode = msgspec.json.Encoder(order="deterministic").encode
    data = b"".join(
        encode(structs.replace(note, shown=0, recurred=0, errors=(), sessions=())) + b"\n" for note in chosen
    )
    write_whole(file, data)
    if as_json:
        print_json({"file": str(file), "notes": len(chosen)})
    else:
        click.echo(f"{file}: {format_count(len(chosen), 'note')}")


@notes.command("import")
@click.argument("file", type=PATH)
@click.option("--approve", is_flag=True, help="Use them at once: your decision, on the record.")
@json_lines_option
@click.pass_obj
def import_notes(ws: Warmstart, file: Path, approve: bool, as_json: bool) -> None:
    """Read notes that `notes export` wrote. They stay proposed until you approve them."""
    imported = ws.notes.import_(_read_notes(file), str(file))
    for note in imported:
        _report(ws.notes.approve(note.id) if approve else note, as_json)
    if not imported and not as_json:
        click.echo(f"{file}: no new notes")


def _read_notes(file: Path) -> list[Note]:
    try:
        if file.stat().st_size > _LARGEST_IMPORT:
            raise SourceError(str(file), f"larger than {_LARGEST_IMPORT} bytes")
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise SourceError(str(file), f"cannot be read: {error}") from error
    decoder = msgspec.json.Decoder(Note)
    notes_read = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                notes_read.append(decoder.decode(line))
            except (msgspec.DecodeError, RecursionError) as error:
                raise SourceError(str(file), f"not a note: {error}", number) from error
    return notes_read


def describe_note(note: Note) -> dict[str, Any]:
    """Return the JSON form of a note."""
    times = {"first_seen": format_iso(note.first_seen), "last_seen": format_iso(note.last_seen)}
    return structs.asdict(note) | times


def describe_shown_note(shown: ShownNote) -> dict[str, Any]:
    """Return the JSON form of a note with its evidence."""
    return describe_note(shown.note) | {
        "decisions": [structs.asdict(one) | {"at": format_iso(one.at)} for one in shown.decisions],
        "sessions": shown.sessions,
        "met": shown.met,
        "before": shown.before,
        "since": shown.since,
        "trial": shown.trial,
        "omitted": shown.omitted,
    }


def _report(note: Note, as_json: bool) -> None:
    if as_json:
        print_json(describe_note(note))
    else:
        click.echo(f"{note.id}  {note.status}  {clean(note.text)}")
