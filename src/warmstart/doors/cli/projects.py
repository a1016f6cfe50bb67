"""`warmstart projects`: which repository each session belongs to, and a person's corrections."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec

from warmstart.doors.cli.main import json_option
from warmstart.doors.render.terminal import clean, format_iso, format_time, print_json, print_table
from warmstart.errors import NotFound
from warmstart.plurals import format_count

if TYPE_CHECKING:
    from warmstart.ingest.project_book import ProjectChange
    from warmstart.notes.sharing import SharingChange
    from warmstart.pipeline import Warmstart

_COLUMNS = ("project", "#sessions", "#folders", "known by", "also called", "last seen")


@click.group()
def projects() -> None:
    """List projects and correct which folders belong to them.

    A project is a repository, wherever it is checked out: clones, worktrees and subfolders belong to it. It is known by its
    git remote, else by its first commit, else by folder name and the files that sessions touched.
    """


@projects.command("list")
@json_option
@click.pass_obj
def list_projects(ws: Warmstart, as_json: bool) -> None:
    """List the projects, the latest first."""
    rows = ws.projects.list()
    if as_json:
        print_json([msgspec.structs.asdict(row) | {"last_seen": format_iso(row.last_seen)} for row in rows])
        return
    if not rows:
        click.echo("no projects; run: warmstart ingest")
        return
    print_table(
        _COLUMNS,
        [
            (row.project, row.sessions, len(row.folders), row.by, ", ".join(row.names), format_time(row.last_seen))
            for row in rows
        ],
    )
    for one, other, files in ws.projects.suggest():
        command = f"warmstart projects merge {clean(one)} {clean(other)}"
        click.echo(f"{files} files have the same paths in both; if it is one project, run: {command}")


@projects.command("merge")
@click.argument("project")
@click.argument("other")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def merge(ws: Warmstart, project: str, other: str, yes: bool, as_json: bool) -> None:
    """Make the sessions, templates and trials of OTHER those of PROJECT.

    Both may be given by identity, by the end of it, by another name or by a folder. `projects split OTHER` takes it back.
    """
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("merging moves sessions and templates; add --yes")
        kept, gone = clean(ws.projects.find(project).name), clean(ws.projects.find(other).name)
        click.confirm(f"Merge {gone} into {kept}?", abort=True, err=True)
    _show(ws.projects.merge(project, other), as_json)


@projects.command("alias")
@click.argument("name")
@click.argument("project")
@json_option
@click.pass_obj
def alias(ws: Warmstart, name: str, project: str, as_json: bool) -> None:
    """Let NAME, a folder or a word of your own, stand for PROJECT."""
    _show(ws.projects.alias(name, project), as_json)


@projects.command("split")
@click.argument("name", metavar="FOLDER")
@json_option
@click.pass_obj
def split(ws: Warmstart, name: str, as_json: bool) -> None:
    """Take back a merge or an alias of FOLDER, a folder or name.

    A folder that was joined to a project without a person becomes a project of its own.
    """
    _show(ws.projects.split(name), as_json)


@projects.command("scopes")
@click.argument("project")
@json_option
@click.pass_obj
def list_scopes(ws: Warmstart, project: str, as_json: bool) -> None:
    """List whose the sessions, notes and templates of PROJECT are: profiles and people, and what is shared."""
    from warmstart.doors.cli.templates import name_scope

    rows = ws.sharing.list(ws.projects.find(project).name)
    if not rows:
        raise NotFound(f"no project {project!r}; see: warmstart projects list")
    if as_json:
        print_json(rows)
        return
    cells = [(name_scope(row.scope), row.sessions, row.notes, row.templates) for row in rows]
    print_table(("scope", "#sessions", "#notes", "#templates"), cells)


@projects.command("share")
@click.argument("project")
@click.option("--scope", help="Only those of this profile or person; '': the machine's own user.  [default: all]")
@click.option("--reason", default="", help="Kept on the record.")
@json_option
@click.pass_obj
def share(ws: Warmstart, project: str, scope: str | None, reason: str, as_json: bool) -> None:
    """Share the notes and templates of PROJECT: notes with every profile and person in it, templates with every project.

    Each is a recorded decision. `projects unshare PROJECT` takes them back.
    """
    _show_sharing(ws.sharing.share(ws.projects.find(project).name, scope=scope, reason=reason), "shared", as_json)


@projects.command("unshare")
@click.argument("project")
@click.option("--reason", default="", help="Kept on the record.")
@json_option
@click.pass_obj
def unshare(ws: Warmstart, project: str, reason: str, as_json: bool) -> None:
    """Take the shared notes and templates of PROJECT back into the scopes that they were made in."""
    _show_sharing(ws.sharing.unshare(ws.projects.find(project).name, reason=reason), "no longer shared", as_json)


def _show_sharing(change: SharingChange, what: str, as_json: bool) -> None:
    if as_json:
        print_json(change)
        return
    counts = f"{format_count(len(change.notes), 'note')} and {format_count(len(change.templates), 'template')}"
    click.echo(f"{clean(change.project)}: {counts} {what}")


def _show(change: ProjectChange, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.structs.asdict(change))
        return
    sessions = format_count(change.moved, "session")
    click.echo(f"{clean(change.name)} belongs to the project {clean(change.project)}; {sessions} moved")
