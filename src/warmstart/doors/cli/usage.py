"""`warmstart usage`: tokens and costs of sessions, and live reports from callers."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from warmstart.doors.cli.main import json_option
from warmstart.doors.cli.options import agent_option, lake_option, project_option, since_option
from warmstart.model import LiveUsage, Usage
from warmstart.pipeline import Warmstart
from warmstart.usage.amounts import day_of

if TYPE_CHECKING:
    from warmstart.usage.accounts import LiveUsageResult
    from warmstart.usage.report import By, UsageReport, UsageRow

BYS = ("day", "agent", "model", "project", "session")
_MOST = 10**15
_WIDE = 140  # terminal columns needed to show numbers in full
_BAR = 12  # characters
_EIGHTHS = " ▏▎▍▌▋▊▉█"
FIGURES = ("input", "output", "cache_read", "cache_write", "reasoning", "total", "cost")


class _Day(click.ParamType[str]):
    """A date, in UTC."""

    name = "day"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return datetime.strptime(str(value), "%Y-%m-%d").date().isoformat()
        except ValueError:
            self.fail(f"{value!r} is not a date; write 2026-11-16", param, ctx)


class _Time(click.ParamType[float]):
    """A moment: ISO (UTC if it names no zone) or seconds since 1970."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return float(value)
        except ValueError:
            pass
        try:
            moment = datetime.fromisoformat(str(value))
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a time; write 2026-11-16T12:00:00Z", param, ctx)


