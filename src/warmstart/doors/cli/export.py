"""`warmstart sessions export`: sessions for other programs, as files or sent to a collector."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click
import msgspec

from warmstart.atomic_files import write_whole
from warmstart.doors.cli.main import PATH, json_option
from warmstart.doors.cli.options import agent_option, project_option, since_option
from warmstart.doors.render.terminal import clean, print_error_json, print_json
from warmstart.exports.formats import ExportFormat
from warmstart.pipeline import Warmstart
from warmstart.plurals import format_count
from warmstart.store import SessionRow


@click.command("export")
@click.argument("session_ids", metavar="[ID]...", nargs=-1)
@click.option("--format", "format", type=click.Choice(get_args(ExportFormat)), help="The format of the file.")
@click.option("--output", "-o", type=PATH, help="Write to this file.  [default: standard output]")
@click.option("--otlp", "url", metavar="URL", help="Send tool calls to this OpenTelemetry collector (OTLP/HTTP).")
@agent_option
@project_option
@since_option
@json_option
@click.pass_obj
def export_sessions(
    ws: Warmstart,
    session_ids: tuple[str, ...],
    format: ExportFormat | None,
    output: Path | None,
    url: str | None,
    agent: str | None,
    project: str | None,
    since: float | None,
    as_json: bool,
) -> None:
    """Write sessions, redacted, one per line, or send their tool calls. Without an ID: all that match.

    Messages come from the transcripts or the archive; a session whose transcript is gone is named on standard error.
    With --otlp, names, times and outcomes of tool calls are sent, and no content. --json prints the counts with --output
    and --otlp; other exports are JSON already.
    """
    if (format is None) == (url is None):
        raise click.UsageError("give one of --format and --otlp")
    if session_ids and (agent or project or since is not None):
        raise click.UsageError("give either session ids or filters")
    rows = (
        [ws.store.find_session(name) for name in session_ids]
        if session_ids
        else ws.sessions(limit=None, agent=agent, project=project, since=since)
    )
    if url is not None:
        _send(ws, rows, url, as_json)
    elif format is not None:
        _write(ws, rows, format, output, as_json)


def _send(ws: Warmstart, rows: list[SessionRow], url: str, as_json: bool) -> None:
    sent = ws.send_spans(rows, url)
    if as_json:
        print_json(sent)
    else:
        what = f"{format_count(sent.spans, 'tool call')} of {format_count(sent.sessions, 'session')}"
        click.echo(f"sent {what}" + (f"; {sent.rejected} rejected: {clean(sent.reason)}" if sent.rejected else ""))
    if sent.rejected:
        sys.exit(1)


def _write(ws: Warmstart, rows: list[SessionRow], format: ExportFormat, output: Path | None, as_json: bool) -> None:
    exports = _Exports(ws, rows, format, as_json)
    if output is None:
        for line in exports.lines():
            sys.stdout.write(line.decode())
    else:
        try:
            write_whole(output, exports.lines())
        except OSError as error:
            raise click.ClickException(f"{output}: {error.strerror}") from error
        counts = {"sessions": exports.written, "missing": exports.missing, "output": str(output)}
        if as_json:
            print_json(counts)
        else:
            click.echo(f"{format_count(exports.written, 'session')} exported to {clean(output)}")
    if exports.missing and not exports.written:
        sys.exit(1)


class _Exports:
    """The lines of an export, and the sessions that cannot be exported."""

    def __init__(self, ws: Warmstart, rows: list[SessionRow], format: ExportFormat, as_json: bool) -> None:
        self._ws, self._rows, self._format, self._as_json = ws, rows, format, as_json
        self.written = 0
        self.missing: list[str] = []

    def lines(self) -> Iterator[bytes]:
        for row, exported in self._ws.export_sessions(self._rows, self._format):
            if exported is None:
                self.missing.append(row.id)
                self._report(row)
            else:
                self.written += 1
                yield msgspec.json.encode(exported) + b"\n"

    def _report(self, row: SessionRow) -> None:
        reason = "its transcript is gone and not archived"
        if self._as_json:
            print_error_json({"problem": {"path": row.source_uri, "session": row.id, "reason": reason}})
        else:
            click.echo(f"session {clean(row.id)} cannot be exported: {reason}: {clean(row.source_uri)}", err=True)
