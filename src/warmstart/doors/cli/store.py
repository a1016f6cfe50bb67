"""The command `warmstart store`: the database itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from warmstart.doors.cli.main import json_option
from warmstart.doors.cli.store_copy import copy_store
from warmstart.doors.render.terminal import clean, print_json

if TYPE_CHECKING:
    from warmstart.pipeline import Warmstart


@click.group()
def store() -> None:
    """Look after the store: a SQLite file, or PostgreSQL for a team."""


store.add_command(copy_store)


@store.command()
@click.argument("projects", nargs=-1, required=True, metavar="PROJECT...")
@json_option
@click.pass_obj
def allow(ws: Warmstart, projects: tuple[str, ...], as_json: bool) -> None:
    """Let a store on a server take the sessions of these projects.

    Others may read that store, so it takes nothing else of this machine. PROJECT is a project's name or its end, a folder, or
    a pattern such as 'github.com/acme/*'; '*' is everything, also sessions without a project and those of other profiles and
    chats. It is written to store_projects in config.toml; to take a project back, edit it there.
    """
    from warmstart.doors.settings_edit.own_settings import add_names

    folders = (".", "..")
    names = [str(Path(name).resolve()) if name in folders else name for name in projects]
    allowed = add_names(ws.settings.home / "config.toml", "store_projects", names)
    if as_json:
        print_json({"store_projects": allowed})
        return
    click.echo(f"a store on a server may take: {', '.join(map(clean, allowed))}")


@store.command()
@json_option
def roles(as_json: bool) -> None:
    """Print the SQL that makes the roles of a team's PostgreSQL store.

    It makes the roles warmstart_member and warmstart_hook and the policies that keep what is personal to its owner. Review
    it, then run it with psql and the role that owns the store, or as a superuser; its head says how to give people access to
    projects.
    """
    from warmstart.store.roles import PSQL, read_roles

    sql = read_roles()
    if as_json:
        print_json({"sql": sql})
    else:
        click.echo(PSQL + sql, nl=False)
