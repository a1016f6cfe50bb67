"""Commands that read transcripts: inspect, ingest."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warmstart.doors.cli.main import json_lines_option, json_option
from warmstart.doors.cli.options import engine_option, jobs_option
from warmstart.doors.render.fitted import Column, print_fitted
from warmstart.doors.render.terminal import (
    clean,
    coloured,
    format_iso,
    format_time,
    print_error_json,
    print_json,
    progress_bar,
)
from warmstart.errors import SourceError
from warmstart.formats.source import Source
from warmstart.ingest.read import Scored, scan
from warmstart.ingest.records import Recorder
from warmstart.ingest.sources import find_sources
from warmstart.model import Problem
from warmstart.pipeline import Warmstart
from warmstart.plurals import format_count
from warmstart.projects.gate import NO_PROJECT

if TYPE_CHECKING:
    from warmstart.lake.library import LakeLibrary

_MOST_LISTED = 20  # projects that were left out
SOURCE = click.Path()  # a string: a Path would change addresses


@click.command()
@click.argument("paths", nargs=-1, required=True, type=SOURCE)
@json_lines_option
@click.pass_obj
def inspect(ws: Warmstart, paths: tuple[str, ...], as_json: bool) -> None:
    """Parse, judge and score transcripts. Stores nothing.

    They are files, folders, archives, git:PATH#BRANCH, and https://, s3:// or gs:// addresses.
    """
    recorder = Recorder(ws.settings.secrets)
    rows: list[list[Any]] = []
    problems: list[Problem] = []
    sessions = 0
    with progress_bar("reading", lines=not as_json) as report_progress:
        for done, source in enumerate(_find_sources(paths, problems)):
            report_progress(done, None, source.path.name)
            for scored in scan(source, ws.settings.tools, causes=False):  # it shows none
                sessions += 1
                if as_json:
                    print_json(_session_json(scored, recorder))
                else:
                    rows.append(_session_line(scored, recorder))
            problems += source.problems
    if rows:
        print_fitted(_SESSION_COLUMNS, rows)
    _print_problems(problems, recorder, as_json)
    if problems and not sessions:
        sys.exit(1)


def _find_sources(paths: tuple[str, ...], problems: list[Problem]) -> Iterator[Source]:
    for path in paths:
        try:
            yield from find_sources(path, problems)
        except SourceError as error:
            problems.append(Problem(error.path, error.reason))


_SESSION_COLUMNS = (
    Column("session", 36),
    Column("agent", 14, drop=1),
    Column("model", 24, drop=5),
    Column("started (UTC)", 16, drop=2),
    Column("#calls", 7),
    Column("#errors", 7),
    Column("kind", 16, drop=4),
    Column("verdict", 8),
    Column("#quality", 7, drop=3),
)


def _session_line(scored: Scored, recorder: Recorder) -> list[Any]:
    session, score = scored.session, scored.score
    return [
        recorder.name(session.id),
        session.agent,
        recorder.name(session.model or ""),
        format_time(session.started),
        score.counts.tool_calls,
        score.counts.error_count,
        f"{score.category}/{score.task_type}",
        coloured(score.verdict),
        f"{score.quality:.2f}",
    ]


def _session_json(scored: Scored, recorder: Recorder) -> dict[str, Any]:
    session, score = scored.session, scored.score
    name = recorder.name
    calls = [
        {
            "id": name(call.call_id),
            "tool": name(call.tool),
            "outcome": answer.outcome.status if answer else "unknown",
            "basis": answer.outcome.basis if answer else "none",
            "error_kind": answer.outcome.error_kind if answer else None,
        }
        for call, answer in session.calls()
    ]
    return {
        "id": name(session.id),
        "source_uri": name(session.source_uri),
        "format": session.format,
        "agent": session.agent,
        "model": name(session.model) if session.model else None,
        "started": format_iso(session.started),
        "messages": score.counts.total_messages,
        "calls": calls,
        "category": score.category,
        "task_type": score.task_type,
        "verdict": score.verdict,
        "quality": score.quality,
        "error_rate": score.counts.error_rate,
        "is_proficient": score.is_proficient,
        "is_successful": score.is_successful,
        "label": session.label,
        "usage": session.usage,
    }


def _print_problems(problems: list[Problem], recorder: Recorder, as_json: bool) -> None:
    for problem in problems[:1_000]:
        path = recorder.name(problem.path)
        if as_json:
            print_error_json({"problem": {"path": path, "line": problem.line, "reason": problem.reason}})
        else:
            line = "" if problem.line is None else f":{problem.line}"
            click.echo(f"{clean(path)}{line}: {clean(problem.reason)}", err=True)


@click.command()
@click.argument("paths", nargs=-1, type=SOURCE)
@click.option("--archive", "archived", is_flag=True, help="Read the archived transcripts that agents have deleted.")
@click.option(
    "--lake", metavar="DIR_OR_URL", help="Write to a lake in this folder or at this address, not to the store."
)
@click.option(
    "--project", "projects", multiple=True, help="Store only this project's sessions. May be given several times."
)
@click.option(
    "--all-projects", is_flag=True, help="Into a server's store: also projects that it was not allowed to take."
)
@jobs_option
@engine_option
@click.option("--personal", is_flag=True, help="With --lake: also write sessions of other profiles, chats and people.")
@json_option
@click.pass_obj
def ingest(
    ws: Warmstart,
    paths: tuple[str, ...],
    archived: bool,
    lake: str | None,
    projects: tuple[str, ...],
    all_projects: bool,
    jobs: int,
    engine: str | None,
    personal: bool,
    as_json: bool,
) -> None:
    """Read transcripts and store their sessions.

    They are files, folders, archives, git:PATH#BRANCH, and https://, s3:// or gs:// addresses; without a path, those in the
    usual places of Claude Code, Codex and other agents. A folder that is a git repository is also searched for checkpoints
    (branches entire/checkpoints/...).

    Others may read a store on a server: it takes the projects that you allow with `warmstart store allow`, or name here.
    """
    if projects and all_projects:
        raise click.UsageError("give either --project or --all-projects")
    if (projects or all_projects) and (archived or lake is not None):
        raise click.UsageError("--project and --all-projects do not go with --archive or --lake")
    if archived and paths:
        raise click.UsageError("--archive reads the whole archive; give either it or paths")
    if not archived and not paths and not ws.places():
        raise click.ClickException(
            "no transcripts in the agents' usual places (see: warmstart doctor); name a file or folder"
        )
    if lake is not None:
        if archived:
            raise click.UsageError("--archive reads into the store; give either it or --lake")
        _fill_lake(ws, ws.lake(lake, engine=engine, jobs=jobs), paths, personal=personal, as_json=as_json)
        return
    if engine is not None:
        raise click.UsageError("--engine belongs to --lake: a store is filled from one machine; use --jobs")
    if personal:
        raise click.UsageError(
            "--personal belongs to --lake: a store in a file keeps the sessions of every profile, chat and person"
        )
    with progress_bar("ingesting") as report_progress:
        named = ("*",) if all_projects else projects or None
        report = (
            ws.ingest_archive(report_progress, jobs=jobs)
            if archived
            else ws.ingest(*paths, projects=named, progress=report_progress, jobs=jobs)
        )
    if as_json:
        print_json(report)
    else:
        click.echo(
            f"{format_count(report.sessions, 'session')} read ({report.new} new, {report.updated} updated), "
            f"{format_count(report.messages, 'message')}, {format_count(report.calls, 'tool call')}, "
            f"{format_count(report.errors, 'error')}; {format_count(report.unchanged, 'file')} unchanged, "
            f"{report.skipped} skipped" + (f", {report.unreadable} unreadable" if report.unreadable else "")
        )
        for skip in report.skips:
            click.echo(f"skipped {format_count(skip.files, 'file')}: {skip.reason}, such as {clean(skip.example)}")
        if report.forgotten:
            click.echo(f"not stored again: {format_count(report.forgotten, 'session')} that you deleted")
        if report.trials:
            click.echo(f"{report.trials} trials closed; see: warmstart report")
        for change, names in (("retired", report.retired), ("promoted", report.promoted)):
            for name in names:
                click.echo(
                    f"template {clean(name)} {change} because of its measured effect; see: warmstart templates show"
                )
        if report.foreign:
            _print_foreign(report.foreign)
        if not projects:
            _print_left_out(report.left_out, nothing_allowed=not ws.settings.store_projects)
        _print_problems(report.problems, Recorder(ws.settings.secrets), as_json=False)
    if report.problems and not (report.sessions or report.unchanged):
        sys.exit(1)
    if report.left_out and not projects and not ws.settings.store_projects:
        sys.exit(1)


def _print_foreign(foreign: dict[str, int]) -> None:
    """Say that another role has stored the sessions, and how its rows become one's own."""
    known = ", ".join(clean(owner) for owner in sorted(foreign) if owner)
    by = f"the role {known}" if known else "a role whose rows you may not see"
    click.echo(
        f"not stored: {format_count(sum(foreign.values()), 'session')} that {by} stored before you. If it was you, with a "
        "role that you shared, the store's owner gives them to you; see 'A role for each' in docs/howto/team.md",
        err=True,
    )


