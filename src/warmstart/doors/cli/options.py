"""Options that several commands share: one name, one grammar and one help text each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from warmstart.doors.render.times import read_since
from warmstart.errors import NotWorthLearning


class Since(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A number of days back from now, or a date; converted to seconds since 1970."""

    name = "DAYS|DATE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return read_since(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


agent_option = click.option("--agent", help="Only sessions of this agent: claude-code, codex, hermes ...")
source_option = click.option(
    "--source", help="Only sessions that their agent ran for: cli, telegram, cron ... (Hermes)"
)
project_option = click.option("--project", help="Only sessions of this project: its name, the end of it, or a folder.")
since_option = click.option(
    "--since", type=Since(), help="Only sessions started in the last DAYS days, or on or after DATE (UTC)."
)

lake_option = click.option(
    "--lake", metavar="DIR_OR_URL", help="Use the lake in this folder or at this address instead of the store."
)
engine_option = click.option(
    "--engine", metavar="URL", help="With --lake: run the work on the Dask cluster of this scheduler, tcp://host:8786."
)
jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1, 512),
    default=1,
    show_default=True,
    help="Processes that read; each file or archive is read by one of them.",
)


@contextmanager
def offer_anyway() -> Iterator[None]:
    """Add to the gate's refusal how a person overrules it. Agents, who use other doors, never read it."""
    try:
        yield
    except NotWorthLearning as error:
        raise NotWorthLearning(f"{error}. To make a template of it all the same, add --anyway") from error


project_settings_option = click.option(
    "--project", is_flag=True, help="Use the settings of the project in this folder, not your own."
)
