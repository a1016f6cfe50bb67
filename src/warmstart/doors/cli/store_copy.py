"""`warmstart store copy`: move a store between a file and a server, either way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from warmstart.doors.cli.main import json_option
from warmstart.doors.render.terminal import clean, print_json, print_table, progress_bar
from warmstart.plurals import format_count

if TYPE_CHECKING:
    from warmstart.pipeline import Warmstart


@click.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--project", "projects", multiple=True, help="Copy only this project. May be given several times.")
@click.option("--all-projects", is_flag=True, help="Into a server: copy every project, also those of yours alone.")
@click.option("--personal", is_flag=True, help="Into a server: also scopes of agents' profiles, users and chats.")
@json_option
@click.pass_obj
def copy_store(
    ws: Warmstart,
    source: str,
    target: str,
    projects: tuple[str, ...],
    all_projects: bool,
    personal: bool,
    as_json: bool,
) -> None:
    """Copy the store FROM, a path or an address, into the empty store TO.

    Every table is read back and compared by count and digest before anything is kept; a copy that was interrupted leaves
    TO empty and can be run again. FROM is not changed. Into a server, which others read, name the projects to copy, or say
    --all-projects; personal scopes stay behind unless you say --personal.
    """
    from warmstart.addresses import SERVERS

    is_shared = target.startswith(SERVERS)
    if is_shared and not projects and not all_projects:
        raise click.UsageError("others may read that store: name the projects to copy (--project), or --all-projects")
    with progress_bar("copying", lines=not as_json) as advance:
        copied = ws.copy_store(
            source,
            target,
            projects=projects or None,
            personal=personal or not is_shared,
            progress=advance,
        )
    if as_json:
        print_json(copied)
        return
    print_table(
        ("table", "#rows", "digest"),
        [(table.name, table.rows, table.digest[:16]) for table in copied.tables if table.rows],
    )
    rows = format_count(sum(table.rows for table in copied.tables), "row")
    verb = "were there already, as in the source" if copied.already_there else "copied and verified"
    click.echo(f"{clean(copied.source)} -> {clean(copied.target)}: {rows} {verb}; {copied.left_out:,} left out")
    if copied.limited:
        click.echo("your role sees only a part of that store (row-level security); no more than that was copied")
    if copied.changed_texts:
        click.echo(
            f"{format_count(copied.changed_texts, 'row')} held NUL characters, which PostgreSQL cannot hold: now U+FFFD"
        )
    click.echo("to use it: set store in config.toml or WARMSTART_STORE, then run: warmstart learn")
