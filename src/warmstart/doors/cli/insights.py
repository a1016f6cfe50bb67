"""`warmstart insights`: what one's own history tells, on the terminal, as one page, or as JSON."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import click

from warmstart.doors.cli.main import PATH, json_option
from warmstart.doors.cli.options import agent_option, project_option, since_option
from warmstart.doors.render.as_json import describe_insights
from warmstart.doors.render.insights import (
    NOTES,
    UNKNOWN,
    costs_of,
    count_of,
    endings_of,
    interval_of,
    minutes_of,
    name_of,
    remarks_of,
    tokens_of,
    what_failed,
)
from warmstart.doors.render.terminal import clean, print_json, print_table, progress_bar, when
from warmstart.insights.advice import percent
from warmstart.insights.types import Breakdown, Insights, Rate, RepeatedError
from warmstart.pipeline import Warmstart


@click.command()
@agent_option
@project_option
@since_option
@click.option("--top", default=10, show_default=True, type=click.IntRange(1, 1_000), help="Lines of each table.")
@click.option("--html", "page", type=PATH, help="Write one page with plots to this file; only you can read it.")
@json_option
@click.pass_obj
def insights(ws: Warmstart, /, page: Path | None, as_json: bool, **filters: Any) -> None:
    """What your history tells: repeated errors and how they ended, error rates, the course of sessions, costs."""
    with progress_bar("looking through sessions") as tell:
        found = ws.insights(progress=tell, **filters)
    if page is not None:
        from warmstart.doors.pages.insights.page import render_page, write_page

        write_page(page, render_page(found, made=time.time(), about=_describe(filters)))
    if as_json:
        print_json(describe_insights(found))
    elif not found.sessions:
        _say_empty(found, any(filters[name] is not None for name in ("agent", "project", "since")))
    else:
        _show(found)
    if page is not None:
        click.echo(f"page: {clean(page)}", err=as_json)


def _describe(filters: dict[str, Any]) -> str:
    """The filters in words, for the head of the page."""
    told = [f"{name} {name_of(filters[name])}" for name in ("agent", "project") if filters[name]]
    if filters["since"] is not None:
        told.append(f"since {when(filters['since'])} UTC")
    return ", ".join(told)


def _say_empty(found: Insights, filtered: bool) -> None:
    if found.unreadable:
        click.echo(f"{count_of(found.unreadable, 'session')} cannot be read from the store; run: warmstart doctor")
    elif filtered:
        click.echo("no remembered session fits; leave out a filter, or see: warmstart sessions list")
    else:
        click.echo("nothing is remembered yet; run: warmstart ingest")


def _show(found: Insights) -> None:
    overall = found.overall
    _title(
        f"{count_of(found.sessions, 'session')}, {count_of(overall.judged, 'judged call')}, "
        f"{count_of(overall.errors, 'error')}: {percent(overall.rate)} (95% interval {interval_of(overall)})"
    )
    for remark in remarks_of(found):
        _say(remark, dim=True)
    _show_repeated(found)
    for name, groups in (
        ("tool", found.by_tool),
        ("model", found.by_model),
        ("agent", found.by_agent),
        ("project", found.by_project),
    ):
        _show_rates(name, groups)
    _say(NOTES["rates"], dim=True)
    _show_windows(found)
    if overall.errors:
        _title("What the errors cost")
        print_table(("#cost", "share", "how it is known"), costs_of(found.cost))
        _say(NOTES["cost"], dim=True)
    if found.advice:
        _title("What to do")
    for number, advice in enumerate(found.advice, 1):
        _say(f"{number}. {clean(advice.text)}", indent="   ")
        click.secho(f"   {clean(advice.command)}", fg="cyan")


def _title(text: str) -> None:
    click.echo()
    click.secho(text, bold=True)


def _say(text: str, *, dim: bool = False, indent: str = "") -> None:
    """A sentence or two, in lines that can be read."""
    width = min(100, shutil.get_terminal_size().columns)
    click.secho(click.wrap_text(text, width, subsequent_indent=indent), dim=dim)


def _show_repeated(found: Insights) -> None:
    if not found.repeated:
        _title("No error came twice")
        return
    _title("The most repeated errors")
    columns = ("#times", "#sessions", "what failed", "how it ended", "#tokens", "#time")
    rows = [
        (error.count, error.sessions, _what_failed(error), "\n".join(endings_of(error)))
        + (tokens_of(error.cost), minutes_of(error.cost))
        for error in found.repeated
    ]
    print_table(columns, rows)
    more = [f"{found.repeated_more:,} more repeated"] if found.repeated_more else []
    more += [f"{count_of(found.seen_once, 'error')} seen once"] if found.seen_once else []
    _say(NOTES["repeated"] + (f" Not shown: {', '.join(more)}." if more else ""), dim=True)


def _what_failed(error: RepeatedError) -> str:
    seen = f"last {when(error.last_seen)[:10]}" if error.last_seen is not None else ""
    facts = (name_of(error.tool, 40), error.error_kind or "", seen)
    return f"{', '.join(filter(None, facts))}\n{what_failed(error)}"


def _show_rates(name: str, groups: Breakdown) -> None:
    if not groups.rates:
        return
    _title(f"Error rate by {name}" + (f" ({groups.more} more not shown)" if groups.more else ""))
    print_table(
        (name, "#error rate", "#95% interval", "#errors", "#judged calls", "#sessions"),
        [(name_of(rate.name), *_rate_cells(rate)) for rate in groups.rates],
    )


def _rate_cells(rate: Rate) -> tuple[Any, ...]:
    return percent(rate.rate), interval_of(rate), f"{rate.errors:,}", f"{rate.judged:,}", f"{rate.sessions:,}"


def _show_windows(found: Insights) -> None:
    along = found.along
    if not along.windows:
        return
    same = f"those that reached turn {along.followed_from}" if along.followed_from else "the same sessions followed"
    rows = [
        (window.everyone.name, f"{window.everyone.sessions:,}", percent(window.everyone.rate))
        + (interval_of(window.everyone),)
        + ((percent(window.followed.rate), interval_of(window.followed)) if window.followed else (UNKNOWN, UNKNOWN))
        for window in along.windows
    ]
    columns = ("turns", "#sessions there", "#all sessions", "#95% interval", f"#{same}", "#95% interval")
    _title("Error rate along the session")
    print_table(columns, rows)
    _say(along.meaning)
    if along.beyond:
        _say(f"{count_of(along.beyond, 'session')} went on after the last window, too few to show.", dim=True)
