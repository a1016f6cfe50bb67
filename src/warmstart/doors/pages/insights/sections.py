"""The sections of the insights page: each a plot, with its numbers in a table below."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warmstart.doors.pages.markup import Markup, element, isolate, join, show_table, typeset_code
from warmstart.doors.pages.plots.pieces import Scale, draw_axis, draw_vertical_axis
from warmstart.doors.pages.plots.rates import (
    PlotLine,
    describe_rate,
    draw_bar,
    draw_counts,
    draw_lines,
    draw_meter,
    draw_months,
    draw_weeks,
    exceeds,
    make_rate_scale,
)
from warmstart.doors.render.insights import (
    UNKNOWN,
    costs_of,
    endings_of,
    interval_of,
    minutes_of,
    name_of,
    shape_of,
    tokens_of,
    what_failed,
)
from warmstart.doors.render.terminal import format_time
from warmstart.insights.advice import percent
from warmstart.insights.types import Breakdown, Insights, KindOfWork, Rate, RepeatedError
from warmstart.plurals import format_count

_REACH = 1.6  # times the largest rate: what of intervals a scale shows
_RATE_COLUMNS = ("#error rate", "#95% interval", "#errors", "#judged calls", "#sessions")


def describe_figures(insights: Insights) -> Markup:
    """Show the five main numbers."""
    overall = insights.overall
    turns, tokens, time = costs_of(insights.cost)
    figures = [
        ("Error rate", percent(overall.rate), _interval(overall)),
        ("Errors", f"{overall.errors:,}", f"of {format_count(overall.judged, 'judged call')}"),
        *(
            (f"Cost in {name}", figure.removesuffix(f" {name}"), "; ".join(filter(None, (share, known))))
            for name, (figure, share, known) in (("turns", turns), ("tokens", tokens), ("time", time))
        ),
    ]
    return element(
        "dl",
        {"class": "figures"},
        *(
            element(
                "div",
                {},
                element("dt", {}, name),
                element("dd", {"class": "big"}, figure),
                element("dd", {"class": "small"}, small),
            )
            for name, figure, small in figures
        ),
    )


def _interval(rate: Rate) -> str:
    return "too few sessions for an interval" if rate.low is None else f"95% interval {interval_of(rate)}"


def show_advice(
    insights: Insights, offer: Callable[[str], Markup] = lambda command: element("code", {}, command)
) -> Markup | None:
    """Show the advice; `offer` returns what stands for a command."""
    if not insights.advice:
        return None
    items = (element("li", {}, typeset_code(advice.text), " ", offer(advice.command)) for advice in insights.advice)
    return element("ol", {"class": "advice"}, *items)


def show_errors(insights: Insights, add: Callable[[RepeatedError], Markup | None] = lambda error: None) -> Markup:
    """Show the repeated errors; `add` returns what is to stand below one."""
    if not insights.repeated:
        return element("p", {"class": "note"}, "No error occurred twice.")
    most = max(error.count for error in insights.repeated)
    tokens = max((error.cost.tokens or 0 for error in insights.repeated), default=0)
    seconds = max((error.cost.seconds or 0 for error in insights.repeated), default=0)
    items = (_show_error(error, (most, tokens, seconds), add(error)) for error in insights.repeated)
    more = [format_count(insights.repeated_more, "other repeated error")] if insights.repeated_more else []
    more += [f"{format_count(insights.seen_once, 'error')} seen once"] if insights.seen_once else []
    return join(
        element("ol", {"class": "errors"}, *items),
        element("p", {"class": "note"}, f"Not shown: {' and '.join(more)}.") if more else None,
    )


def _show_error(error: RepeatedError, most: tuple[float, float, float], added: Markup | None) -> Markup:
    seen = f"last seen {format_time(error.last_seen)[:10]}" if error.last_seen is not None else ""
    about = " · ".join(filter(None, (error.error_kind and f"{error.error_kind} error", seen)))
    endings = [
        element("li", {"class": "unfixed" if ending.startswith("no fix seen") else None}, isolate(ending))
        for ending in endings_of(error)
    ]
    example = f"e.g. {name_of(error.example, 170)}" if error.example and error.message != error.example else ""
    left = element(
        "div",
        {},
        element(
            "p",
            {"class": "about"},
            f"{error.number}. ",
            element("strong", {}, isolate(name_of(error.tool))),
            f" · {about}" if about else "",
        ),
        element("h3", {}, isolate(what_failed(error, 140))),
        element("p", {"class": "said code"}, isolate(shape_of(error, 140))) if error.message else None,
        element("p", {"class": "said"}, isolate(example)) if example else None,
        element("ul", {"aria-label": "how it ended"}, *endings),
        added,
    )
    cost = error.cost
    right = element(
        "dl",
        {"class": "meters"},
        _meter("times", f"{error.count:,}", f"in {format_count(error.sessions, 'session')}", error.count, most[0]),
        _meter("tokens", tokens_of(cost), _unknown(cost.tokens_unknown, cost.errors), cost.tokens, most[1]),
        _meter("time", minutes_of(cost), _unknown(cost.seconds_unknown, cost.errors), cost.seconds, most[2]),
    )
    return element("li", {}, left, right)


def _meter(name: str, figure: str, small: str, value: float | None, most: float) -> Markup:
    share = None if value is None or most <= 0 else value / most
    label = f"{name}: {figure}" if value is not None else f"{name}: unknown"
    return element(
        "div",
        {},
        element("dt", {}, name),
        element("dd", {}, figure, draw_meter(share, label), element("span", {}, small) if small else None),
    )


def _unknown(unknown: int, errors: int) -> str:
    if not unknown:
        return ""
    return "unknown" if unknown == errors else f"unknown for {unknown} of {errors}"


def show_rates(insights: Insights, find_place: Callable[[str, str], str | None] = lambda kind, name: None) -> Markup:
    """Show the rates by tool, model, agent and project; `find_place` returns the address of the sessions behind one."""
    facets = (
        ("tool", insights.by_tool),
        ("model", insights.by_model),
        ("agent", insights.by_agent),
        ("project", insights.by_project),
    )
    return element(
        "div", {"class": "facets"}, *(_show_facet(name, groups, find_place) for name, groups in facets if groups.rates)
    )


def _show_facet(name: str, groups: Breakdown, find_place: Callable[[str, str], str | None]) -> Markup:
    scale = make_rate_scale(groups.rates, most=3, reach=_REACH)
    bars = [_show_bar(rate, scale, find_place(name, rate.name) if rate.name else None) for rate in groups.rates]
    rows = [(name_of(rate.name, 200), *_rate_cells(rate)) for rate in groups.rates]
    more = f"; {groups.more} more not shown" if groups.more else ""
    more += "; arrow: the interval goes on" if any(exceeds(rate, scale) for rate in groups.rates) else ""
    return element(
        "figure",
        {"aria-label": f"Error rate by {name}"},
        element("h3", {}, f"By {name}"),
        element("p", {"class": "about"}, f"errors per judged call{more}"),
        element("div", {"class": "bars"}, element("div", {}, draw_axis(scale)), *bars),
        show_table((name, *_RATE_COLUMNS), rows),
    )


def _show_bar(rate: Rate, scale: Scale, place: str | None) -> Markup:
    label = name_of(rate.name)
    calls = element("small", {}, f"{rate.errors:,} of {rate.judged:,}")
    return element(
        "div",
        {},
        element("span", {"class": "name"}, element("a", {"href": place}, isolate(label)) if place else isolate(label)),
        draw_bar(rate, scale, f"{label}: {describe_rate(rate)}"),
        element("span", {"class": "value"}, percent(rate.rate), " ", calls),
    )


def show_windows(insights: Insights) -> Markup | None:
    along = insights.along
    if not along.windows:
        return None
    everyone = PlotLine("all", "all sessions that reached these turns", [window.everyone for window in along.windows])
    lines = [everyone]
    if along.followed_from is not None:
        label = f"the same {format_count(along.followed_sessions, 'session')}, those that reached turn {along.followed_from}"
        lines.append(PlotLine("same", label, [window.followed for window in along.windows]))
    scale = make_rate_scale([rate for line in lines for rate in line.rates])
    names = [str(window.everyone.name) for window in along.windows]
    counts = [window.everyone.sessions for window in along.windows]
    values = "; ".join(
        f"{line.label}: " + ", ".join(percent(rate.rate) for rate in line.rates if rate) for line in lines
    )
    plot = element(
        "div",
        {"class": "course-plot"},
        draw_vertical_axis(scale),
        draw_lines(lines, scale, f"Error rate in turns {', '.join(names)}. {values}"),
        element("span", {"class": "side"}, "turns"),
        element("div", {"class": "places"}, *(element("span", {}, name) for name in names)),
        element("span", {"class": "side"}, "sessions there"),
        draw_counts(counts, f"Sessions that reached turns {', '.join(names)}: {', '.join(map(str, counts))}"),
    )
    beyond = (
        f" {format_count(along.beyond, 'session')} went on after the last window, too few to show."
        if along.beyond
        else ""
    )
    return element(
        "figure",
        {"aria-label": "Error rate along the session"},
        element("p", {"class": "meaning"}, along.meaning + beyond),
        _legend(lines),
        element("p", {"class": "unit"}, "errors per judged call"),
        plot,
        show_table(
            ("turns", "#sessions there", "#all sessions", "#95% interval", "#the same sessions", "#95% interval"),
            [
                (window.everyone.name or "", f"{window.everyone.sessions:,}", percent(window.everyone.rate))
                + (interval_of(window.everyone),)
                + ((percent(window.followed.rate), interval_of(window.followed)) if window.followed else (UNKNOWN,) * 2)
                for window in along.windows
            ],
        ),
    )


def show_work(insights: Insights) -> Markup | None:
    """Show the course of the error rate over the first turns, a plot for each kind of work."""
    if not insights.by_work:
        return None
    scale = make_rate_scale([rate for kind in insights.by_work for rate in kind.course], reach=_REACH)
    return element("div", {"class": "facets"}, *(_show_kind(kind, scale) for kind in insights.by_work))


def _show_kind(kind: KindOfWork, scale: Scale) -> Markup:
    names = [str(rate.name) for rate in kind.course]
    values = ", ".join(percent(rate.rate) for rate in kind.course)
    plot = element(
        "div",
        {"class": "course-plot"},
        draw_vertical_axis(scale),
        draw_lines([PlotLine("all", kind.name, kind.course)], scale, f"Error rate of {kind.name} calls: {values}"),
        element("span", {"class": "side"}, "turns"),
        element("div", {"class": "places"}, *(element("span", {}, name) for name in names)),
    )
    rows = [(str(rate.name), *_rate_cells(rate)) for rate in kind.course]
    return element(
        "figure",
        {"aria-label": f"Error rate of {kind.name} calls over the first turns"},
        element("h3", {}, f"{kind.name}: {percent(kind.rate.rate)}"),
        element(
            "p", {"class": "about"}, f"{kind.rate.errors:,} of {format_count(kind.rate.judged, 'judged call')} failed"
        ),
        plot,
        show_table(("turns", *_RATE_COLUMNS), [*rows, ("whole session", *_rate_cells(kind.rate))]),
    )


def _legend(lines: Sequence[PlotLine]) -> Markup:
    items = []
    for line in lines:
        sample = element("line", {"x1": 0, "y1": 5, "x2": 28, "y2": 5, "class": f"course {line.css}"})
        swatch = element("svg", {"width": 28, "height": 10, "aria-hidden": "true"}, sample)
        items.append(element("li", {}, swatch, line.label))
    items.append(element("li", {}, "shaded: 95% intervals"))
    return element("ul", {"class": "legend"}, *items)


def show_weeks(insights: Insights) -> Markup | None:
    weeks = insights.by_week
    if len(weeks) < 2:
        return None
    scale = make_rate_scale(weeks, reach=_REACH)
    plot = element(
        "div",
        {"class": "course-plot"},
        draw_vertical_axis(scale),
        draw_weeks(weeks, scale, f"Error rate of {len(weeks)} weeks, {weeks[0].name} to {weeks[-1].name}"),
        element("span", {"class": "side"}, "week of"),
        draw_months(weeks),
    )
    unit = "errors per judged call"
    unit += "; arrow: the interval goes on" if any(exceeds(week, scale) for week in weeks) else ""
    lead = (
        "Errors per judged call of the sessions that started in each week, with 95% intervals where they are defined. "
    )
    return element(
        "figure",
        {"aria-label": "Error rate by week"},
        element(
            "p", {"class": "lead"}, lead + "The work changes from week to week: this is no trend of the agent alone."
        ),
        element("p", {"class": "unit"}, unit),
        plot,
        show_table(("week of", *_RATE_COLUMNS), [(week.name or "", *_rate_cells(week)) for week in weeks]),
    )


def _rate_cells(rate: Rate) -> tuple[str, ...]:
    return percent(rate.rate), interval_of(rate), f"{rate.errors:,}", f"{rate.judged:,}", f"{rate.sessions:,}"
