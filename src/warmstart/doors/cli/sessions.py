"""`warmstart sessions`: list, show, search, export and delete stored sessions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from warmstart.calls.prose import plain, strip_programs
from warmstart.calls.shapes import command_of
from warmstart.doors.cli.export import export_sessions
from warmstart.doors.cli.main import json_option
from warmstart.doors.cli.options import agent_option, project_option, since_option, source_option
from warmstart.doors.render.fitted import Column, cut_at_word, flatten, print_fitted
from warmstart.doors.render.terminal import clean, coloured, format_iso, format_time, print_json, print_table
from warmstart.errors import NotFound
from warmstart.model import Arguments, Verdict
from warmstart.pipeline import Warmstart
from warmstart.plurals import format_count
from warmstart.store import CallRow, SessionRow

_LISTED = 50
_CALLS = 200  # calls of one session in a table
_RESULT = 600  # characters of a result among errors

_LIST_COLUMNS = (
    Column("session", 16),
    Column("started (UTC)", 16, drop=2),
    Column("agent", 14, drop=3),
    Column("model", 20, drop=5),
    Column("kind", 16, drop=6),
    Column("#calls", 7),
    Column("#errors", 7),
    Column("verdict", 8, drop=1),
    Column("#quality", 7, drop=4),
    Column("task", grows=True),
)
_CALL_COLUMNS = (
    Column("#n", 6),
    Column("tool", 24),
    Column("outcome", 9),
    Column("basis", 9, drop=2),
    Column("kind of error", 13, drop=1),
    Column("call", grows=True),
    Column("result", grows=True),
)
_HIT_COLUMNS = (
    Column("session", 16),
    Column("#call", 6),
    Column("started (UTC)", 16, drop=2),
    Column("tool", 24),
    Column("outcome", 9, drop=1),
    Column("where", 9),
    Column("text", grows=True),
)


@click.group()
def sessions() -> None:
    """List, show, search, export and delete stored sessions."""


sessions.add_command(export_sessions)


@sessions.command("list")
@agent_option
@source_option
@project_option
@since_option
@click.option(
    "--verdict", type=click.Choice(["success", "failure", "unknown"]), help="Only sessions with this verdict."
)
@click.option(
    "--limit", type=click.IntRange(1, 100_000), help=f"Sessions to list.  [default: {_LISTED}; with --json: all]"
)
@click.option("--offset", default=0, type=click.IntRange(0), help="Sessions to skip.")
@click.option(
    "--search", metavar="WORDS", help="Only sessions with all these words in tasks, tools, commands, paths or errors."
)
@json_option
@click.pass_obj
def list_sessions(
    ws: Warmstart,
    agent: str | None,
    source: str | None,
    project: str | None,
    since: float | None,
    verdict: Verdict | None,
    limit: int | None,
    offset: int,
    search: str | None,
    as_json: bool,
) -> None:
    """List the sessions, newest first. The short ids work in every command that takes a session."""
    most = limit if limit is not None or as_json else _LISTED
    place = source.lower() if source else None
    rows: Sequence[SessionRow]
    is_more = False
    if search is None:
        rows = ws.sessions(
            limit=most, offset=offset, agent=agent, verdict=verdict, project=project, since=since, source=place
        )
        total = (
            0
            if as_json
            else ws.count_sessions(agent=agent, verdict=verdict, project=project, since=since, source=place)
        )
    else:
        ws.index_words()
        found = ws.find_sessions(
            search,
            limit=most or 100_000,
            offset=offset,
            agent=agent,
            verdict=verdict,
            project=project,
            since=since,
            source=place,
        )
        rows, total, is_more = found.sessions, found.total, found.is_more
    if as_json:
        print_json([describe_session(row) for row in rows])
        return
    if not rows:
        _explain_none(ws, total, offset)
        return
    print_fitted(
        _LIST_COLUMNS,
        [
            (ws.store.shorten_id(r), format_time(r.started), r.agent, r.model or "", f"{r.category}/{r.task_type}")
            + (r.calls, r.errors, coloured(r.verdict), f"{r.quality:.2f}", describe_task(ws, r))
            for r in rows
        ],
    )
    if len(rows) < total:
        click.echo(f"{len(rows)} of {'more than ' if is_more else ''}{total} sessions; --limit / --offset for more")


def describe_task(ws: Warmstart, row: SessionRow) -> str:
    """Return a session's request without the blocks that programs put before it; else what its first call was for."""
    if task := plain(strip_programs(row.task or "")):
        return task
    intents = ws.store.rows("first_intent", (row.key,))
    return str(intents[0][0]) if intents else row.task or ""


