"""`warmstart usage`: what sessions cost, and the reports of callers that count while a session runs."""

from __future__ import annotations

import shutil
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from warmstart.doors.cli.main import json_option
from warmstart.doors.cli.options import agent_option, project_option, since_option
from warmstart.model import LiveUsage, Usage
from warmstart.pipeline import Warmstart
from warmstart.usage.amounts import day_of

if TYPE_CHECKING:
    from warmstart.usage.accounts import LiveUsageResult
    from warmstart.usage.report import UsageReport, UsageRow

_BYS = ("day", "agent", "model", "project", "session")
_MOST = 10**15
_WIDE = 140  # columns of a terminal from which whole numbers fit
_BAR = 12  # characters
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_FIGURES = ("input", "output", "cache_read", "cache_write", "reasoning", "total", "cost")


class _Day(click.ParamType[str]):
    """A day, in UTC."""

    name = "day"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return datetime.strptime(str(value), "%Y-%m-%d").date().isoformat()
        except ValueError:
            self.fail(f"{value!r} is no day; write 2026-11-16", param, ctx)


class _Time(click.ParamType[float]):
    """A moment: ISO, in UTC where it has no zone, or seconds since 1970."""

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
            self.fail(f"{value!r} is no time; write 2026-11-16T12:00:00Z", param, ctx)


@click.group(invoke_without_command=True)
@click.option("--by", type=click.Choice(_BYS), default="day", show_default=True)
@agent_option
@project_option
@since_option
@click.option("--until", type=_Day(), help="Only usage up to and including this day (UTC).")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="Lines shown; totals are of all.")
@json_option
@click.pass_context
def usage(ctx: click.Context, /, since: float | None, limit: int, as_json: bool, **wanted: Any) -> None:
    """Tokens and costs of the remembered sessions, by day, agent, model, project or session.

    `~` is estimated (tokens from the text, costs from list prices), `-` is unknown.
    Usage belongs to the day it happened: of a session that runs past --since or --until, the days inside count.
    """
    if ctx.invoked_subcommand is not None:
        return
    ws = ctx.find_object(Warmstart)
    assert ws is not None
    report = ws.usage.report(since=day_of(since) or None, **wanted)
    if as_json:
        from warmstart.doors.render.terminal import print_json

        print_json(report)
    else:
        show_usage(report, limit)


def show_usage(report: UsageReport, limit: int) -> None:
    from rich.text import Text

    from warmstart.doors.render.terminal import print_table

    if not report.totals.sessions:
        click.echo("no sessions" + ("" if report.since or report.until else "; run: warmstart ingest"))
        return
    wide = not sys.stdout.isatty() or shutil.get_terminal_size().columns >= _WIDE
    shown = report.rows[-limit:] if report.by == "day" else report.rows[:limit]
    most = max((row.total or 0 for row in shown), default=0)
    lines: list[list[Any]] = [[*_line(row, wide), draw_bar(row.total, most)] for row in shown]
    lines.append([Text(cell, style="bold") for cell in ("total", *_line(report.totals, wide)[1:], "")])
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
    for note in notes(report, len(report.rows) - len(shown)):
        click.echo(note)


def _line(row: UsageRow, wide: bool) -> list[str]:
    cells = [format_figure(getattr(row, name), name, name in row.estimated, wide) for name in _FIGURES]
    return [row.name or "not known", f"{row.sessions:,}", *cells]


def format_figure(value: float | None, name: str, estimated: bool, wide: bool) -> str:
    """`12,345`, `~12,345` where some of it is estimated, `-` where it is not known."""
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
    """A bar for people who would rather look than read."""
    if not value or not most:
        return ""
    eighths = max(1, round(value / most * _BAR * 8))
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def notes(report: UsageReport, more: int) -> list[str]:
    """What a reader of the numbers should know."""
    totals, said = report.totals, []
    if more > 0:
        said.append(f"and {more} more; see --limit")
    for count, what in (
        (totals.tokens_estimated, "tokens estimated from the text (~)"),
        (totals.tokens_unknown, "tokens unknown"),
        (totals.cost_estimated, f"cost from list prices (~; {report.prices})"),
        (totals.cost_unknown, "cost unknown"),
    ):
        if count:
            said.append(f"{count} of {totals.sessions} sessions: {what}")
    if report.unpriced:
        from warmstart.doors.render.terminal import clean

        few = ", ".join(clean(model) or "a model that is not told" for model in report.unpriced[:8])
        said.append(f"no price for: {few}{' ...' if len(report.unpriced) > 8 else ''}; set it in config.toml")
    if report.undated:
        said.append(f"{report.undated} sessions are left out: nobody knows their day")
    return said


def _live(command: Any) -> Any:
    """The options of `set` and `add`."""
    tokens = click.IntRange(0, _MOST)
    for option in reversed(
        (
            click.argument("session"),
            click.option("--model", default="", help="The model that answered."),
            click.option(
                "--agent", default="", help="Who runs: claude-code, codex, hermes ..., as `sessions list` says."
            ),
            click.option("--project", help="The working folder."),
            click.option("--input", "input", type=tokens, help="Tokens sent, without those of the cache."),
            click.option("--output", type=tokens, help="Tokens answered."),
            click.option("--cache-read", type=tokens, help="Tokens sent that came from the cache."),
            click.option("--cache-write", type=tokens, help="Tokens sent that went to the cache."),
            click.option("--reasoning", type=tokens, help="Tokens of the answer that were reasoning."),
            click.option("--cost", type=click.FloatRange(0, _MOST), help="US dollars."),
            click.option("--event", help="An id of this report: sent again it changes nothing."),
            click.option("--at", type=_Time(), help="When it was (ISO, UTC, or seconds since 1970).  [default: now]"),
            json_option,
            click.pass_obj,
        )
    ):
        command = option(command)
    return command


@usage.command("set")
@click.option("--whole", is_flag=True, help="The totals are of the session over all its models, not of --model alone.")
@_live
def set_usage(ws: Warmstart, /, as_json: bool, **given: Any) -> None:
    """Report running totals of a session. Sent again, late or smaller they change nothing."""
    _answer(ws.usage.set(_told(given)), as_json)


@usage.command("add")
@_live
def add_usage(ws: Warmstart, /, as_json: bool, **given: Any) -> None:
    """Report what one answer took. Needs --event: the same event counts once."""
    _answer(ws.usage.add(_told(given)), as_json)


def _told(given: dict[str, Any]) -> LiveUsage:
    names = ("input", "output", "cache_read", "cache_write", "reasoning", "cost")
    return LiveUsage(usage=Usage(**{name: given.pop(name) for name in names}), **given)


def _answer(taken: LiveUsageResult, as_json: bool) -> None:
    from warmstart.doors.render.terminal import clean, print_json

    if as_json:
        print_json(taken)
        return
    known = [
        f"{name.replace('_', ' ')} {format_figure(value, name, False, True)}"
        for name in _FIGURES
        if (value := getattr(taken.usage, name, None)) is not None
    ]
    what = "counted" if taken.changed else f"unchanged ({taken.reason})"
    click.echo(f"{clean(taken.session)}: {what}; {', '.join(known)}")
