"""Error rates on the insights page: bars with whiskers, courses along a session, weeks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date
from typing import NamedTuple, TypeVar

from warmstart.doors.pages.markup import Markup, element, join
from warmstart.doors.pages.plots.pieces import (
    HEIGHT,
    TOP,
    Scale,
    as_width,
    draw_course,
    make_axis,
    make_block,
    make_cap,
    make_cell,
    make_columns,
    make_grid,
    make_image,
    make_line,
    make_rect,
    stretch,
)
from warmstart.insights.advice import percent
from warmstart.insights.types import Rate
from warmstart.plurals import format_count

_BAR = 14  # pixels
_STEPS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0)
T = TypeVar("T")


class PlotLine(NamedTuple):
    """One course in a line plot."""

    css: str
    label: str
    rates: Sequence[Rate | None]


def make_rate_scale(rates: Sequence[Rate | None], *, most: int = 5, reach: float = math.inf) -> Scale:
    """Return a scale of `most` steps or fewer, for rates and for intervals up to `reach` times the largest rate.

    A group of two sessions has an interval over nearly everything, which must not press all others together: an interval
    that goes on beyond the scale ends in an arrow.
    """
    values = [rate.rate for rate in rates if rate and rate.rate is not None]
    highs = [rate.high for rate in rates if rate and rate.high is not None]
    limit = reach * max([*values, 0.01])
    largest = min(1.0, max([*values, *(min(high, limit) for high in highs), 0.01]))
    step = next(step for step in _STEPS if largest / step <= most)
    return Scale(step * math.ceil(round(largest / step, 9)), step)


def exceeds(rate: Rate | None, scale: Scale) -> bool:
    """Return whether the interval goes on beyond the scale."""
    return rate is not None and rate.high is not None and rate.high > scale.top + 1e-9


def describe_rate(rate: Rate) -> str:
    """Return a rate with its interval and its counts."""
    interval = (
        "no interval" if rate.low is None or rate.high is None else f"{percent(rate.low)} to {percent(rate.high)}"
    )
    calls = f"{rate.errors:,} of {rate.judged:,} calls"
    sessions = format_count(rate.sessions, "session")
    return f"{percent(rate.rate)} ({interval}), {calls}, {sessions}"


def draw_bar(rate: Rate, scale: Scale, label: str) -> Markup:
    """Draw a rate as a bar and its interval, where it has one, as a whisker."""
    parts = make_columns(scale)
    if rate.rate is not None:
        parts.append(make_block("0", scale.x(rate.rate), _BAR, "bar" if rate.low is not None else "bar unsure"))
    if rate.low is not None and rate.high is not None:
        low, high = scale.x(rate.low), scale.x(rate.high)
        end = _arrow("100%", "50%", "M-8 -4.5L0 0L-8 4.5Z") if exceeds(rate, scale) else make_cap(high, 9)
        parts += [make_line(low, "50%", high, "50%", "whisker"), make_cap(low, 9), end]
    return make_cell(label, parts)


def draw_meter(share: float | None, label: str) -> Markup:
    """Draw a small bar for one number beside others of its kind, empty where it is unknown."""
    parts = [make_rect("0", 0, "100%", 6, "track")]
    if share is not None:
        parts.append(make_rect("0", 0, as_width(max(share, 0.01)), 6, "bar"))
    return make_image(6, label, parts, "meter")


def draw_lines(lines: Sequence[PlotLine], scale: Scale, label: str) -> Markup:
    """Draw courses over the same places, each with a band for its interval and the number at every point."""
    places = len(lines[0].rates)
    across = [(at + 0.5) / places * 100 for at in range(places)]
    inner: list[Markup] = []
    for line in lines:
        inner += [_draw_band(run, scale, line.css) for run in _runs(line, across, _interval) if len(run) > 1]
    for line in lines:
        runs = [run for run in _runs(line, across, lambda rate: rate.rate) if len(run) > 1]
        inner += [draw_course([(x, scale.y(rate)) for x, rate in run], line.css) for run in runs]
    points = [_draw_points(at, x, lines, scale) for at, x in enumerate(across)]
    return make_image(HEIGHT, label, [*make_grid(scale), stretch(inner), *points])


def draw_counts(counts: Sequence[int], label: str) -> Markup:
    """Draw how many sessions reach each place: bars under a line plot."""
    most, height = max([*counts, 1]), 44
    width = 100 / max(1, len(counts))
    parts: list[Markup] = []
    for at, count in enumerate(counts):
        tall = max(1.0, 24 * count / most) if count else 0
        left, middle = f"{width * at + width * 0.3:.2f}%", f"{width * (at + 0.5):.2f}%"
        parts.append(make_rect(left, height - tall, f"{width * 0.4:.2f}%", round(tall, 1), "count"))
        place = {"x": middle, "y": round(height - tall - 5, 1), "class": "label", "text-anchor": "middle"}
        parts.append(element("text", place, f"{count:,}"))
    return make_image(height, label, parts)


def draw_weeks(weeks: Sequence[Rate], scale: Scale, label: str) -> Markup:
    """Draw the rate of each week as a point with its interval, on a true axis of time."""
    first, span = _span(weeks)
    parts = make_grid(scale)
    for week in weeks:
        if week.rate is None:
            continue
        x = _week_x((_day(week) - first).days / span)
        if week.low is not None and week.high is not None:
            parts.append(make_line(x, scale.y(week.low), x, scale.y(week.high), "whisker all"))
            if exceeds(week, scale):
                parts.append(_arrow(x, TOP, "M-4.5 4L0 -4L4.5 4Z", "all"))
        title = element("title", {}, f"week of {week.name}: {describe_rate(week)}")
        parts.append(element("circle", {"cx": x, "cy": scale.y(week.rate), "r": 4, "class": "point all"}, title))
    return make_image(HEIGHT, label, parts)


def draw_months(weeks: Sequence[Rate]) -> Markup:
    """Draw the dates under the weeks: first, last and two between."""
    first, span = _span(weeks)
    shares = [0.0, 1 / 3, 2 / 3, 1.0] if span > 28 else [0.0, 1.0]
    days = [date.fromordinal(first.toordinal() + round(span * share)) for share in shares]
    return make_axis([(_week_x(share), day.isoformat()) for share, day in zip(shares, days, strict=True)])


def _day(week: Rate) -> date:
    return date.fromisoformat(week.name or "")


def _span(weeks: Sequence[Rate]) -> tuple[date, int]:
    """Return the first day and the number of days to the last."""
    return _day(weeks[0]), (_day(weeks[-1]) - _day(weeks[0])).days or 1


def _week_x(share: float) -> str:
    return f"{2 + 96 * share:.2f}%"


def _interval(rate: Rate) -> tuple[float, float] | None:
    return None if rate.low is None or rate.high is None else (rate.low, rate.high)


def _runs(line: PlotLine, across: Sequence[float], read: Callable[[Rate], T | None]) -> list[list[tuple[float, T]]]:
    """Return the stretches over which a value of the rates is known."""
    runs: list[list[tuple[float, T]]] = [[]]
    for x, rate in zip(across, line.rates, strict=True):
        value = None if rate is None else read(rate)
        if value is None:
            runs.append([])
        else:
            runs[-1].append((x, value))
    return runs


def _draw_band(run: Sequence[tuple[float, tuple[float, float]]], scale: Scale, css: str) -> Markup:
    over = [f"{x:.2f},{scale.y(high)}" for x, (_low, high) in run]
    under = [f"{x:.2f},{scale.y(low)}" for x, (low, _high) in reversed(run)]
    return element("polygon", {"points": " ".join([*over, *under]), "class": f"band {css}"})


def _draw_points(at: int, x: float, lines: Sequence[PlotLine], scale: Scale) -> Markup:
    """Draw the points at one place: the upper one with its number above, the lower one below."""
    points = [(rate.rate, rate, line) for line in lines if (rate := line.rates[at]) and rate.rate is not None]
    points.sort(key=lambda point: -point[0])
    parts: list[Markup] = []
    for order, (value, rate, line) in enumerate(points):
        y = scale.y(value)
        title = element("title", {}, f"{line.label}, turns {rate.name}: {describe_rate(rate)}")
        parts.append(element("circle", {"cx": f"{x:.2f}%", "cy": y, "r": 4, "class": f"point {line.css}"}, title))
        if order == 0 or value != points[0][0]:
            place = {"x": f"{x:.2f}%", "y": y - 9 if order == 0 else y + 18, "text-anchor": "middle"}
            parts.append(element("text", {**place, "class": f"label {line.css}"}, percent(value)))
    return join(*parts)


def _arrow(x: str, y: float | str, path: str, css: str = "") -> Markup:
    shape = element("path", {"d": path, "class": f"cap {css}".strip()})
    return element("svg", {"x": x, "y": y, "width": 1, "height": 1, "overflow": "visible"}, shape)