def _explain_none(ws: Warmstart, matching: int, offset: int) -> None:
    stored = ws.count_sessions()
    if not stored:
        click.echo("no sessions; run: warmstart ingest")
    elif matching:
        click.echo(f"--offset {offset} is beyond the {matching} sessions that match")
    else:
        click.echo(f"none of the {stored} sessions matches the filters; see: warmstart sessions list")


def describe_session(row: SessionRow) -> dict[str, Any]:
    """Describe a session for JSON, with times in ISO format."""
    shown = msgspec.structs.asdict(row)
    shown["score"] = msgspec.Raw(row.score.encode())
    shown["usage"] = msgspec.Raw(row.usage.encode()) if row.usage else None
    return shown | {name: format_iso(shown[name]) for name in ("started", "ended", "first_seen", "updated")}


@sessions.command("show")
@click.argument("session_id", metavar="ID")
@click.option(
    "--errors", is_flag=True, help="Only the calls that failed, were rejected or denied, each with its cause."
)
@click.option("--call", "ordinal", type=click.IntRange(0), metavar="N", help="Only call N, in full.")
@json_option
@click.pass_obj
def show_session(ws: Warmstart, session_id: str, errors: bool, ordinal: int | None, as_json: bool) -> None:
    """Show one session with its calls. ID may be shortened."""
    record = ws.session(session_id)
    row = record.session
    calls = [call for call in record.calls if _is_wanted(call, errors, ordinal)]
    if ordinal is not None and not calls:
        raise NotFound(f"session {row.id} has no call {ordinal}; it has {len(record.calls)}, counted from 0")
    if as_json:
        print_json(describe_session(row) | {"tool_calls": [describe_call(call) for call in calls]})
    elif ordinal is not None:
        _show_call(calls[0], whole=True)
    elif errors:
        _show_errors(row, calls)
    else:
        _show_facts(row)
        _show_calls(ws.store.shorten_id(row), calls)


def _is_wanted(call: CallRow, errors: bool, ordinal: int | None) -> bool:
    if ordinal is not None:
        return call.ordinal == ordinal
    return not errors or call.status in ("error", "rejected", "denied")


def describe_call(call: CallRow) -> dict[str, Any]:
    """Describe a call for JSON."""
    shown = msgspec.structs.asdict(call) | {
        "arguments": msgspec.Raw(call.arguments.encode()),
        "at": format_iso(call.at),
    }
    shown["outcome"] = shown.pop("status")
    return shown


