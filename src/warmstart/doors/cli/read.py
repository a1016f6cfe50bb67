"""Commands of the way in: inspect, ingest, sessions, doctor."""

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
    iso,
    print_error_json,
    print_json,
    print_table,
    progress_bar,
    when,
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
    """Show what is in transcripts: parse, judge and score files or folders. Stores nothing."""
    recorder = Recorder(ws.settings.secrets)
    rows: list[list[Any]] = []
    problems: list[Problem] = []
    with progress_bar("reading") as tell:
        for done, source in enumerate(_all_sources(paths, problems)):
            tell(done, None, source.path.name)
            for scored in scan(source, ws.settings.tools):
                if as_json:
                    print_json(_session_json(scored, recorder))
                else:
                    rows.append(_session_line(scored, recorder))
            problems += source.problems
    if rows:
        print_table(_SESSION_COLUMNS, rows)
    _tell_problems(problems, recorder, as_json)
    if problems and not rows and not as_json:
        sys.exit(1)


def _all_sources(paths: tuple[Path, ...], problems: list[Problem]) -> Iterator[Source]:
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
        when(session.started),
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
        "started": iso(session.started),
        "messages": score.counts.total_messages,
        "calls": calls,
        "category": score.category,
        "task_type": score.task_type,
        "verdict": score.verdict,
        "quality": score.quality,
        "label": session.label,
        "usage": session.usage,
    }


def _tell_problems(problems: list[Problem], recorder: Recorder, as_json: bool) -> None:
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
    """Read transcripts and remember them. Without a path: what Claude Code, Codex, Hermes ... left in their usual places."""
    if not paths and not ws.places():
        raise click.ClickException("no agent's transcripts found in the usual places; name a file or folder")
    with progress_bar("ingesting") as tell:
        report = ws.ingest(*paths, progress=tell)
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
                click.echo(f"template {clean(name)} {change}, by what was measured; see: warmstart templates show")
        _tell_problems(report.problems, Recorder(ws.settings.secrets), as_json=False)
    if report.problems and not (report.sessions or report.unchanged):
        sys.exit(1)


@click.group()
def sessions() -> None:
    """What is known of past sessions."""


@sessions.command("list")
@agent_option
@project_option
@since_option
@click.option("--verdict", type=click.Choice(["success", "failure", "unknown"]))
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 100_000))
@click.option("--offset", default=0, type=click.IntRange(0))
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
    """The sessions, newest first."""
    rows = ws.sessions(limit=limit, offset=offset, agent=agent, verdict=verdict, project=project, since=since)
    if as_json:
        print_json([_row_json(row) for row in rows])
        return
    if not rows:
        click.echo("no sessions; run: warmstart ingest")
        return
    lines = [
        (
            r.id[:36],
            r.agent,
            r.model or "",
            when(r.started),
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
    return shown | {name: iso(shown[name]) for name in ("started", "ended", "first_seen", "updated")}


@sessions.command("show")
@click.argument("session_id", metavar="ID")
@json_option
@click.pass_obj
def show_session(ws: Warmstart, session_id: str, as_json: bool) -> None:
    """One session with its calls. ID may be shortened."""
    record = ws.session(session_id)
    row = record.session
    if as_json:
        calls = []
        for call in record.calls:
            shown = msgspec.structs.asdict(call) | {
                "arguments": msgspec.Raw(call.arguments.encode()),
                "at": iso(call.at),
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
        ("started", when(row.started)),
        ("ended", f"{when(row.ended)} {row.end_reason or ''}"),
        ("kind", f"{row.category}/{row.task_type}"),
        ("verdict", f"{row.verdict}, quality {row.quality:.2f}, confidence {row.confidence:.2f}"),
        ("original", row.source_uri),
    ]
    print_table(("", ""), facts)
    score = msgspec.json.decode(row.score)
    print_table(
        ("#weight", "sign", "#step"),
        [(f"{e['weight']:+.2f}", e["sign"], "" if e["step"] is None else e["step"]) for e in score["evidence"]],
        title="why",
    )
    print_table(
        ("#", "tool", "outcome", "known by", "kind of error", "arguments"),
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


@click.command()
@json_option
@click.pass_obj
def doctor(ws: Warmstart, as_json: bool) -> None:
    """What was found where, versions, and whether the store is healthy."""
    from warmstart.doors.cli.doctor import examine

    report = examine(ws)
    if as_json:
        print_json(report)
    else:
        print_table(("", ""), [(k, v) for k, v in report["versions"].items()], title="versions")
        found = [(p["agent"], p["path"], p["files"]) for p in report["places"]]
        print_table(("agent", "transcripts in", "#files"), found or [("none found", "", "")], title="agents")
        print_table(("", ""), [(k, v) for k, v in report["store"].items()], title="store")
        unreadable = report["templates"].pop("unreadable", [])
        print_table(
            ("", ""),
            [*report["templates"].items(), *(("cannot be read", told) for told in unreadable)],
            title="templates",
        )
    if not report["healthy"]:
        sys.exit(1)
