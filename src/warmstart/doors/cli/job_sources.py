"""The files that list scheduled jobs, for every command about jobs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from warmstart.config import Settings, read_variable
from warmstart.doors.cli.main import PATH
from warmstart.errors import NotFound
from warmstart.jobs import JobSource, ask_window, find_hermes_homes, read_hermes, read_list

hermes_home_option = click.option("--hermes-home", type=PATH, help="Hermes' home.  [default: HERMES_HOME or ~/.hermes]")
list_option = click.option("--jobs", "listed", type=PATH, help="Also the jobs in this TOML list of other agents' jobs.")


def read_sources(
    settings: Settings, home: Path | None, listed: Path | None, *, ask: bool = False, offline: bool = True
) -> Iterator[JobSource]:
    """Yield the jobs of Hermes, profile by profile, and those of a list.

    `ask`: model servers may be asked. Where Hermes itself is installed, its own function does, and inside Hermes always
    unless `offline`.
    """
    from warmstart.doors.hermes.windows import INSIDE, is_hermes_here, make_finder

    if home is not None and not home.is_dir():
        raise NotFound(f"there is no Hermes home at {home}; give the folder that holds cron/jobs.json")
    asking = ask_window if ask else None
    is_asked = not offline and (ask or os.environ.get(INSIDE) == "hermes") and is_hermes_here()
    for place in find_hermes_homes(home or settings.places.get("HERMES_HOME") or settings.user_home / ".hermes"):
        yield read_hermes(place, read_variable, asking, make_finder(place) if is_asked else None)
    if listed is not None:
        yield read_list(listed, read_variable, asking)
