"""The command line: `warmstart COMMAND`. Every command takes --json; without it a person reads tables.

Commands are loaded when they are called: a hook that asks for a seed must not wait for the readers' imports.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from warmstart import __version__
from warmstart.errors import ConfigError, WarmstartError

PATH = click.Path(path_type=Path)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")

COMMANDS = {  # name -> where it lives
    "inspect": "cli_read:inspect",
    "ingest": "cli_read:ingest",
    "sessions": "cli_read:sessions",
    "learn": "cli_templates:learn",
    "capture": "cli_templates:capture",
    "templates": "cli_templates:templates",
    "provision": "cli_provision:provision",
    "record": "cli_effect:record",
    "report": "cli_effect:report",
    "experiment": "cli_effect:experiment",
    "insights": "cli_insights:insights",
    "usage": "cli_usage:usage",
    "review": "cli_review:review",
    "hook": "cli_hook:hook",
    "mcp": "cli_mcp:mcp",
    "confirm": "cli_confirm:confirm",
    "jobs": "cli_jobs:jobs",
    "lab": "cli_lab:lab",
    "doctor": "cli_read:doctor",
    "demo": "demo:demo",
}


class _Program(click.Group):
    """Loads commands when called and shows every error of ours as one line: what is wrong and what to do."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command = getattr(import_module(f"warmstart.doors.{module}"), name)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ConfigError as error:
            raise click.UsageError(_one_line(error)) from error
        except WarmstartError as error:
            raise click.ClickException(_one_line(error)) from error
        except BrokenPipeError:
            sys.stderr.close()
            sys.exit(141)


def _one_line(error: WarmstartError) -> str:
    from warmstart.doors.show import clean

    return " ".join(clean(error).split())


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="warmstart")
@click.option("--home", type=PATH, help="Where Warmstart keeps its data (default: WARMSTART_HOME or ~/.warmstart).")
@click.option("--store", help="Another store: a path or sqlite:///path (default: warmstart.db under the home).")
@click.pass_context
def main(ctx: click.Context, home: Path | None, store: str | None) -> None:
    """Agents that start experienced: learn from transcripts which tool calls really worked."""
    from warmstart import config
    from warmstart.pipeline import Warmstart

    ctx.obj = ctx.with_resource(Warmstart(config.load(home, store)))
