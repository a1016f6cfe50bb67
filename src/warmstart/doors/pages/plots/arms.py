"""The arms on the lab's page: amounts as bars, differences as whiskers around zero, waits as falling steps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from warmstart.doors.pages.markup import Markup, element
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
    stretch,
)
from warmstart.model import Effect
from warmstart.stats.survival import Step, Wait, kaplan_meier

SHARES = Scale(1.0, 0.25)
_EDGE = 2.0  # per cent of a curve's drawing that is left free on either side
_APART = 15  # pixels between the names beside curves


class Curve(NamedTuple):
    """The waits of an arm's sessions."""

    css: str
    label: str
    waits: Sequence[Wait]

    @property
    def steps(self) -> list[Step]:
        return kaplan_meier(self.waits)

    @property
    def end(self) -> float:
        """The longest time a session was watched."""
        return max((wait.time for wait in self.waits), default=0.0)

    def still_waiting(self, time: float) -> float:
        """Return the share that still waits after a time."""
        return min((step.survival for step in self.steps if step.time <= time), default=1.0)

    @property
    def censored(self) -> Counter[float]:
        """How many sessions stopped being watched, by time."""
        return Counter(wait.time for wait in self.waits if not wait.happened)


def draw_amount(value: float | None, scale: Scale, css: str, label: str, part: float | None = None) -> Markup:
    """Draw an amount as a bar, with `part` of it set off; an unknown amount has no bar."""
    parts = make_columns(scale)
    if value is not None:
        parts.append(make_block("0", scale.x(value), 16, f"bar {css}"))
    if value is not None and part:
        parts.append(make_block("0", scale.x(min(part, value)), 16, "seed"))
    return make_cell(label, parts)


def draw_difference(effect: Effect | None, scale: Scale, *, css: str, lower_is_better: bool, label: str) -> Markup:
    """Draw a difference as a point and its interval as a whisker; the better side of zero is shaded."""
    zero = scale.share(0)
    left, width = (0.0, zero) if lower_is_better else (zero, 1 - zero)
    shade = {"x": as_width(left), "y": 0, "width": as_width(width), "height": "100%", "class": "good-side"}
    parts = [element("rect", shade), *make_columns(scale)]
    parts.append(make_line(scale.x(0), "0", scale.x(0), "100%", "nought"))
    if effect is not None and effect.low is not None and effect.high is not None:
        low, high = scale.x(effect.low), scale.x(effect.high)
        parts += [make_line(low, "50%", high, "50%", f"whisker {css}"), make_cap(low, 11), make_cap(high, 11)]
    if effect is not None and effect.difference is not None:
        place = {"cx": scale.x(effect.difference), "cy": "50%", "r": 5, "class": f"dot {css}"}
        parts.append(element("circle", place))
    return make_cell(label, parts)


def draw_waits(curves: Sequence[Curve], limit: int, label: str) -> Markup:
    """Draw the share of each arm's sessions that still wait, turn by turn, with a tick where some were censored."""
    steps = [draw_course(_step_points(curve, limit, at), curve.css) for at, curve in enumerate(curves)]
    marks = [mark for at, curve in enumerate(curves) for mark in _censor_marks(curve, limit, at)]
    return make_image(HEIGHT, label, [*make_grid(SHARES), stretch(steps), *marks])


def draw_turns(limit: int) -> Markup:
    """Draw the turns under the curves."""
    ticks = range(0, max(1, limit) + 1, max(1, math.ceil(limit / 8)))
    return make_axis([(f"{_turn_x(tick, limit):.2f}%", str(tick)) for tick in ticks])


def draw_names(curves: Sequence[Curve], write: Callable[[float], str]) -> Markup:
    """Draw each arm's name where its curve ends, moved apart where names would overlap."""
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


def _turn_x(time: float, limit: int) -> float:
    return _EDGE + (100 - 2 * _EDGE) * min(1.0, time / max(1, limit))


def _height(share: float, at: int) -> float:
    """Return the height of a share; each curve lies a little lower than the one before, so that none hides another."""
    return round(SHARES.y(share) + 1.5 * at, 1)


def _step_points(curve: Curve, limit: int, at: int) -> list[tuple[float, float]]:
    points = [(_turn_x(0, limit), _height(1, at))]
    for step in curve.steps:
        x = _turn_x(step.time, limit)
        points += [(x, points[-1][1]), (x, _height(step.survival, at))]
    return [*points, (_turn_x(curve.end, limit), points[-1][1])]


def _censor_marks(curve: Curve, limit: int, at: int) -> list[Markup]:
    marks = []
    for time, count in sorted(curve.censored.items()):
        x, y = f"{_turn_x(time, limit):.2f}%", _height(curve.still_waiting(time), at)
        title = element("title", {}, f"{curve.label}: {count} not watched after turn {time:.0f}, still waiting")
        mark = {"x1": x, "x2": x, "y1": y - 5, "y2": y + 5, "class": f"censored {curve.css}"}
        marks.append(element("line", mark, title))
    return marks
