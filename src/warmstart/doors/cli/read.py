"""Commands that read transcripts and show stored sessions: inspect, ingest, sessions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from warmstart.doors.cli.main import PATH, json_option
from warmstart.doors.cli.options import agent_option, project_option, since_option
from warmstart.doors.render.terminal import (
    clean,
    coloured,
    format_iso,
    format_time,
    print_error_json,
    print_json,
    print_table,
    progress_bar,
)
from warmstart.errors import SourceError
from warmstart.formats.source import Source
from warmstart.ingest.read import Scored, find_sources, scan
from warmstart.ingest.records import Recorder
from warmstart.model import Problem, Verdict
from warmstart.pipeline import Warmstart
from warmstart.store import SessionRow


@click.command()
@click.argument("paths", nargs=-1, required=True, type=PATH)
@json_option
@click.pass_obj
def inspect(ws: Warmstart, paths: tuple[Path, ...], as_json: bool) -> None:
    """Parse, judge and score transcripts (files or folders). Stores nothing."""
    recorder = Recorder(ws.settings.secrets)
    rows: list[list[Any]] = []
    problems: list[Problem] = []
    sessions = 0
    with progress_bar("reading", lines=not as_json) as report_progress:
        for done, source in enumerate(_find_sources(paths, problems)):
            report_progress(done, None, source.path.name)
            for scored in scan(source, ws.settings.tools):
                sessions += 1
                if as_json:
                    print_json(_session_json(scored, recorder))
                else:
                    rows.append(_session_line(scored, recorder))
            problems += source.problems
    if rows:
        print_table(_SESSION_COLUMNS, rows)
    _print_problems(problems, recorder, as_json)
    if problems and not sessions:
        sys.exit(1)


def _find_sources(paths: tuple[Path, ...], problems: list[Problem]) -> Iterator[Source]:
    for path in paths:
        try:
            yield from find_sources(path)
        except SourceError as error:
            problems.append(Problem(error.path, error.reason))


_SESSION_COLUMNS = ("session", "agent", "model", "started (UTC)", "#calls", "#errors", "kind", "verdict", "#quality")


def _session_line(scored: Scored, recorder: Recorder) -> list[Any]:
    session, score = scored.session, scored.score
    return [
        recorder.name(session.id)[:36],
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
@click.argument("paths", nargs=-1, type=PATH)
@json_option
@click.pass_obj
def ingest(ws: Warmstart, paths: tuple[Path, ...], as_json: bool) -> None:
    """Read transcripts and store their sessions. Without a path: those in the usual places of Claude Code, Codex ..."""
    if not paths and not ws.places():
        raise click.ClickException(
            "no transcripts in the agents' usual places (see: warmstart doctor); name a file or folder"
        )
    with progress_bar("ingesting") as report_progress:
        report = ws.ingest(*paths, progress=report_progress)
    if as_json:
        print_json(report)
    else:
        click.echo(
            f"{report.sessions} sessions read ({report.new} new, {report.updated} updated), {report.messages} messages, "
            f"{report.calls} tool calls, {report.errors} errors; {report.unchanged} files unchanged, {report.skipped} skipped"
        )
        if report.trials:
            click.echo(f"{report.trials} trials closed; see: warmstart report")
        for change, names in (("retired", report.retired), ("promoted", report.promoted)):
            for name in names:
                click.echo(
                    f"template {clean(name)} {change} because of its measured effect; see: warmstart templates show"
                )
        _print_problems(report.problems, Recorder(ws.settings.secrets), as_json=False)
    if report.problems and not (report.sessions or report.unchanged):
        sys.exit(1)


@click.group()
def sessions() -> None:
    """List, show and delete stored sessions."""


@sessions.command("list")
@agent_option
@project_option
@since_option
@click.option(
    "--verdict", type=click.Choice(["success", "failure", "unknown"]), help="Only sessions with this verdict."
)
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 100_000), help="Sessions to list.")
@click.option("--offset", default=0, type=click.IntRange(0), help="Sessions to skip.")
@json_option
@click.pass_obj
def list_sessions(
    ws: Warmstart,
    agent: str | None,
    project: str | None,
    since: float | None,
    verdict: Verdict | None,
    limit: int,
    offset: int,
    as_json: bool,
) -> None:
    """List the sessions, newest first."""
    rows = ws.sessions(limit=limit, offset=offset, agent=agent, verdict=verdict, project=project, since=since)
    if as_json:
        print_json([_row_json(row) for row in rows])
        return
    if not rows:
        filtered = any(value is not None for value in (agent, verdict, project, since)) or offset
        click.echo("no session matches the filters" if filtered else "no sessions; run: warmstart ingest")
        return
    lines = [
        (
            r.id[:36],
            r.agent,
            r.model or "",
            format_time(r.started),
            r.calls,
            r.errors,
            f"{r.category}/{r.task_type}",
            coloured(r.verdict),
            f"{r.quality:.2f}",
        )
        for r in rows
    ]
    print_table(_SESSION_COLUMNS, lines)


def _row_json(row: SessionRow) -> dict[str, Any]:
    shown = msgspec.structs.asdict(row)
    shown["score"] = msgspec.Raw(row.score.encode())
    shown["usage"] = msgspec.Raw(row.usage.encode()) if row.usage else None
    return shown | {name: format_iso(shown[name]) for name in ("started", "ended", "first_seen", "updated")}


@sessions.command("show")
@click.argument("session_id", metavar="ID")
@json_option
@click.pass_obj
def show_session(ws: Warmstart, session_id: str, as_json: bool) -> None:
    """Show one session with its calls. ID may be shortened."""
    record = ws.session(session_id)
    row = record.session
    if as_json:
        calls = []
        for call in record.calls:
            shown = msgspec.structs.asdict(call) | {
                "arguments": msgspec.Raw(call.arguments.encode()),
                "at": format_iso(call.at),
            }
            shown["outcome"] = shown.pop("status")
            calls.append(shown)
        print_json(_row_json(row) | {"tool_calls": calls})
        return
    facts = [
        ("session", row.id),
        ("agent", f"{row.agent} {row.model or ''}"),
        ("project", row.project or ""),
        ("task", (row.task or "")[:300]),
        ("started", format_time(row.started)),
        ("ended", f"{format_time(row.ended)} {row.end_reason or ''}"),
        ("kind", f"{row.category}/{row.task_type}"),
        ("verdict", f"{row.verdict}, quality {row.quality:.2f}, confidence {row.confidence:.2f}"),
        ("transcript", row.source_uri),
    ]
    print_table(("", ""), facts)
    score = msgspec.json.decode(row.score)
    print_table(
        ("#weight", "sign", "#step"),
        [(f"{e['weight']:+.2f}", e["sign"], "" if e["step"] is None else e["step"]) for e in score["evidence"]],
        title="why",
    )
    print_table(
        ("#", "tool", "outcome", "basis", "kind of error", "arguments"),
        [
            (c.ordinal, c.tool, coloured(c.status), c.basis, c.error_kind or "", c.arguments[:120])
            for c in record.calls[:200]
        ],
        title=f"{len(record.calls)} calls" + (", the first 200" if len(record.calls) > 200 else ""),
    )


@sessions.command("delete")
@click.argument("session_id", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def delete_session(ws: Warmstart, session_id: str, yes: bool, as_json: bool) -> None:
    """Delete one session and what was mined from it alone. ID may be shortened.

    The transcript itself is not touched; it is not read into the store again.
    """
    row = ws.store.find_session(session_id)
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("deleting cannot be undone; add --yes")
        what = f"{clean(row.agent)} session {clean(row.id)} with {row.calls} calls"
        click.confirm(f"delete {what} and every template mined from it alone?", abort=True, err=True)
    forgotten = ws.delete_session(row.key)
    if as_json:
        print_json(forgotten)
        return
    click.echo(f"deleted session {clean(forgotten.id)} with {forgotten.calls} calls")
    for name in forgotten.templates:
        click.echo(f"deleted template {clean(name)}, which was mined from it alone")
    if forgotten.examples:
        click.echo(f"removed {forgotten.examples} of its examples from other templates")
