"""The command `warmstart store`: the database itself."""

from __future__ import annotations

import click

from warmstart.doors.cli.main import json_option
from warmstart.doors.cli.store_copy import copy_store
from warmstart.doors.render.terminal import print_json


@click.group()
def store() -> None:
    """Look after the store: a SQLite file, or PostgreSQL for a team."""


store.add_command(copy_store)


@store.command()
@json_option
def roles(as_json: bool) -> None:
    """Print the SQL that makes the roles of a team's PostgreSQL store.

    It makes the roles warmstart_member and warmstart_hook and the policies that keep what is personal to its owner. Review
    it, then run it with psql and the role that owns the store; its head says how to give people access to projects.
    """
    from warmstart.store.roles import read_roles

    sql = read_roles()
    if as_json:
        print_json({"sql": sql})
    else:
        click.echo(sql, nl=False)