def _print_left_out(left_out: dict[str, int], *, nothing_allowed: bool) -> None:
    """Name the projects whose sessions the shared store did not take, and how to allow them."""
    if not left_out:
        return
    listed = sorted(left_out, key=lambda name: (-left_out[name], name))
    sessions = format_count(sum(left_out.values()), "session")
    if nothing_allowed:
        click.echo("nothing was stored: others may read this store, and you have allowed it no project yet", err=True)
    click.echo(
        f"left out: {sessions} of {format_count(len(listed), 'project')} that this store may not take; allow one with:",
        err=True,
    )
    for name in listed[:_MOST_LISTED]:
        command = "'*' takes it:" if name == NO_PROJECT else "warmstart store allow"
        shown = name if name == NO_PROJECT else shlex.quote(clean(name))
        click.echo(f"  {command} {shown} ({format_count(left_out[name], 'session')})", err=True)
    if len(listed) > _MOST_LISTED:
        click.echo(f"  and {len(listed) - _MOST_LISTED} more", err=True)
    click.echo("once, without allowing it for hooks: warmstart ingest --project NAME, or --all-projects", err=True)


def _fill_lake(ws: Warmstart, lake: LakeLibrary, paths: tuple[str, ...], *, personal: bool, as_json: bool) -> None:
    places: list[Path | str] = [*paths] or [path for _agent, path in ws.places()]
    with progress_bar("filling the lake") as report_progress:
        report = lake.ingest(places, personal=personal, progress=report_progress)
    lake.close()
    if as_json:
        print_json(report)
    else:
        click.echo(
            f"{format_count(report.sessions, 'session')} read, {report.new} new in the lake, "
            f"{format_count(report.calls, 'tool call')}, {format_count(report.errors, 'error')}"
        )
        if report.personal:
            click.echo(f"left out: {format_count(report.personal, 'session')} of other scopes; --personal writes them")
        if report.forgotten:
            click.echo(f"not written again, because deleted from the lake: {format_count(report.forgotten, 'session')}")
        for skip in report.skips:
            click.echo(f"skipped {format_count(skip.files, 'file')}: {skip.reason}, such as {clean(skip.example)}")
        _print_problems(report.problems, Recorder(ws.settings.secrets), as_json=False)
    if report.unwritten or (report.problems and not report.sessions):
        sys.exit(1)
