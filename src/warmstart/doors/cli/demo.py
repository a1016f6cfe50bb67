"""`warmstart demo`: ingest, learn and provision on the sample transcripts in the package, in a temporary home."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import click

from warmstart import config
from warmstart.doors.render.seed import show_seed
from warmstart.doors.render.terminal import coloured, format_time, print_table
from warmstart.model import Task
from warmstart.pipeline import Warmstart

SAMPLES = Path(__file__).parents[2] / "samples"
TASK = "the order total test fails again: run it, find out why and fix it"
_EXIT_CODE = re.compile(r"^Exit code:? \d+$|^Wall time|^Output:$")


@click.command()
def demo() -> None:
    """Ingest, learn and provision on sample transcripts of three agents. Offline; leaves your data alone."""
    with tempfile.TemporaryDirectory(prefix="warmstart-demo-") as home, Warmstart(config.load(home)) as ws:
        report = ws.ingest(SAMPLES)
        _title(f"1. Transcripts in: {report.sessions} sessions, {report.calls} tool calls, {report.errors} errors")
        _show_sessions(ws)
        _title("   Calls that failed, and the basis of that judgement")
        _show_errors(ws)
        learned = ws.learn()
        refused = ", ".join(f"{count} ({reason})" for reason, count in learned.refused.items())
        _title(f"2. Learned: {learned.considered} sessions considered, refused: {refused}")
        rows = [(t.name, coloured(t.status), t.examples, t.sessions, t.reason) for t in learned.templates]
        print_table(("template", "status", "#examples", "#sessions", "why"), rows)
        project = ws.sessions(limit=1)[0].project
        _title("3. What the project knows: the brief that every new session starts with")
        click.echo(ws.brief(Task(project=project, agent="codex")).text)
        _title(f"4. Examples for a Codex session with the task: {TASK}")
        show_seed(ws.provision(Task(text=TASK, agent="codex", project=project, brief=0)))
    _title("On your own history")
    click.echo("  warmstart ingest")
    click.echo("  warmstart learn")
    click.echo("  warmstart notes brief")
    click.echo('  warmstart provision "what you want to do next"')
    click.echo("  warmstart insights")
    click.echo("  warmstart report")


def _title(text: str) -> None:
    click.echo()
    click.secho(text, bold=True)


def _show_sessions(ws: Warmstart) -> None:
    rows = [
        (
            r.agent,
            (r.task or "")[:56],
            format_time(r.started),
            r.calls,
            r.errors,
            coloured(r.verdict),
            f"{r.quality:.2f}",
        )
        for r in ws.sessions()
    ]
    print_table(("agent", "task", "started (UTC)", "#calls", "#errors", "verdict", "#quality"), rows)


def _show_errors(ws: Warmstart) -> None:
    """Show one failed call of each sort."""
    seen: dict[tuple[str, str, str | None], tuple[object, ...]] = {}
    for row in ws.sessions():
        for call in ws.session(row.key).calls:
            if call.status in ("error", "rejected", "cancelled"):
                lines = [line.strip() for line in (call.excerpt or "").splitlines()]
                result = next((line for line in lines if line and not _EXIT_CODE.match(line)), "")
                shown = (row.agent, call.tool, coloured(call.status), call.error_kind or "", call.basis, result[:72])
                seen.setdefault((row.agent, call.status, call.error_kind), shown)
    print_table(("agent", "tool", "outcome", "kind", "basis", "result"), list(seen.values())[:10])
