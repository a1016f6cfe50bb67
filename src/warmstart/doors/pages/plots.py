"""The plots of the insights page, drawn as SVG.

Across, everything is placed in per cent of the width, so that one drawing fits every screen and its text keeps its size;
upright in pixels. Lines and bands lie in an inner drawing that is stretched without its strokes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date
from typing import NamedTuple

from warmstart.doors.pages.markup import Markup, element, join
from warmstart.insights.advice import percent
from warmstart.insights.types import Rate

HEIGHT, TOP, BOTTOM = 230, 22, 8  # of a plot with an axis upright, and its margins
BAR = 14
_STEPS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0)


class Scale(NamedTuple):
    """From nought, or a round number below it, to a round number, in equal steps."""

    top: float
    step: float
    bottom: float = 0.0

    @property
    def ticks(self) -> list[float]:
        return [self.bottom + self.step * n for n in range(round((self.top - self.bottom) / self.step) + 1)]

    def share(self, value: float) -> float:
        """Where a value stands, 0 to 1."""
        return min(1.0, max(0.0, (value - self.bottom) / (self.top - self.bottom)))

    def across(self, value: float) -> str:
        return as_width(self.share(value))

    def upright(self, value: float) -> float:
        return round(HEIGHT - BOTTOM - self.share(value) * (HEIGHT - TOP - BOTTOM), 1)


class PlotLine(NamedTuple):
    """One course in a line plot."""

    css: str
    label: str
    rates: Sequence[Rate | None]


def make_scale(rates: Sequence[Rate | None], *, most: int = 5, reach: float = math.inf) -> Scale:
    """A scale with at most so many steps, for rates and for intervals up to `reach` times the largest rate.

    A group of two sessions has an interval over nearly everything: it must not press all others together. What goes on
    beyond the scale is drawn with an arrow.
    """
    values = [rate.rate for rate in rates if rate and rate.rate is not None]
    highs = [rate.high for rate in rates if rate and rate.high is not None]
    limit = reach * max([*values, 0.01])
    largest = min(1.0, max([*values, *(min(high, limit) for high in highs), 0.01]))
    step = next(step for step in _STEPS if largest / step <= most)
    return Scale(step * math.ceil(round(largest / step, 9)), step)


def exceeds(rate: Rate | None, scale: Scale) -> bool:
    """Whether the interval goes on beyond the scale."""
    return rate is not None and rate.high is not None and rate.high > scale.top + 1e-9


def tick_label(value: float) -> str:
    return f"{value * 100:.1f}".removesuffix(".0") + "%"


def draw_axis(scale: Scale, label: Callable[[float], str] = tick_label) -> Markup:
    """The numbers over bars."""
    ticks = scale.ticks
    texts = [
        element(
            "text",
            {"x": scale.across(tick), "y": 12, "class": "tick", "text-anchor": anchor_of(at, len(ticks))},
            label(tick),
        )
        for at, tick in enumerate(ticks)
    ]
    return element("svg", {"class": "axis", "width": "100%", "height": 18, "aria-hidden": "true"}, *texts)


def draw_bar(rate: Rate, scale: Scale, told: str) -> Markup:
    """A rate as a bar, its interval as a whisker. An interval that is not defined has none."""
    parts = [make_line(scale.across(tick), "0", scale.across(tick), "100%", "grid") for tick in scale.ticks]
    if rate.rate is not None:
        parts.append(make_block("0", scale.across(rate.rate), BAR, "bar" if rate.low is not None else "bar unsure"))
    if rate.low is not None and rate.high is not None:
        low, high = scale.across(rate.low), scale.across(rate.high)
        end = (
            _arrow("100%", "50%", "M-8 -4.5L0 0L-8 4.5Z") if exceeds(rate, scale) else make_block(high, "1.5", 9, "cap")
        )
        parts += [make_line(low, "50%", high, "50%", "whisker"), make_block(low, "1.5", 9, "cap"), end]
    return element("div", {"class": "cell"}, make_image("100%", told, parts, "plot"))


def draw_meter(share: float | None, told: str) -> Markup:
    """A small bar for one number beside others of its kind; empty where it is not known."""
    parts = [make_rect("0", 0, "100%", 6, "track")]
    if share is not None:
        parts.append(make_rect("0", 0, as_width(max(share, 0.01)), 6, "bar"))
    return make_image(6, told, parts, "meter")


def draw_upright_axis(scale: Scale) -> Markup:
    texts = [
        element(
            "text",
            {"x": "100%", "dx": -6, "y": scale.upright(tick) + 4, "class": "tick", "text-anchor": "end"},
            tick_label(tick),
        )
        for tick in scale.ticks
    ]
    return element("svg", {"class": "upright", "width": "100%", "height": HEIGHT, "aria-hidden": "true"}, *texts)


def draw_lines(lines: Sequence[PlotLine], scale: Scale, told: str) -> Markup:
    """Courses over the same places, each with a band for its interval and the number at every point."""
    places = len(lines[0].rates)
    across = [(at + 0.5) / places * 100 for at in range(places)]
    inner: list[Markup] = []
    for line in lines:
        inner += [_band(run, scale, line.css) for run in _runs(line, across) if len(run) > 1]
    for line in lines:
        inner += [_course(run, scale, line.css) for run in _courses(line, across) if len(run) > 1]
    stretched = element(
        "svg",
        {"width": "100%", "height": HEIGHT, "viewBox": f"0 0 100 {HEIGHT}", "preserveAspectRatio": "none"},
        *inner,
    )
    points = [_points(at, x, lines, scale) for at, x in enumerate(across)]
    return make_image(HEIGHT, told, [*make_grid(scale), stretched, *points], "plot")


def draw_counts(counts: Sequence[int], told: str) -> Markup:
    """How many sessions are still there: bars under a line plot."""
    most, height = max([*counts, 1]), 44
    width = 100 / max(1, len(counts))
    parts: list[Markup] = []
    for at, count in enumerate(counts):
        tall = max(1.0, 24 * count / most) if count else 0
        parts.append(
            make_rect(f"{width * at + width * 0.3:.2f}%", height - tall, f"{width * 0.4:.2f}%", round(tall, 1), "count")
        )
        middle = f"{width * (at + 0.5):.2f}%"
        parts.append(
            element(
                "text",
                {"x": middle, "y": round(height - tall - 5, 1), "class": "label", "text-anchor": "middle"},
                f"{count:,}",
            )
        )
    return make_image(height, told, parts, "plot")


def draw_weeks(weeks: Sequence[Rate], scale: Scale, told: str) -> Markup:
    """The rate of each week as a point with its interval, on a true axis of time."""
    days = [date.fromisoformat(week.name or "") for week in weeks]
    span = (days[-1] - days[0]).days or 1
    parts = make_grid(scale)
    for week, day in zip(weeks, days, strict=True):
        x = f"{2 + 96 * (day - days[0]).days / span:.2f}%"
        if week.rate is None:
            continue
        if week.low is not None and week.high is not None:
            parts.append(make_line(x, scale.upright(week.low), x, scale.upright(week.high), "whisker all"))
            if exceeds(week, scale):
                parts.append(_arrow(x, TOP, "M-4.5 4L0 -4L4.5 4Z", "all"))
        title = element("title", {}, f"week of {week.name}: {describe_rate(week)}")
        parts.append(element("circle", {"cx": x, "cy": scale.upright(week.rate), "r": 4, "class": "point all"}, title))
    return make_image(HEIGHT, told, parts, "plot")


def draw_months(weeks: Sequence[Rate]) -> Markup:
    """The dates under the weeks: first, last and a few between."""
    days = [date.fromisoformat(week.name or "") for week in weeks]
    span = (days[-1] - days[0]).days or 1
    wanted = [0.0, 1 / 3, 2 / 3, 1.0] if span > 28 else [0.0, 1.0]
    texts = []
    for at, share in enumerate(wanted):
        day = date.fromordinal(days[0].toordinal() + round(span * share))
        place = {"x": f"{2 + 96 * share:.2f}%", "y": 13, "class": "tick", "text-anchor": anchor_of(at, len(wanted))}
        texts.append(element("text", place, day.isoformat()))
    return element("svg", {"class": "axis", "width": "100%", "height": 18, "aria-hidden": "true"}, *texts)


def describe_rate(rate: Rate) -> str:
    """A rate with everything that belongs to it."""
    interval = (
        "no interval" if rate.low is None or rate.high is None else f"{percent(rate.low)} to {percent(rate.high)}"
    )
    calls = f"{rate.errors:,} of {rate.judged:,} calls"
    sessions = f"{rate.sessions:,} session{'' if rate.sessions == 1 else 's'}"
    return f"{percent(rate.rate)} ({interval}), {calls}, {sessions}"


def _runs(line: PlotLine, across: Sequence[float]) -> list[list[tuple[float, float, float]]]:
    """Stretches over which the interval is defined."""
    runs: list[list[tuple[float, float, float]]] = [[]]
    for x, rate in zip(across, line.rates, strict=True):
        if rate is None or rate.low is None or rate.high is None:
            runs.append([])
        else:
            runs[-1].append((x, rate.low, rate.high))
    return runs


def _courses(line: PlotLine, across: Sequence[float]) -> list[list[tuple[float, float]]]:
    runs: list[list[tuple[float, float]]] = [[]]
    for x, rate in zip(across, line.rates, strict=True):
        if rate is None or rate.rate is None:
            runs.append([])
        else:
            runs[-1].append((x, rate.rate))
    return runs


def _band(run: Sequence[tuple[float, float, float]], scale: Scale, css: str) -> Markup:
    over = [f"{x:.2f},{scale.upright(high)}" for x, _low, high in run]
    under = [f"{x:.2f},{scale.upright(low)}" for x, low, _high in reversed(run)]
    return element("polygon", {"points": " ".join([*over, *under]), "class": f"band {css}"})


def _course(run: Sequence[tuple[float, float]], scale: Scale, css: str) -> Markup:
    points = " ".join(f"{x:.2f},{scale.upright(rate)}" for x, rate in run)
    return element("polyline", {"points": points, "class": f"course {css}", "vector-effect": "non-scaling-stroke"})


def _points(at: int, x: float, lines: Sequence[PlotLine], scale: Scale) -> Markup:
    """The points at one place. The upper one has its number above, the lower one below."""
    found = [(rate.rate, rate, line) for line in lines if (rate := line.rates[at]) and rate.rate is not None]
    found.sort(key=lambda point: -point[0])
    parts: list[Markup] = []
    for order, (value, rate, line) in enumerate(found):
        y = scale.upright(value)
        title = element("title", {}, f"{line.label}, turns {rate.name}: {describe_rate(rate)}")
        parts.append(element("circle", {"cx": f"{x:.2f}%", "cy": y, "r": 4, "class": f"point {line.css}"}, title))
        if order == 0 or value != found[0][0]:
            place = {"x": f"{x:.2f}%", "y": y - 9 if order == 0 else y + 18, "text-anchor": "middle"}
            parts.append(element("text", {**place, "class": f"label {line.css}"}, percent(value)))
    return join(*parts)


def make_grid(scale: Scale) -> list[Markup]:
    return [make_line("0", scale.upright(tick), "100%", scale.upright(tick), "grid") for tick in scale.ticks]


def make_image(height: float | str, told: str, parts: Sequence[Markup], css: str) -> Markup:
    attributes = {"class": css, "width": "100%", "height": height, "role": "img", "aria-label": told}
    return element("svg", attributes, *parts)


def make_line(x1: str, y1: float | str, x2: str, y2: float | str, css: str) -> Markup:
    return element("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "class": css})


def make_rect(x: str, y: float, width: str, height: float, css: str) -> Markup:
    return element("rect", {"x": x, "y": y, "width": width, "height": height, "class": css})


def make_block(x: str, width: str, height: int, css: str) -> Markup:
    """A rectangle halfway up, whatever the height of the drawing."""
    shift = "translate(-0.75 {0})" if css == "cap" else "translate(0 {0})"
    place = {"x": x, "y": "50%", "width": width, "height": height, "transform": shift.format(-height / 2)}
    return element("rect", {**place, "class": css})


def _arrow(x: str, y: float | str, path: str, css: str = "") -> Markup:
    shape = element("path", {"d": path, "class": f"cap {css}".strip()})
    return element("svg", {"x": x, "y": y, "width": 1, "height": 1, "overflow": "visible"}, shape)


def anchor_of(at: int, count: int) -> str:
    """At the edges numbers stand inside."""
    return "start" if at == 0 else "end" if at == count - 1 else "middle"


def as_width(share: float) -> str:
    return f"{share * 100:.2f}%"
