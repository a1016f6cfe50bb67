"""The command line: `warmstart COMMAND`. Commands print tables for people and, with --json, JSON for programs.

Commands are loaded when they are called, so that none waits for the imports of the others.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from warmstart import __version__
from warmstart.errors import ConfigError, WarmstartError

if TYPE_CHECKING:
    from warmstart.pipeline import Warmstart

PATH = click.Path(path_type=Path)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON value, for programs.")
json_lines_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON lines, one object per line, for programs."
)

_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

COMMANDS = {  # name -> module and attribute
    "inspect": "read:inspect",
    "ingest": "read:ingest",
    "sessions": "sessions:sessions",
    "projects": "projects:projects",
    "archive": "archive:archive",
    "lake": "lake:lake",
    "learn": "templates:learn",
    "capture": "templates:capture",
    "templates": "templates:templates",
    "notes": "notes:notes",
    "bundle": "bundle:bundle",
    "where": "where:where",
    "advise": "advise:advise",
    "provision": "provision:provision",
    "record": "effect:record",
    "report": "effect:report",
    "experiment": "effect:experiment",
    "insights": "insights:insights",
    "usage": "usage:usage",
    "ui": "ui:ui",
    "review": "review:review",
    "hook": "hook:hook",
    "mcp": "mcp:mcp",
    "confirm": "confirm:confirm",
    "jobs": "jobs:jobs",
    "lab": "lab:lab",
    "store": "store:store",
    "doctor": "doctor:doctor",
    "demo": "demo:demo",
}


class _Program(click.Group):
    """Loads commands when they are called, and prints each of our errors as one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command = getattr(import_module(f"warmstart.doors.cli.{module}"), name)
        assert isinstance(command, click.Command)
        return command

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with _end_with_the_output():  # --help prints here
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _end_with_the_output():
                return super().invoke(ctx)
        except click.UsageError as error:
            from warmstart.doors.cli.words import explain_unknown

            raise explain_unknown(error) or error from error.__cause__
        except ConfigError as error:
            raise click.UsageError(_one_line(error)) from error
        except WarmstartError as error:
            raise click.ClickException(_one_line(error)) from error


def report_failure(error: BaseException) -> NoReturn:
    """End as a command does that raised this error; for commands that ran without click."""

    def fail() -> None:
        raise error

    _Program("warmstart", callback=fail, invoke_without_command=True).main([], prog_name="warmstart")
    raise AssertionError("click ends the process")


@contextmanager
def _end_with_the_output() -> Iterator[None]:
    """End when the output cannot be written.

    A reader that has gone (`warmstart ... | head`) ends the program silently with 128 + SIGPIPE, a full disk with an error.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        sys.exit(141)
    except OSError as error:
        if error.errno not in _DISK_ERRORS:
            raise
        _drop_output()
        file = f" {error.filename}" if error.filename else ""
        problem = f"cannot write{file}: {error.strerror}; free some space, or write elsewhere, and run it again"
        raise click.ClickException(_one_line(problem)) from error


def _drop_output() -> None:
    with suppress(OSError, ValueError):  # buffered output would fail again when the interpreter ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _one_line(error: WarmstartError | str) -> str:
    from warmstart.doors.render.terminal import clean

    return " ".join(clean(error).split())


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="warmstart")
@click.option("--home", type=PATH, help="Where Warmstart keeps its data (default: WARMSTART_HOME or ~/.warmstart).")
@click.option(
    "--store",
    help="Another store: a path, or postgresql://user@host/database (default: warmstart.db in the home).",
)
@click.pass_context
def main(ctx: click.Context, home: Path | None, store: str | None) -> None:
    """Agents that start experienced: learn from transcripts which tool calls really worked."""
    from warmstart import config
    from warmstart.pipeline import Warmstart
    from warmstart.store import may_exist

    ws = ctx.obj = ctx.with_resource(Warmstart(config.load(home, store)))
    if (home or store) and not may_exist(ws.settings.store_url):
        ctx.call_on_close(lambda: _report_new_store(ws))


def _report_new_store(ws: Warmstart) -> None:
    """Say that a command made the store that --home or --store names, if nothing was put in: it may be mistyped."""
    from warmstart.doors.render.terminal import clean
    from warmstart.store import may_exist

    url = ws.settings.store_url
    with suppress(WarmstartError, OSError):
        if may_exist(url) and not ws.count_sessions() and not ws.templates.stats()["templates"]:
            click.echo(f"{clean(url)} is a new, empty store", err=True)
