"""`warmstart review`: review a session, and decide about its proposals."""

from __future__ import annotations

from collections import Counter
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
import msgspec

from warmstart.doors.cli.main import json_lines_option, json_option
from warmstart.doors.cli.options import offer_anyway
from warmstart.doors.render.terminal import clean, format_iso, format_time, print_json, print_table
from warmstart.pipeline import Warmstart
from warmstart.review import Reviewed
from warmstart.store import ProposalRow

_STATUSES = ("waiting", "applied", "discarded", "all")


class _Group(click.Group):
    """Takes `review TRANSCRIPT` for `review run TRANSCRIPT`: a word that is no command is something to review."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.commands and not args[0].startswith("-") and not self._is_typo(args[0]):
            args = ["run", *args]
        return super().resolve_command(ctx, args)

    def _is_typo(self, word: str) -> bool:
        return bool(get_close_matches(word, self.commands, cutoff=0.75)) and not Path(word).exists()


@click.group(cls=_Group)
def review() -> None:
    """Review a session (SESSION or PATH), or decide about proposals.

    A review proposes notes, skills and templates. Nothing is written before you apply a proposal, unless your settings
    allow it.
    """


@review.command()
@click.argument("session", metavar="SESSION|PATH")
@click.option("--focus", type=click.Choice(("memory", "skills", "both")), default="both", show_default=True)
@click.option("--no-model", is_flag=True, help="Review without the configured model.")
@json_lines_option
@click.pass_obj
def run(ws: Warmstart, session: str, focus: Any, no_model: bool, as_json: bool) -> None:
    """Review what is new in a remembered session or a transcript since its last review."""
    for done in ws.reviews.review(session, focus=focus, model=not no_model):
        if as_json:
            print_json(describe_review(done))
        else:
            _show_review(done)


@review.command("list")
@click.option("--status", type=click.Choice(_STATUSES), default="waiting", show_default=True)
@json_lines_option
@click.pass_obj
def list_proposals(ws: Warmstart, status: str, as_json: bool) -> None:
    """List proposals."""
    rows = ws.reviews.list(None if status == "all" else status)
    if as_json:
        for row in rows:
            print_json(describe_proposal(row))
    elif rows:
        _show_table(rows)
    else:
        click.echo(_explain_none(ws, status))


def _explain_none(ws: Warmstart, status: str) -> str:
    """Return why no proposal is listed, and the next step."""
    counts = Counter(row.status for row in ws.reviews.list())
    if counts:
        others = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        return f"no {status} proposals ({others}); see: warmstart review list --status all"
    return "no proposals; to get some, run: warmstart review SESSION"


@review.command()
@click.argument("proposal")
@json_option
@click.pass_obj
def show(ws: Warmstart, proposal: str, as_json: bool) -> None:
    """Show one proposal in full, with its origin. PROPOSAL may be shortened."""
    described = describe_proposal(ws.reviews.show(proposal))
    if as_json:
        print_json(described)
        return
    body = described.pop("body")
    for name, value in described.items():
        if value not in (None, "", []):
            click.echo(
                f"{name + ':':<19}{clean(value if isinstance(value, str) else msgspec.json.encode(value).decode())}"
            )
    for name, value in body.items():
        if value:
            click.echo(f"\n{name}:\n{clean(value)}")


@review.command()
@click.argument("proposals", nargs=-1, required=True, metavar="PROPOSAL...")
@click.option(
    "--anyway", is_flag=True, help="Also make a template of a session that failed: your decision, on the record."
)
@json_lines_option
@click.pass_obj
def apply(ws: Warmstart, proposals: tuple[str, ...], anyway: bool, as_json: bool) -> None:
    """Apply proposals: write their notes, skills or templates."""
    for name in proposals:
        with offer_anyway():
            row = ws.reviews.apply(name, anyway=anyway)
        _show_decision(row, as_json)


@review.command()
@click.argument("proposals", nargs=-1, required=True, metavar="PROPOSAL...")
@click.option("--reason", default="", help="Why, for the record.")
@json_lines_option
@click.pass_obj
def discard(ws: Warmstart, proposals: tuple[str, ...], reason: str, as_json: bool) -> None:
    """Discard proposals; the same are not proposed again."""
    for name in proposals:
        _show_decision(ws.reviews.discard(name, reason=reason), as_json)


def describe_proposal(row: ProposalRow) -> dict[str, Any]:
    """Describe a proposal for JSON."""
    return {
        "id": row.id,
        "status": row.status,
        "reason": row.reason,
        "kind": row.kind,
        "action": row.action,
        "target": row.target,
        "summary": row.summary,
        "steps": msgspec.json.decode(row.cites),
        "suspicions": msgspec.json.decode(row.suspicions),
        "write_origin": row.write_origin,
        "execution_context": row.execution_context,
        "session": row.session,
        "session_key": row.session_key,
        "source": row.source,
        "parent": row.parent,
        "platform": row.platform,
        "tool_call": row.tool_call,
        "created": format_iso(row.created),
        "decided": format_iso(row.decided),
        "decided_by": row.decided_by,
        "body": msgspec.json.decode(row.body),
    }


def describe_review(done: Reviewed) -> dict[str, Any]:
    """Describe a review for JSON."""
    return {
        "session": done.session,
        "line": done.line,
        "warning": done.warning,
        "ended": done.ended,
        "steps": done.steps,
        "tokens": done.tokens,
        "proposals": [describe_proposal(row) for row in done.proposals],
        "refused": done.refused,
        "denied": done.denied,
    }


def _show_review(done: Reviewed) -> None:
    result = "nothing new since its last review" if done.ended == "nothing new" else "nothing worth keeping"
    click.echo(clean(done.line or f"{done.session}: {result}"))
    if done.proposals:
        _show_table(done.proposals)
    for reason in done.refused:
        click.secho(f"not kept: {clean(reason)}", dim=True)
    if done.warning:
        click.secho(clean(done.warning), fg="yellow", err=True)


def _show_table(rows: Any) -> None:
    print_table(
        ("proposal", "status", "kind", "steps", "summary", "session", "created (UTC)"),
        [
            (row.id[:12], row.status, f"{row.kind} {row.action}", _list_steps(row), row.summary)
            + (row.session[:20], format_time(row.created))
            for row in rows
        ],
    )


def _list_steps(row: ProposalRow) -> str:
    cites = msgspec.json.decode(row.cites)
    return ", ".join(map(str, cites[:6])) + (" ..." if len(cites) > 6 else "")


def _show_decision(row: ProposalRow, as_json: bool) -> None:
    if as_json:
        print_json(describe_proposal(row))
    else:
        click.echo(f"{row.id[:12]} {row.status}: {clean(row.summary)}")
