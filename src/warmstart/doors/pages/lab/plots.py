"""The plots of the lab's page: amounts as bars, differences as whiskers around nought, waits as falling steps.

Drawn with the pieces of the insights page: across in per cent, upright in pixels.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from warmstart.doors.pages.markup import Markup, element
from warmstart.doors.pages.plots import (
    HEIGHT,
    TOP,
    Scale,
    anchor_of,
    draw_upright_axis,
    make_block,
    make_grid,
    make_image,
    make_line,
)
from warmstart.model import Effect
from warmstart.stats.survival import Step, Wait, kaplan_meier

SHARES = Scale(1.0, 0.25)
_EDGE = 2.0  # per cent of a curve's drawing that is left free on either side
_APART = 15  # pixels between the names beside curves


class Curve(NamedTuple):
    """The waits of an arm."""

    css: str
    label: str
    waits: Sequence[Wait]

    @property
    def steps(self) -> list[Step]:
        return kaplan_meier(self.waits)

    @property
    def end(self) -> float:
        """So long somebody was watched."""
        return max((wait.time for wait in self.waits), default=0.0)

    def still_waiting(self, time: float) -> float:
        """The share that waits on after a time."""
        return min((step.survival for step in self.steps if step.time <= time), default=1.0)

    @property
    def censored(self) -> Counter[float]:
        """How many stopped being watched, by when."""
        return Counter(wait.time for wait in self.waits if not wait.happened)


def make_amounts(values: Iterable[float | None]) -> Scale:
    """A scale from nought for bars."""
    largest = max((value for value in values if value is not None), default=0.0)
    step = _round_step(largest, 4)
    return Scale(step * max(1, math.ceil(round(largest / step, 9))), step)


def make_differences(values: Iterable[float | None]) -> Scale:
    """A scale with nought inside it, so that both sides are seen. Every interval is in it: a wide one is the message."""
    known = [value for value in values if value is not None]
    low, high = min([*known, 0.0]), max([*known, 0.0])
    step = _round_step(high - low, 3)
    bottom, top = min(-1, math.floor(round(low / step, 9))), max(1, math.ceil(round(high / step, 9)))
    return Scale(step * top, step, step * bottom)


def _round_step(span: float, most: int) -> float:
    """The smallest round step that needs no more than so many."""
    if not span > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(span / most))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if span / (factor * power) <= most + 1e-9)


def draw_amount(value: float | None, scale: Scale, css: str, told: str, part: float | None = None) -> Markup:
    """An amount as a bar; `part` of it is set off. What is not known has no bar."""
    parts = [make_line(scale.across(tick), "0", scale.across(tick), "100%", "grid") for tick in scale.ticks]
    if value is not None:
        parts.append(make_block("0", scale.across(value), 16, f"bar {css}"))
    if value is not None and part:
        parts.append(make_block("0", scale.across(min(part, value)), 16, "seed"))
    return element("div", {"class": "cell"}, make_image("100%", told, parts, "plot"))


def draw_difference(effect: Effect | None, scale: Scale, *, css: str, lower_is_better: bool, told: str) -> Markup:
    """A difference as a point on the line of nought, its interval as a whisker. The shaded side is the better one."""
    nought = scale.share(0)
    left, width = (0.0, nought) if lower_is_better else (nought, 1 - nought)
    shade = {"x": f"{left * 100:.2f}%", "y": 0, "width": f"{width * 100:.2f}%", "height": "100%", "class": "good-side"}
    parts = [element("rect", shade)]
    parts += [make_line(scale.across(tick), "0", scale.across(tick), "100%", "grid") for tick in scale.ticks]
    parts.append(make_line(scale.across(0), "0", scale.across(0), "100%", "nought"))
    if effect is not None and effect.low is not None and effect.high is not None:
        low, high = scale.across(effect.low), scale.across(effect.high)
        parts.append(make_line(low, "50%", high, "50%", f"whisker {css}"))
        parts += [make_block(end, "1.5", 11, "cap") for end in (low, high)]
    if effect is not None and effect.difference is not None:
        at = {"cx": scale.across(effect.difference), "cy": "50%", "r": 5, "class": f"dot {css}"}
        parts.append(element("circle", at))
    return element("div", {"class": "cell"}, make_image("100%", told, parts, "plot"))


def draw_waits(curves: Sequence[Curve], limit: int, told: str) -> Markup:
    """The share of each arm's sessions that still wait, turn by turn; a tick where some were not watched any longer."""
    inner = [_steps(curve, limit, at) for at, curve in enumerate(curves)]
    stretched = element(
        "svg",
        {"width": "100%", "height": HEIGHT, "viewBox": f"0 0 100 {HEIGHT}", "preserveAspectRatio": "none"},
        *inner,
    )
    marks = [mark for at, curve in enumerate(curves) for mark in _censor_marks(curve, limit, at)]
    return make_image(HEIGHT, told, [*make_grid(SHARES), stretched, *marks], "plot")


