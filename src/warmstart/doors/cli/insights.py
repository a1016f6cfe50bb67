"""`warmstart insights`: what the remembered sessions show, on the terminal, as one page, or as JSON."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import click

from warmstart.doors.cli.main import PATH, json_option
from warmstart.doors.cli.options import agent_option, lake_option, project_option, since_option
from warmstart.doors.render.as_json import describe_insights, describe_occurrences
from warmstart.doors.render.insights import (
    NOTES,
    UNKNOWN,
    costs_of,
    endings_of,
    interval_of,
    minutes_of,
    name_of,
    remarks_of,
    tokens_of,
    what_failed,
)
from warmstart.doors.render.lake import describe_unread, name_left_out
from warmstart.doors.render.terminal import clean, format_time, print_json, print_table, progress_bar
from warmstart.errors import Refused
from warmstart.insights.advice import percent
from warmstart.insights.types import Breakdown, Insights, Rate, RepeatedError
from warmstart.pipeline import Warmstart
from warmstart.plurals import format_count


@click.command()
@agent_option
@project_option
@since_option
@lake_option
@click.option("--top", default=10, show_default=True, type=click.IntRange(1, 1_000), help="Rows of each table.")
@click.option("--show", type=click.IntRange(1), help="List the occurrences of the repeated error in this row instead.")
@click.option("--html", "page", type=PATH, help="Also write one page with plots to this file, readable only by you.")
@json_option
@click.pass_obj
def insights(
    ws: Warmstart,
    agent: str | None,
    project: str | None,
    since: float | None,
    lake: str | None,
    top: int,
    show: int | None,
    page: Path | None,
    as_json: bool,
) -> None:
    """Show repeated errors and their fixes, error rates, errors along the session, and costs."""
    if lake is not None and show is not None:
        raise click.UsageError("--show reads the store; ask the lake's calls with DuckDB instead")
    library = ws.lake(lake) if lake is not None else None
    with progress_bar("reading sessions") as progress:
        if library is not None:
            gathered = ws.insights_of(library, top=top, agent=agent, project=project, since=since, progress=progress)
        else:
            gathered = ws.insights(top=top, agent=agent, project=project, since=since, show=show, progress=progress)
    if library is not None:
        name_left_out(library, as_json=as_json)
    if show is not None:
        _show_row(gathered, show, as_json=as_json)
        return
    if page is not None:
        from warmstart.doors.pages.insights.page import render_page, write_page

        write_page(page, render_page(gathered, made=time.time(), about=_describe_filters(agent, project, since)))
    if as_json:
        print_json(describe_insights(gathered))
    elif not gathered.sessions:
        _show_empty(gathered, lake, filtered=any(given is not None for given in (agent, project, since)))
    else:
        _show_insights(gathered)
    if page is not None:
        click.echo(f"page: {clean(page)}", err=as_json)


def _show_row(insights: Insights, number: int, *, as_json: bool) -> None:
    """Show one repeated error with its occurrences."""
    error = insights.shown
    if error is None:
        rows = len(insights.repeated) + insights.repeated_more
        there = f"the rows are 1 to {rows}" if rows else "no error occurred twice"
        raise Refused(f"there is no repeated error in row {number}; {there}: warmstart insights --top {max(rows, 1)}")
    if as_json:
        print_json(describe_occurrences(insights))
        return
    _show_title(f"{number}. {name_of(error.tool, 40)}: {what_failed(error)}")
    _show_text(f"{format_count(error.count, 'time')} in {format_count(error.sessions, 'session')}", dim=True)
    for ending in endings_of(error):
        _show_text(ending)
    print_table(
        ("session", "#call", "time", "cause", "what followed"),
        [
            (name_of(one.session[:12]), one.call, format_time(one.at) if one.at is not None else UNKNOWN)
            + (name_of(one.cause, 120), name_of(one.followed, 160))
            for one in insights.occurrences
        ],
    )
    _show_text("Look at one: warmstart sessions show SESSION", dim=True)


def _describe_filters(agent: str | None, project: str | None, since: float | None) -> str:
    """Describe the filters for the head of the page; empty without filters."""
    parts = [f"{kind} {name_of(name)}" for kind, name in (("agent", agent), ("project", project)) if name]
    if since is not None:
        parts.append(f"since {format_time(since)} UTC")
    return ", ".join(parts)


def _show_empty(insights: Insights, lake: str | None, *, filtered: bool) -> None:
    if insights.unread_files:
        click.echo(f"no session could be counted. {describe_unread(insights.unread_files)}")
    elif insights.unreadable:
        click.echo(
            f"{format_count(insights.unreadable, 'session')} cannot be read from the store; run: warmstart doctor"
        )
    elif lake is not None:
        click.echo("no session of the lake matches the filters" if filtered else "the lake holds no sessions")
    elif filtered:
        click.echo("no remembered session matches the filters; see: warmstart sessions list")
    else:
        click.echo("no sessions are remembered yet; run: warmstart ingest")


def _show_insights(insights: Insights) -> None:
    overall = insights.overall
    _show_title(
        f"{format_count(insights.sessions, 'session')}, {format_count(overall.judged, 'judged call')}, "
        f"{format_count(overall.errors, 'error')}: {percent(overall.rate)} (95% interval {interval_of(overall)})"
    )
    for remark in remarks_of(insights):
        _show_text(remark, dim=True)
    _show_repeated(insights)
    for name, groups in (
        ("tool", insights.by_tool),
        ("model", insights.by_model),
        ("agent", insights.by_agent),
        ("project", insights.by_project),
    ):
        _show_rates(name, groups)
    _show_text(NOTES["rates"], dim=True)
    _show_work(insights)
    _show_windows(insights)
    if overall.errors:
        _show_title("What the errors cost")
        print_table(("#cost", "share", "basis"), costs_of(insights.cost))
        _show_text(NOTES["cost"], dim=True)
    if insights.advice:
        _show_title("What to do")
    for number, advice in enumerate(insights.advice, 1):
        _show_text(f"{number}. {clean(advice.text)}", indent="   ")
        click.secho(f"   {clean(advice.command)}", fg="cyan")


def _show_title(text: str) -> None:
    click.echo()
    click.secho(text, bold=True)


def _show_text(text: str, *, dim: bool = False, indent: str = "") -> None:
    """Print a sentence or two, wrapped to a readable width."""
    width = min(100, shutil.get_terminal_size().columns)
    click.secho(click.wrap_text(text, width, subsequent_indent=indent), dim=dim)


def _show_repeated(insights: Insights) -> None:
    if not insights.repeated:
        _show_title("No error occurred twice")
        return
    _show_title("The most repeated errors")
    columns = ("#row", "#times", "#sessions", "what failed", "how it was fixed", "#tokens", "#time")
    rows = [
        (error.number, error.count, error.sessions, _describe_error(error), "\n".join(endings_of(error)))
        + (tokens_of(error.cost), minutes_of(error.cost))
        for error in insights.repeated
    ]
    print_table(columns, rows)
    more = [f"{insights.repeated_more:,} more repeated"] if insights.repeated_more else []
    more += [f"{format_count(insights.seen_once, 'error')} seen once"] if insights.seen_once else []
    _show_text(NOTES["repeated"] + (f" Not shown: {', '.join(more)}." if more else ""), dim=True)


def _describe_error(error: RepeatedError) -> str:
    seen = f"last seen {format_time(error.last_seen)[:10]}" if error.last_seen is not None else ""
    facts = (name_of(error.tool, 40), error.error_kind or "", seen)
    return f"{', '.join(filter(None, facts))}\n{what_failed(error)}"


def _show_rates(name: str, groups: Breakdown) -> None:
    if not groups.rates:
        return
    _show_title(f"Error rate by {name}" + (f" ({groups.more} more not shown)" if groups.more else ""))
    print_table(
        (name, "#error rate", "#95% interval", "#errors", "#judged calls", "#sessions"),
        [(name_of(rate.name), *_format_rate(rate)) for rate in groups.rates],
    )


def _format_rate(rate: Rate) -> tuple[Any, ...]:
    return percent(rate.rate), interval_of(rate), f"{rate.errors:,}", f"{rate.judged:,}", f"{rate.sessions:,}"


def _show_work(insights: Insights) -> None:
    """Show the error rate of each kind of work and its course over the first turns."""
    if not insights.by_work:
        return
    _show_title("Error rate by kind of work, and over the first turns")
    steps = [str(rate.name) for rate in insights.by_work[0].course]
    rows = [
        (kind.name, f"{kind.rate.judged:,}", percent(kind.rate.rate), interval_of(kind.rate))
        + tuple(percent(rate.rate) for rate in kind.course)
        for kind in insights.by_work
    ]
    print_table(("kind", "#judged calls", "#error rate", "#95% interval", *(f"#turns {step}" for step in steps)), rows)
    _show_text(NOTES["work"], dim=True)


def _show_windows(insights: Insights) -> None:
    along = insights.along
    if not along.windows:
        return
    same = f"those that reached turn {along.followed_from}" if along.followed_from else "the same sessions followed"
    rows = [
        (window.everyone.name, f"{window.everyone.sessions:,}", percent(window.everyone.rate))
        + (interval_of(window.everyone),)
        + ((percent(window.followed.rate), interval_of(window.followed)) if window.followed else (UNKNOWN, UNKNOWN))
        for window in along.windows
    ]
    columns = ("turns", "#sessions left", "#all sessions", "#95% interval", f"#{same}", "#95% interval")
    _show_title("Error rate along the session")
    print_table(columns, rows)
    _show_text(along.meaning)
    if along.beyond:
        _show_text(
            f"{format_count(along.beyond, 'session')} continued after the last window, too few to show.", dim=True
        )
