"""`warmstart jobs check`: find scheduled jobs that would fail, before their next run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from msgspec import structs

from warmstart.config import Settings, read_variable
from warmstart.doors.cli.main import PATH, json_option
from warmstart.errors import NotFound
from warmstart.jobs import (
    JobCheck,
    JobSource,
    JobsReport,
    ask_window,
    check_jobs,
    find_hermes_homes,
    read_hermes,
    read_list,
)
from warmstart.pipeline import Warmstart


@click.group()
def jobs() -> None:
    """Check scheduled jobs of Hermes and other agents."""


@jobs.command()
@click.option("--hermes-home", type=PATH, help="Hermes' home.  [default: HERMES_HOME or ~/.hermes]")
@click.option("--jobs", "listed", type=PATH, help="Also check the jobs in this TOML list of other agents' jobs.")
@click.option("--ask-endpoint", is_flag=True, help="Ask the jobs' model servers for context windows not set by hand.")
@json_option
@click.pass_obj
def check(ws: Warmstart, hermes_home: Path | None, listed: Path | None, ask_endpoint: bool, as_json: bool) -> None:
    """Check that each job's model has a large enough context window.

    Exits with 1 if a job would fail at its next run or a file cannot be read. An unknown window is a warning, not a
    failure. Without --ask-endpoint no network is used.
    """
    checked = check_jobs(read_sources(ws.settings, hermes_home, listed, ask_endpoint))
    if as_json:
        from warmstart.doors.render.terminal import print_json

        print_json(describe_checks(checked))
    else:
        _show_checks(checked)
    if not checked.is_fine:
        sys.exit(1)


def read_sources(settings: Settings, home: Path | None, listed: Path | None, ask: bool) -> Iterator[JobSource]:
    """Read the jobs of Hermes' homes and of a list; `ask`: also ask the jobs' model servers for context windows."""
    if home is not None and not home.is_dir():
        raise NotFound(f"there is no Hermes home at {home}; give the folder that holds cron/jobs.json")
    asking = ask_window if ask else None
    for place in find_hermes_homes(home or settings.places.get("HERMES_HOME") or settings.user_home / ".hermes"):
        yield read_hermes(place, read_variable, asking)
    if listed is not None:
        yield read_list(listed, read_variable, asking)


def describe_checks(checked: JobsReport) -> dict[str, Any]:
    """Describe the checks for JSON: `{jobs[], failing, unknown, problems[{path line reason}]}`."""
    return {
        "jobs": [structs.asdict(job) for job in checked.jobs],
        "failing": len(checked.failing),
        "unknown": sum(job.verdict == "unknown" for job in checked.jobs),
        "problems": [{"path": p.path, "line": p.line, "reason": p.reason} for p in checked.problems],
    }


def _show_checks(checked: JobsReport) -> None:
    from warmstart.doors.render.terminal import clean, print_table

    if checked.jobs:
        columns = ("job", "model", "set by", "#context window", "known from", "result", "next run")
        print_table(columns, map(_describe_row, checked.jobs))
    elif not checked.problems:
        click.echo("no scheduled jobs found; name other places with --hermes-home or --jobs")
    for job in checked.jobs:
        if job.verdict == "fails":
            click.echo(clean(f"{job.name} ({job.id}) would fail {_describe_when(job)}: {job.reason}."), err=True)
        elif job.verdict == "unknown" or job.reason.startswith(("HERMES_MODEL", "paused")):
            click.echo(clean(f"{job.name} ({job.id}): {job.reason}."), err=True)
    for problem in checked.problems:
        click.echo(clean(f"Error: {problem}"), err=True)


def _describe_row(job: JobCheck) -> tuple[Any, ...]:
    from warmstart.doors.render.terminal import coloured

    words = {"fails": "failure", "skipped": "paused"}
    result = "paused" if job.paused else words.get(job.verdict, job.verdict)
    window = "" if job.window is None else f"{job.window:,}"
    return job.name, job.model, job.model_from, window, job.window_from, coloured(result), job.next_run[:16]


def _describe_when(job: JobCheck) -> str:
    return f"at its next run, {job.next_run}" if job.next_run else "at its next run"