@click.group(invoke_without_command=True)
@click.option("--by", type=click.Choice(BYS), default="day", show_default=True)
@agent_option
@project_option
@since_option
@lake_option
@click.option("--until", type=_Day(), help="Only usage up to and including this day (UTC).")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="Rows shown; totals cover all.")
@json_option
@click.pass_context
def usage(
    ctx: click.Context,
    by: By,
    agent: str | None,
    project: str | None,
    since: float | None,
    lake: str | None,
    until: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show tokens and costs of the remembered sessions, by day, agent, model, project or session.

    `~` marks estimates (tokens from the text, costs from list prices), `-` is unknown.
    An output far below what the answers themselves take is completed from their text.
    Usage counts on its own day: a session that started before --since counts with its later days.
    """
    if ctx.invoked_subcommand is not None:
        return
    ws = ctx.find_object(Warmstart)
    assert ws is not None
    if lake is not None:
        from warmstart.doors.render.lake import name_left_out
        from warmstart.usage.report import UsageQuery

        library = ws.lake(lake)
        query = UsageQuery(by=by, since=day_of(since) or None, until=until, agent=agent, project=project)
        report = library.usage(query)
        name_left_out(library, as_json=as_json)
    else:
        report = ws.usage.report(by, since=day_of(since) or None, until=until, agent=agent, project=project)
    if as_json:
        from warmstart.doors.render.terminal import print_json

        print_json(report)
    elif not report.totals.sessions and lake is not None:
        click.echo(". ".join(["no session of the lake was counted", *list_remarks(report, 0)]))
    elif not report.totals.sessions and ws.count_sessions():
        click.echo("no session with usage matches the filters; see: warmstart usage")
    else:
        show_usage(report, limit)


def show_usage(report: UsageReport, limit: int) -> None:
    """Print a usage report as a table."""
    from rich.text import Text

    from warmstart.doors.render.terminal import print_table

    if not report.totals.sessions:
        click.echo(
            "no sessions in this period" if report.since or report.until else "no sessions; run: warmstart ingest"
        )
        return
    wide = not sys.stdout.isatty() or shutil.get_terminal_size().columns >= _WIDE
    shown = report.rows[-limit:] if report.by == "day" else report.rows[:limit]
    most = max((row.total or 0 for row in shown), default=0)
    lines: list[list[Any]] = [[*format_usage_row(row, wide), draw_bar(row.total, most)] for row in shown]
    lines.append([Text(cell, style="bold") for cell in ("total", *format_usage_row(report.totals, wide)[1:], "")])
    columns = (
        report.by,
        "#sessions",
        "#input",
        "#output",
        "#cache read",
        "#cache write",
        "#reasoning",
        "#total",
        "#cost",
    )
    print_table((*columns, ""), lines)
    for note in list_remarks(report, len(report.rows) - len(shown)):
        click.echo(note)


def format_usage_row(row: UsageRow, wide: bool) -> list[str]:
    """Return the cells of a row: its name, its sessions, and its figures."""
    cells = [format_figure(getattr(row, name), name, name in row.estimated, wide) for name in FIGURES]
    return [row.name or "unknown", f"{row.sessions:,}", *cells]


def format_figure(value: float | None, name: str, estimated: bool, wide: bool) -> str:
    """Format a figure: `12,345`, `~12,345` if part of it is estimated, `-` if it is unknown."""
    if value is None:
        return "-"
    mark = "~" if estimated else ""
    if name == "cost":
        return f"{mark}${value:,.2f}" if value >= 0.005 or not value else f"{mark}<$0.01"
    return mark + (f"{value:,}" if wide or value < 10_000 else _shorten(value))


def _shorten(value: float) -> str:
    for unit in "kMGT":
        value /= 1_000
        if value < 999.5:
            return f"{value:.3g}{unit}"
    return f"{value:,.0f}T"


def draw_bar(value: float | None, most: float) -> str:
    """Draw a bar whose length is the value's share of the largest one."""
    if not value or not most:
        return ""
    eighths = max(1, round(value / most * _BAR * 8))
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def list_remarks(report: UsageReport, more: int) -> list[str]:
    """Return what qualifies the numbers: rows not shown, estimates, unknown figures."""
    totals, notes = report.totals, []
    if more > 0:
        notes.append(f"{more} more rows are not shown; raise --limit to see them")
    for count, what in (
        (totals.tokens_estimated, "tokens estimated from the text (~)"),
        (totals.output_completed, "output completed from the text (~), because the transcript reports a part of it"),
        (totals.tokens_unknown, "tokens unknown"),
        (totals.cost_estimated, f"cost from list prices (~; {report.prices})"),
        (totals.cost_unknown, "cost unknown"),
    ):
        if count:
            notes.append(f"{count} of {totals.sessions} sessions: {what}")
    if report.unpriced:
        from warmstart.doors.render.terminal import clean

        few = ", ".join(clean(model) or "an unnamed model" for model in report.unpriced[:8])
        more_models = " ..." if len(report.unpriced) > 8 else ""
        notes.append(f"no price for: {few}{more_models}; set one under [prices] in config.toml")
    if report.undated:
        notes.append(f"{report.undated} sessions are left out because their day is unknown")
    if report.unread_files:
        from warmstart.doors.render.lake import describe_unread

        notes.append(describe_unread(report.unread_files))
    return notes


def _take_report(run: Callable[[Warmstart, LiveUsage, bool], None]) -> Callable[..., None]:
    """Give a command the options of `set` and `add`, and pass it the report that they make."""

    @wraps(run)
    def command(
        ws: Warmstart,
        session: str,
        model: str,
        agent: str,
        project: str | None,
        input: int | None,
        output: int | None,
        cache_read: int | None,
        cache_write: int | None,
        reasoning: int | None,
        cost: float | None,
        event: str | None,
        at: float | None,
        as_json: bool,
        whole: bool = False,
    ) -> None:
        amounts = Usage(input, output, cache_read, cache_write, reasoning, cost)
        report = LiveUsage(
            session=session,
            usage=amounts,
            model=model,
            agent=agent,
            project=project,
            event=event,
            at=at,
            whole=whole,
        )
        run(ws, report, as_json)

    tokens = click.IntRange(0, _MOST)
    decorated: Callable[..., None] = command
    for option in reversed(
        (
            click.argument("session"),
            click.option("--model", default="", help="The model that answered."),
            click.option(
                "--agent", default="", help="The agent as `sessions list` shows it: claude-code, codex, hermes ..."
            ),
            click.option("--project", help="The working folder."),
            click.option("--input", "input", type=tokens, help="Input tokens, without cached ones."),
            click.option("--output", type=tokens, help="Output tokens, including reasoning."),
            click.option("--cache-read", type=tokens, help="Input tokens read from the cache."),
            click.option("--cache-write", type=tokens, help="Input tokens written to the cache."),
            click.option("--reasoning", type=tokens, help="Output tokens that were reasoning."),
            click.option("--cost", type=click.FloatRange(0, _MOST), help="US dollars."),
            click.option("--event", help="An id of this report; sent again, it changes nothing."),
            click.option("--at", type=_Time(), help="When (ISO, UTC, or seconds since 1970).  [default: now]"),
            json_option,
            click.pass_obj,
        )
    ):
        decorated = option(decorated)
    return decorated


@usage.command("set")
@click.option("--whole", is_flag=True, help="The totals cover all models of the session, not only --model.")
@_take_report
def set_usage(ws: Warmstart, report: LiveUsage, as_json: bool) -> None:
    """Report running totals of a session. A repeated or late total changes nothing.

    A counter that starts over adds up: a total that is lower than the last one and later (--at; without it, less than half).
    """
    _show_result(ws.usage.set(report), as_json)


@usage.command("add")
@_take_report
def add_usage(ws: Warmstart, report: LiveUsage, as_json: bool) -> None:
    """Report the usage of one answer. Needs --event: the same event counts once."""
    _show_result(ws.usage.add(report), as_json)


def _show_result(result: LiveUsageResult, as_json: bool) -> None:
    from warmstart.doors.render.terminal import clean, print_json

    if as_json:
        print_json(result)
        return
    totals = [
        f"{name.replace('_', ' ')} {format_figure(value, name, False, True)}"
        for name in FIGURES
        if (value := getattr(result.usage, name, None)) is not None
    ]
    outcome = "counted" if result.changed else f"unchanged ({result.reason})"
    click.echo(f"{clean(result.session)}: {outcome}; totals: {', '.join(totals)}")
