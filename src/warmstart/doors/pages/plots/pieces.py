"""Scales, axes and SVG pieces that all plots share.

Horizontal positions are in per cent of the width, so that one drawing fits every screen and its text keeps its size;
vertical ones are in pixels. Lines and bands lie in an inner drawing that is stretched without its strokes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from warmstart.doors.pages.markup import Markup, element

HEIGHT, TOP, BOTTOM = 230, 22, 8  # pixels: a plot with a vertical axis, and its margins


class Scale(NamedTuple):
    """Equal steps from zero, or a round number below it, to a round number."""

    top: float
    step: float
    bottom: float = 0.0

    @property
    def ticks(self) -> list[float]:
        return [self.bottom + self.step * n for n in range(round((self.top - self.bottom) / self.step) + 1)]

    def share(self, value: float) -> float:
        """Return where a value stands, 0 to 1."""
        return min(1.0, max(0.0, (value - self.bottom) / (self.top - self.bottom)))

    def x(self, value: float) -> str:
        return as_width(self.share(value))

    def y(self, value: float) -> float:
        return round(HEIGHT - BOTTOM - self.share(value) * (HEIGHT - TOP - BOTTOM), 1)


def scale_amounts(values: Iterable[float | None]) -> Scale:
    """Return a scale from zero for bars."""
    largest = max((value for value in values if value is not None), default=0.0)
    step = _round_step(largest, 4)
    return Scale(step * max(1, math.ceil(round(largest / step, 9))), step)


def scale_differences(values: Iterable[float | None]) -> Scale:
    """Return a scale with zero inside it. Every interval fits: a wide one is the message."""
    known = [value for value in values if value is not None]
    low, high = min([*known, 0.0]), max([*known, 0.0])
    step = _round_step(high - low, 3)
    bottom, top = min(-1, math.floor(round(low / step, 9))), max(1, math.ceil(round(high / step, 9)))
    return Scale(step * top, step, step * bottom)


def _round_step(span: float, most: int) -> float:
    """Return the smallest round step that divides the span into `most` steps or fewer."""
    if not span > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(span / most))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if span / (factor * power) <= most + 1e-9)


# Axes


def label_share(value: float) -> str:
    return f"{value * 100:.1f}".removesuffix(".0") + "%"


def draw_axis(scale: Scale, label: Callable[[float], str] = label_share) -> Markup:
    """Draw the numbers over bars."""
    return make_axis([(scale.x(tick), label(tick)) for tick in scale.ticks], y=12)


def make_axis(ticks: Sequence[tuple[str, str]], y: int = 13) -> Markup:
    """Draw labels at their horizontal positions; those at the edges stand inside."""
    texts = []
    for at, (x, label) in enumerate(ticks):
        anchor = "start" if at == 0 else "end" if at == len(ticks) - 1 else "middle"
        texts.append(element("text", {"x": x, "y": y, "class": "tick", "text-anchor": anchor}, label))
    return element("svg", {"class": "axis", "width": "100%", "height": 18, "aria-hidden": "true"}, *texts)


def draw_vertical_axis(scale: Scale) -> Markup:
    texts = [
        element(
            "text",
            {"x": "100%", "dx": -6, "y": scale.y(tick) + 4, "class": "tick", "text-anchor": "end"},
            label_share(tick),
        )
        for tick in scale.ticks
    ]
    return element("svg", {"class": "upright", "width": "100%", "height": HEIGHT, "aria-hidden": "true"}, *texts)


# Pieces


def make_image(height: float | str, label: str, parts: Sequence[Markup], css: str = "plot") -> Markup:
    attributes = {"class": css, "width": "100%", "height": height, "role": "img", "aria-label": label}
    return element("svg", attributes, *parts)


def make_cell(label: str, parts: Sequence[Markup]) -> Markup:
    """Return one line of a bar chart."""
    return element("div", {"class": "cell"}, make_image("100%", label, parts))


def stretch(parts: Sequence[Markup]) -> Markup:
    """Return an inner drawing in which both directions have units: 100 across, pixels down."""
    box = {"width": "100%", "height": HEIGHT, "viewBox": f"0 0 100 {HEIGHT}", "preserveAspectRatio": "none"}
    return element("svg", box, *parts)


def draw_course(points: Iterable[tuple[float, float]], css: str) -> Markup:
    """Draw a line through points of a stretched drawing."""
    written = " ".join(f"{x:.2f},{y}" for x, y in points)
    return element("polyline", {"points": written, "class": f"course {css}", "vector-effect": "non-scaling-stroke"})


def make_grid(scale: Scale) -> list[Markup]:
    """Return horizontal grid lines."""
    return [make_line("0", scale.y(tick), "100%", scale.y(tick), "grid") for tick in scale.ticks]


def make_columns(scale: Scale) -> list[Markup]:
    """Return vertical grid lines."""
    return [make_line(scale.x(tick), "0", scale.x(tick), "100%", "grid") for tick in scale.ticks]


def make_line(x1: str, y1: float | str, x2: str, y2: float | str, css: str) -> Markup:
    return element("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "class": css})


def make_rect(x: str, y: float, width: str, height: float, css: str) -> Markup:
    return element("rect", {"x": x, "y": y, "width": width, "height": height, "class": css})


def make_block(x: str, width: str, height: int, css: str) -> Markup:
    """Return a rectangle halfway up, whatever the height of the drawing."""
    place = {"x": x, "y": "50%", "width": width, "height": height, "transform": f"translate(0 {-height / 2})"}
    return element("rect", {**place, "class": css})


def make_cap(x: str, height: int) -> Markup:
    """Return the end of a whisker."""
    place = {"x": x, "y": "50%", "width": "1.5", "height": height, "transform": f"translate(-0.75 {-height / 2})"}
    return element("rect", {**place, "class": "cap"})


def as_width(share: float) -> str:
    return f"{share * 100:.2f}%"
