"""`warmstart jobs prompt`, `classify` and `history`: for schedulers that start agents, and for the person the morning after."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from msgspec import Struct, structs

from warmstart.doors.cli.job_sources import hermes_home_option, list_option, read_sources
from warmstart.doors.cli.main import PATH, json_option
from warmstart.doors.render.terminal import clean, coloured, format_iso, format_time, print_json, print_table
from warmstart.errors import NotFound, Refused
from warmstart.jobs import Job, JobSource, build_job_prompt, classify_job_output
from warmstart.judging.gate import explain_failure
from warmstart.model import is_job, name_job
from warmstart.pipeline import Warmstart
from warmstart.store import SessionRow
from warmstart.store.history import decode_session

_SHOWN = 20


@click.command("prompt")
@click.argument("job")
@hermes_home_option
@list_option
@click.option("--model", help="The model that runs it.  [default: the job's own, or that of the settings]")
@click.option("--provider", help="The provider of that model.")
@click.option("--script-output", type=PATH, help="What the job's script printed; -: standard input.")
@click.option("--script-failed", is_flag=True, help="The script failed.")
@json_option
@click.pass_obj
def print_prompt(
    ws: Warmstart,
    job: str,
    hermes_home: Path | None,
    listed: Path | None,
    model: str | None,
    provider: str | None,
    script_output: Path | None,
    script_failed: bool,
    as_json: bool,
) -> None:
    """Print the prompt for a run of a job: rules, runtime, the script's output, its skills, its own words.

    JOB is the id or the name of a job of Hermes or of the list.
    """
    source, found = _find_job(read_sources(ws.settings, hermes_home, listed), job)
    if script_output is not None:
        found = structs.replace(found, script_output=_read_text(script_output), script_failed=script_failed)
    elif script_failed:
        found = structs.replace(found, script_output="", script_failed=True)
    runtime = source.runtime
    default = next((named for _origin, named in runtime.models if named), "")
    prompt = build_job_prompt(found, model or found.model or default, provider or found.provider or runtime.provider)
    if as_json:
        print_json({"job": found.id, "text": prompt.text, "routing": prompt.routing})
    else:
        click.echo(prompt.text)


@click.command("classify")
@click.argument("answer", type=PATH, required=False)
@json_option
def classify_answer(answer: Path | None, as_json: bool) -> None:
    """Say how a run ended, by its answer: delivered, silent or failed (exit 1).

    ANSWER is a file; without it, or with -, standard input.
    """
    output = classify_job_output(_read_text(answer or Path("-")))
    if as_json:
        print_json(output)
    else:
        click.echo(f"{output.status}: {clean(output.reason)}" if output.reason else output.status)
    if output.status == "failed":
        sys.exit(1)


class JobRun(Struct, frozen=True, kw_only=True):
    """One run of a scheduled job, as its stored session shows it."""

    job: str  # id
    name: str
    session: str
    status: str  # failed, ok
    reason: str  # why it failed
    started: float | None
    calls: int
    errors: int


@click.command("history")
@click.argument("job", required=False)
@hermes_home_option
@list_option
@click.option("--limit", type=click.IntRange(1), default=_SHOWN, show_default=True, help="Runs to list.")
@json_option
@click.pass_obj
def list_runs(
    ws: Warmstart, job: str | None, hermes_home: Path | None, listed: Path | None, limit: int, as_json: bool
) -> None:
    """List the latest runs of scheduled jobs, and why they failed. JOB is an id or a name.

    A run that ends with the mark of a failure, or without an answer, has failed; nothing is learned from it.
    """
    known = [found for source in read_sources(ws.settings, hermes_home, listed) for found in source.jobs]
    runs = _list_runs(ws, known, job)[:limit]
    stopped = [found for found in known if found.last_error and (job is None or _is_named(found, job))]
    if as_json:
        print_json(
            {
                "runs": [structs.asdict(run) | {"started": format_iso(run.started)} for run in runs],
                "last_errors": [{"job": one.id, "name": one.name, "error": one.last_error} for one in stopped],
            }
        )
        return
    if runs:
        columns = ("job", "run", "started (UTC)", "result", "#calls", "#errors", "why")
        rows = [
            (
                run.name,
                run.session,
                format_time(run.started),
                coloured("failure" if run.status == "failed" else run.status),
            )
            + (run.calls, run.errors, run.reason)
            for run in runs
        ]
        print_table(columns, rows)
    else:
        click.echo("no runs of scheduled jobs stored; run: warmstart ingest")
    for one in stopped:
        click.echo(clean(f"{one.name} ({one.id}): its last run ended with: {one.last_error}"), err=True)


def _list_runs(ws: Warmstart, known: Sequence[Job], job: str | None) -> list[JobRun]:
    rows = [row for row in ws.sessions(limit=None) if is_job(row.project)]
    names = {name_job(one.id): one.name for one in known}
    wanted = {name_job(one.id) for one in known if _is_named(one, job)} | {name_job(job)} if job else None
    runs = [_read_run(row, names.get(row.project or "", "")) for row in rows if wanted is None or row.project in wanted]
    if job and not runs and not any(_is_named(one, job) for one in known):
        raise NotFound(f"no job {job}, and no run of one; {_list_names(known)}")
    return runs


def _read_run(row: SessionRow, name: str) -> JobRun:
    past = decode_session(row, ()) if row.verdict == "failure" else None
    job = (row.project or "").removeprefix(name_job(""))
    return JobRun(
        job=job,
        name=name or job,
        session=row.id,
        status="failed" if row.verdict == "failure" else "ok",
        reason=explain_failure(past) if past else "",
        started=row.started,
        calls=row.calls,
        errors=row.errors,
    )


def _find_job(sources: Iterable[JobSource], name: str) -> tuple[JobSource, Job]:
    known = [(source, job) for source in sources for job in source.jobs]
    matching = [pair for pair in known if pair[1].id == name] or [pair for pair in known if _is_named(pair[1], name)]
    if not matching:
        raise NotFound(f"no job {name}; {_list_names([job for _source, job in known])}")
    if len(matching) > 1:
        ids = ", ".join(job.id for _source, job in matching)
        raise Refused(f"several jobs are called {name}; give an id: {ids}")
    return matching[0]


def _is_named(job: Job, name: str | None) -> bool:
    return name is not None and name in (job.id, job.name)


def _list_names(jobs: Sequence[Job]) -> str:
    if not jobs:
        return "no scheduled jobs found; name other places with --hermes-home or --jobs"
    return f"there are: {', '.join(f'{job.name} ({job.id})' for job in jobs[:_SHOWN])}"


def _read_text(path: Path) -> str:
    if str(path) == "-":
        return sys.stdin.read()
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}") from error


def add_to(group: click.Group) -> None:
    """Add the commands to `warmstart jobs`."""
    for command in (print_prompt, classify_answer, list_runs):
        group.add_command(command)