def _show_facts(row: SessionRow) -> None:
    facts = [
        ("session", row.id),
        ("agent", f"{row.agent} {row.model or ''}"),
        ("project", row.project or ""),
        ("task", cut_at_word(flatten(row.task or ""), 300)),
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


def _show_calls(session: str, calls: Sequence[CallRow]) -> None:
    first = f", the first {_CALLS}" if len(calls) > _CALLS else ""
    print_fitted(
        _CALL_COLUMNS,
        [
            (c.ordinal, c.tool, coloured(c.status), c.basis, c.error_kind or "", write_call(c))
            + (c.cause or c.words or c.excerpt or "",)
            for c in calls[:_CALLS]
        ],
        title=f"{len(calls)} calls{first}",
    )
    if calls:
        click.echo(f"one call in full: warmstart sessions show {session} --call N; those that failed: --errors")


def _show_errors(row: SessionRow, calls: Sequence[CallRow]) -> None:
    failed = sum(call.status == "error" for call in calls)
    others = len(calls) - failed
    click.echo(f"{failed} of {row.calls} calls failed" + (f", {others} were rejected or denied" if others else ""))
    for call in calls:
        click.echo()
        _show_call(call)


def _show_call(call: CallRow, *, whole: bool = False) -> None:
    """Print one call, line by line. Without `whole` its arguments and its result are cut."""
    kind = ", ".join(filter(None, (call.basis, call.error_kind)))
    click.secho(f"{call.ordinal}. {clean(call.tool)}: {call.status} ({kind})", bold=True)
    arguments = clean(write_call(call))
    excerpt = clean(call.excerpt) if call.excerpt is not None else "(no answer)"
    lines = (
        ("wanted", clean(call.intent or "")),
        ("call", arguments if whole else cut_at_word(flatten(arguments), 400)),
        ("cause", clean(call.cause or "")),
        ("person", clean(call.words or "")),
        ("found", ", ".join(map(clean, msgspec.json.decode(call.findings))) if call.findings else ""),
        ("result", excerpt if whole or len(excerpt) <= _RESULT else f"{excerpt[:_RESULT].rstrip()} …"),
    )
    for name, text in lines:
        if text.strip():
            click.echo(f"   {name + ':':<8}" + text.strip().replace("\n", "\n           "))


def write_call(call: CallRow) -> str:
    """Return a call's command, or its arguments as JSON."""
    command = command_of(call.tool, msgspec.json.decode(call.arguments, type=Arguments))
    return call.arguments if command is None else command


@sessions.command("search")
@click.argument("text")
@click.option("--tool", help="Only calls of this tool.")
@click.option("--errors", is_flag=True, help="Only calls that failed.")
@agent_option
@project_option
@since_option
@click.option("--limit", default=_LISTED, show_default=True, type=click.IntRange(1, 100_000), help="Calls to list.")
@json_option
@click.pass_obj
def search_sessions(
    ws: Warmstart,
    text: str,
    tool: str | None,
    errors: bool,
    agent: str | None,
    project: str | None,
    since: float | None,
    limit: int,
    as_json: bool,
) -> None:
    """Find calls by a text in their arguments, intents, causes, rejections and results; the newest sessions first."""
    if not text.strip():
        raise click.UsageError("the text is empty; give the words to search for")
    found = ws.search_calls(text, tool=tool, errors=errors, agent=agent, project=project, since=since, limit=limit)
    if as_json:
        hits = [{"session": row.id, "agent": row.agent} | describe_call(call) for row, call in found.calls]
        print_json({"total": found.total, "calls": hits})
        return
    if not found.calls:
        _explain_no_hits(ws)
        return
    names = {row.key: ws.store.shorten_id(row) for row, _call in found.calls}
    print_fitted(
        _HIT_COLUMNS,
        [
            (names[row.key], call.ordinal, format_time(row.started), call.tool, coloured(call.status))
            + find_line(call, text)
            for row, call in found.calls
        ],
    )
    if len(found.calls) < found.total:
        click.echo(f"{len(found.calls)} of {found.total} calls; --limit for more")
    click.echo("one call in full: warmstart sessions show SESSION --call N")


def _explain_no_hits(ws: Warmstart) -> None:
    if stored := ws.count_sessions():
        click.echo(f"no call of the {stored} sessions contains this text and matches the filters")
    else:
        click.echo("no sessions; run: warmstart ingest")


def find_line(call: CallRow, text: str) -> tuple[str, str]:
    """Return which part of a call contains a text, and the line with it."""
    parts = {
        "call": write_call(call),
        "cause": call.cause or "",
        "person": call.words or "",
        "found": call.findings or "",
        "result": call.excerpt or "",
        "wanted": call.intent or "",
    }
    for name, part in parts.items():
        at = part.lower().find(text.lower())
        if at >= 0:
            start = max(part.rfind("\n", 0, at) + 1, at - 60)
            return name, flatten(part[start : at + len(text) + 300].split("\n" if "\n" not in text else "\0")[0])
    return "call", flatten(call.arguments)


@sessions.command("delete")
@click.argument("session_id", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def delete_session(ws: Warmstart, session_id: str, yes: bool, as_json: bool) -> None:
    """Delete one session and what was mined from it alone. ID may be shortened.

    Its archived copy is deleted too. The transcript itself is not touched; it is not read into the store again.
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
    if forgotten.archived:
        click.echo(f"deleted {format_count(forgotten.archived, 'archived transcript')} of it")
    for entry in forgotten.still_archived:
        click.echo(
            f"archived transcript {entry} holds it and other sessions; warmstart archive delete {entry} deletes it"
        )