def _place(time: float, limit: int) -> float:
    return _EDGE + (100 - 2 * _EDGE) * min(1.0, time / max(1, limit))


def _height(share: float, at: int) -> float:
    """Curves that coincide would hide each other: each lies a little lower than the one before."""
    return round(SHARES.upright(share) + 1.5 * at, 1)


def _steps(curve: Curve, limit: int, at: int) -> Markup:
    points = [(_place(0, limit), _height(1, at))]
    for step in curve.steps:
        x = _place(step.time, limit)
        points += [(x, points[-1][1]), (x, _height(step.survival, at))]
    points.append((_place(curve.end, limit), points[-1][1]))
    told = " ".join(f"{x:.2f},{y}" for x, y in points)
    return element("polyline", {"points": told, "class": f"course {curve.css}", "vector-effect": "non-scaling-stroke"})


def _censor_marks(curve: Curve, limit: int, at: int) -> list[Markup]:
    marks = []
    for time, count in sorted(curve.censored.items()):
        x, y = f"{_place(time, limit):.2f}%", _height(curve.still_waiting(time), at)
        title = element("title", {}, f"{curve.label}: {count} not watched after turn {time:.0f}, still waiting")
        mark = {"x1": x, "x2": x, "y1": y - 5, "y2": y + 5, "class": f"censored {curve.css}"}
        marks.append(element("line", mark, title))
    return marks


def draw_share_axis() -> Markup:
    return draw_upright_axis(SHARES)


def draw_turns(limit: int) -> Markup:
    """The turns under the curves."""
    step = max(1, math.ceil(limit / 8))
    ticks = list(range(0, max(1, limit) + 1, step))
    texts = [
        element(
            "text",
            {"x": f"{_place(tick, limit):.2f}%", "y": 13, "class": "tick", "text-anchor": anchor_of(at, len(ticks))},
            str(tick),
        )
        for at, tick in enumerate(ticks)
    ]
    return element("svg", {"class": "axis", "width": "100%", "height": 18, "aria-hidden": "true"}, *texts)


def draw_names(curves: Sequence[Curve], write: Callable[[float], str]) -> Markup:
    """Each arm's name where its curve ends, moved apart where they would lie on each other."""
    ends = sorted((_height(curve.still_waiting(curve.end), at), at) for at, curve in enumerate(curves))
    lowest = HEIGHT - 4.0
    heights: list[float] = []
    for y, _at in ends:
        heights.append(max(y + 4, heights[-1] + _APART if heights else TOP))
    for place in range(len(heights) - 1, -1, -1):  # from below: none under the axis, none on the next
        heights[place] = min(heights[place], lowest - _APART * (len(heights) - 1 - place))
    texts = []
    for (_y, at), height in zip(ends, heights, strict=True):
        curve = curves[at]
        label = f"{curve.label} {write(curve.still_waiting(curve.end))}"
        texts.append(element("text", {"x": 6, "y": round(height, 1), "class": f"curve-name {curve.css}"}, label))
    return element("svg", {"class": "names", "width": "100%", "height": HEIGHT, "aria-hidden": "true"}, *texts)
