"""An effect over time: the difference after every few sessions as a line, its interval as a band, around zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warmstart.doors.pages.markup import Markup, element
from warmstart.doors.pages.plots.pieces import (
    HEIGHT,
    Scale,
    draw_course,
    make_axis,
    make_grid,
    make_image,
    make_line,
    scale_differences,
    stretch,
)
from warmstart.trials.course import EffectCourse, EffectLook


def draw_effect_course(course: EffectCourse, label: str, write: Callable[[float], str]) -> Markup:
    """Draw one arm's course with its axes; the looks without an interval have a point only."""
    looks = [look for look in course.looks if look.difference is not None]
    scale = scale_differences([value for look in looks for value in (look.difference, look.low, look.high)])
    places = _place(looks)
    banded = [
        (x, look) for x, look in zip(places, looks, strict=True) if look.low is not None and look.high is not None
    ]
    upper = [f"{x:.2f},{scale.y(look.high or 0.0)}" for x, look in banded]
    lower = [f"{x:.2f},{scale.y(look.low or 0.0)}" for x, look in reversed(banded)]
    parts = []
    if banded:
        parts.append(element("polygon", {"points": " ".join((*upper, *lower)), "class": "band all"}))
    middle = [(x, scale.y(look.difference or 0.0)) for x, look in zip(places, looks, strict=True)]
    parts.append(draw_course(middle, "all"))
    zero = make_line("0", scale.y(0), "100%", scale.y(0), "nought")
    points = [element("circle", {"cx": f"{x:.2f}%", "cy": y, "r": 3.5, "class": "point all"}) for x, y in middle]
    plot = make_image(HEIGHT, label, [*make_grid(scale), zero, stretch(parts), *points])
    ticks = [(f"{x:.2f}%", f"{look.sessions:,}") for x, look in _choose(list(zip(places, looks, strict=True)))]
    return element(
        "div",
        {"class": "course-plot"},
        _draw_axis(scale, write),
        plot,
        element("span", {"class": "side"}, "sessions"),
        make_axis(ticks),
    )


def _place(looks: Sequence[EffectLook]) -> list[float]:
    """Return the horizontal positions, by the number of sessions."""
    last = max((look.sessions for look in looks), default=1)
    return [1.5 + 97 * look.sessions / last for look in looks]


def _choose(places: list[tuple[float, EffectLook]]) -> list[tuple[float, EffectLook]]:
    """Return the looks that are named on the axis: six at most, and always the last."""
    step = max(1, -(-len(places) // 6))
    return places[::-1][::step][::-1]


def _draw_axis(scale: Scale, write: Callable[[float], str]) -> Markup:
    texts = [
        element(
            "text", {"x": "100%", "dx": -6, "y": scale.y(tick) + 4, "class": "tick", "text-anchor": "end"}, write(tick)
        )
        for tick in scale.ticks
    ]
    return element("svg", {"class": "upright", "width": "100%", "height": HEIGHT, "aria-hidden": "true"}, *texts)
