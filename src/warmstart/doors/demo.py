"""`warmstart demo`: the main job on the sample transcripts that come with the package, in a throw-away home."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from warmstart import config
from warmstart.doors.show import coloured, print_table, when
from warmstart.pipeline import Warmstart

SAMPLES = Path(__file__).parents[1] / "samples"


@click.command()
def demo() -> None:
    """Show the main job on sample transcripts of three agents. Offline; touches nothing of yours."""
    with tempfile.TemporaryDirectory(prefix="warmstart-demo-") as home, Warmstart(config.load(home)) as ws:
        click.secho("1. Transcripts in: read, judged and scored", bold=True)
        report = ws.ingest(SAMPLES)
        click.echo(f"{report.sessions} sessions, {report.calls} tool calls, {report.errors} of them errors")
        _show_sessions(ws)
        _show_errors(ws)
    click.secho("On your own history", bold=True)
    click.echo("  warmstart ingest            # what Claude Code, Codex, Hermes ... left on this machine")
    click.echo("  warmstart sessions list     # what is known")
    click.echo("  warmstart doctor            # what was found where")


def _show_sessions(ws: Warmstart) -> None:
    rows = [
        (r.agent, (r.task or "")[:52], when(r.started), r.calls, r.errors, coloured(r.verdict), f"{r.quality:.2f}")
        for r in ws.sessions()
    ]
    print_table(("agent", "task", "started (UTC)", "#calls", "#errors", "verdict", "#quality"), rows)


def _show_errors(ws: Warmstart) -> None:
    seen = []
    for row in ws.sessions():
        for call in ws.session(row.key).calls:
            if call.status in ("error", "rejected", "cancelled"):
                told = next((line for line in (call.excerpt or "").splitlines() if line.strip()), "")
                seen.append((row.agent, call.tool, coloured(call.status), call.error_kind or "", call.basis, told[:70]))
    click.secho("What did not work, and how that is known", bold=True)
    print_table(("agent", "tool", "outcome", "kind", "known by", "result"), seen[:12])
