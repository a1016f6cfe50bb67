"""The command `warmstart store`: the database itself."""

from __future__ import annotations

import click

from warmstart.doors.cli.store_copy import copy_store


@click.group()
def store() -> None:
    """Look after the store: a SQLite file, or PostgreSQL for a team."""


store.add_command(copy_store)
