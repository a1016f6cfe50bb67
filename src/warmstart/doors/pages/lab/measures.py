"""The measures on the lab's page: the amount in every arm, and beside it the difference to the control with its interval."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec import structs

from warmstart.doors.pages.markup import Markup, element, isolate, join, show_table
from warmstart.doors.pages.plots.arms import (
    SHARES,
    Curve,
    draw_amount,
    draw_difference,
    draw_names,
    draw_turns,
    draw_waits,
)
from warmstart.doors.pages.plots.pieces import Scale, draw_axis, draw_vertical_axis, scale_amounts, scale_differences
from warmstart.doors.render.insights import short_number
from warmstart.doors.render.lab_findings import (
    CENSORED,
    ERRORS,
    SOLVED,
    TOKENS,
    TURNS,
    UNKNOWN,
    Shown,
    find_effect,
    judge_effect,
    may_conclude,
    safe,
)
from warmstart.lab.run.summary import ArmLine, LabReport
from warmstart.model import Effect
from warmstart.stats.survival import Wait

_MINUS = re.compile(r"-(?=[\d.])")
_COLOURS = 4  # for the arms beside control and warm; further arms repeat them
_ARM_COLUMNS = (
    "arm",
    "#solved",
    "#errors per call",
    "#turns to success",
    "#tokens",
    "#seed tokens",
    "#examples",
    "#tools used",
    "#seconds",
)


def typeset(text: str) -> str:
    """Write a true minus, which is as wide as a plus."""
    return _MINUS.sub("−", text)


def colour_arms(report: LabReport) -> dict[str, str]:
    """Return a CSS class for each arm: one for the control, one for warm, and the others in turn."""
    classes: dict[str, str] = {}
    for line in report.arms:
        others = sum(css.startswith("arm-o") for css in classes.values())
        if line.arm == report.report.control:
            classes[line.arm] = "arm-control"
        elif line.arm == "warm":
            classes[line.arm] = "arm-warm"
        else:
            classes[line.arm] = f"arm-o{others % _COLOURS}"
    return classes


# The arms in a table


def show_arms(report: LabReport) -> Markup:
    """Show the table of arms. On a phone each arm is a block, so every cell carries its column's name."""
    colours = colour_arms(report)
    names = [name.lstrip("#") for name in _ARM_COLUMNS]
    head = [element("th", {"scope": "col", "role": "columnheader"}, name) for name in names]
    rows = []
    for line in report.arms:
        swatch = element("span", {"class": f"swatch {colours[line.arm]}", "aria-hidden": "true"})
        cells = [
            element("td", {"role": "cell", "data-name": name}, cell)
            for name, cell in zip(names[1:], write_arm(line), strict=True)
        ]
        title = element("th", {"scope": "row", "role": "rowheader"}, swatch, isolate(safe(line.arm)))
        rows.append(element("tr", {"role": "row"}, title, *cells))
    return element(
        "table",
        {"class": "arms", "role": "table", "aria-label": "The arms in numbers"},
        element("thead", {"role": "rowgroup"}, element("tr", {"role": "row"}, *head)),
        element("tbody", {"role": "rowgroup"}, *rows),
    )


def write_arm(line: ArmLine) -> tuple[str, ...]:
    share = f" ({line.solved / line.sessions:.0%})" if line.sessions else ""
    return (
        f"{line.solved} of {line.sessions}{share}",
        ERRORS.write(line.errors_per_call),
        TURNS.write(line.turns_to_success),
        TOKENS.write(line.tokens),
        TOKENS.write(line.seed_tokens),
        f"{line.examples:.1f}".removesuffix(".0"),
        UNKNOWN if line.tools is None else f"{line.tools:.1f}",
        UNKNOWN if line.seconds is None else f"{line.seconds:,.1f}",
    )


# Amounts, and differences to the control


def show_solved(report: LabReport) -> Markup:
    most = max((line.sessions for line in report.arms), default=0)

    def write(line: ArmLine) -> tuple[str, str]:
        return f"{line.solved} of {line.sessions}", f"{line.solved / line.sessions:.0%}" if line.sessions else ""

    bars = _show_bars(
        report,
        ("Solved tasks", "tasks that the checker accepts; longer is better"),
        lambda line: float(line.solved),
        write,
        Scale(max(1.0, float(most)), max(1.0, float(most))) if most < 4 else _of_all(most),
    )
    return _pair(bars, show_differences(report, SOLVED))


def _of_all(most: int) -> Scale:
    """Return a scale up to all tasks, so that the rest of a bar is what is left to solve."""
    return Scale(float(most), most / 3) if most % 3 == 0 else Scale(float(most), most / 2)


def show_errors(report: LabReport) -> Markup:
    bars = _show_bars(
        report,
        ("Errors per call", "in a session's first turns; an answer without a call counts as one; shorter is better"),
        lambda line: line.errors_per_call,
        lambda line: (ERRORS.write(line.errors_per_call), ""),
        Scale(1.0, 0.25),
        lambda tick: f"{tick:.0%}",
    )
    return _pair(bars, show_differences(report, ERRORS))


def show_tokens(report: LabReport) -> Markup:
    scale = scale_amounts(line.tokens for line in report.arms)

    def write(line: ArmLine) -> tuple[str, str]:
        seed = f"seed {TOKENS.write(line.seed_tokens)}" if line.seed_tokens else ""
        return TOKENS.write(line.tokens), seed

    bars = _show_bars(
        report,
        ("Tokens per session", "sent and answered, with the seed; darker: the seed's size, estimated from above"),
        lambda line: line.tokens,
        write,
        scale,
        short_number,
        lambda line: line.seed_tokens,
    )
    return _pair(bars, show_differences(report, TOKENS))


def _show_bars(
    report: LabReport,
    words: tuple[str, str],
    value: Callable[[ArmLine], float | None],
    write: Callable[[ArmLine], tuple[str, str]],
    scale: Scale,
    tick: Callable[[float], str] = lambda tick: f"{tick:.0f}",
    part: Callable[[ArmLine], float | None] = lambda _line: None,
) -> Markup:
    colours = colour_arms(report)
    title, about = words
    bars = []
    for line in report.arms:
        name, (figure, small) = safe(line.arm), write(line)
        label = f"{name}: {' '.join(filter(None, (figure, small)))}"
        bars.append(
            element(
                "div",
                {},
                element("span", {"class": "name"}, isolate(name)),
                draw_amount(value(line), scale, colours[line.arm], label, part(line)),
                element("span", {"class": "value"}, figure, element("small", {}, small) if small else None),
            )
        )
    rows = [(safe(line.arm), *write(line)) for line in report.arms]
    width = 3 if any(small for _name, _figure, small in rows) else 2
    return element(
        "figure",
        {"aria-label": title},
        element("h3", {}, "In each arm"),
        element("p", {"class": "about"}, about),
        element("div", {"class": "bars lab"}, element("div", {}, draw_axis(scale, tick)), *bars),
        show_table(("arm", f"#{title.lower()}", "#share or part")[:width], [row[:width] for row in rows]),
    )


def show_differences(report: LabReport, shown: Shown) -> Markup | None:
    """Show each arm minus the control, task by task."""
    control = report.report.control
    effects = {line.arm: find_effect(report, line.arm, shown.metric) for line in report.arms if line.arm != control}
    if not any(effect is not None and effect.difference is not None for effect in effects.values()):
        return None
    known = [_believable(report, effect) for effect in effects.values() if effect is not None]
    scale = scale_differences(value for one in known for value in (one.low, one.high, one.difference))
    side = "left" if shown.lower_is_better else "right"
    title = f"Against {safe(control)}, task by task"
    intervals = "95% intervals; " if may_conclude(report) else "no intervals without a verdict; "
    about = f"difference in {shown.unit}; {intervals}{side} (shaded) is better"
    lines = [_show_difference(report, line.arm, effects.get(line.arm), shown, scale) for line in report.arms]
    rows = [
        (safe(arm), *(typeset(cell) for cell in write_difference(report, effect, shown)))
        for arm, effect in effects.items()
        if effect is not None
    ]
    return element(
        "figure",
        {"aria-label": f"{title}: {shown.title}"},
        element("h3", {}, isolate(title)),
        element("p", {"class": "about"}, about),
        element(
            "div",
            {"class": "bars lab forest"},
            element("div", {}, draw_axis(scale, lambda tick: typeset(_write_tick(shown, tick, scale)))),
            *lines,
        ),
        show_table(("arm", f"#difference ({shown.unit})", "#95% interval", "verdict"), rows),
    )


def _write_tick(shown: Shown, tick: float, scale: Scale) -> str:
    value, step = (tick * 100, scale.step * 100) if shown.is_share else (tick, scale.step)
    places = 0 if round(step, 9) == round(step) else 1 if round(step * 10, 9) == round(step * 10) else 2
    return "0" if abs(value) < step / 2 else f"{value:+,.{places}f}"


def _show_difference(report: LabReport, arm: str, effect: Effect | None, shown: Shown, scale: Scale) -> Markup:
    name = safe(arm)
    if arm == report.report.control:
        label, value, tone = f"{name}: the reference of the others", element("small", {}, "reference"), "open"
        effect = None
    elif effect is None or effect.difference is None:
        label, value, tone = f"{name}: unknown", element("small", {}, "unknown"), "open"
        effect = None
    else:
        effect = _believable(report, effect)
        difference, interval, verdict = write_difference(report, effect, shown)
        tone = judge_effect(report, effect)[0]
        label = f"{name}: {difference} {shown.unit}, 95% interval {interval}: {verdict}"
        sure = element("span", {"class": "interval"}, typeset(interval)) if effect.low is not None else None
        value = join(typeset(difference), sure, element("b", {"class": f"verdict {tone}"}, verdict))
    plot = draw_difference(effect, scale, css=tone, lower_is_better=shown.lower_is_better, label=typeset(label))
    return element(
        "div", {}, element("span", {"class": "name"}, isolate(name)), plot, element("span", {"class": "value"}, value)
    )


def _believable(report: LabReport, effect: Effect) -> Effect:
    """Return the effect without its interval if the run allows no conclusion."""
    return effect if may_conclude(report) else structs.replace(effect, low=None, high=None)


def write_difference(report: LabReport, effect: Effect, shown: Shown) -> tuple[str, str, str]:
    """Return difference, interval and verdict."""
    effect = _believable(report, effect)
    return shown.sign(effect.difference), shown.sign_interval(effect), judge_effect(report, effect)[1]


def _pair(left: Markup, right: Markup | None) -> Markup:
    return element("div", {"class": "facets"}, left, right)


# Waiting for the first success


def show_waits(report: LabReport) -> Markup | None:
    colours = colour_arms(report)
    waits: dict[str, list[Wait]] = {line.arm: [] for line in report.arms}
    for task in report.tasks:
        for arm, cell in task.arms.items():
            happened = cell.success_turn is not None
            time = cell.turns if cell.success_turn is None else cell.success_turn
            waits.setdefault(arm, []).append(Wait(float(max(0, time)), happened))
    curves = [Curve(colours[arm], safe(arm, 14), times) for arm, times in waits.items() if times and arm in colours]
    if not curves:
        return None
    limit = max(1, report.turns, *(int(curve.end) for curve in curves))
    ends = ", ".join(f"{curve.label} {_share(curve.still_waiting(curve.end))}" for curve in curves)
    plot = element(
        "div",
        {"class": "course-plot waits"},
        draw_vertical_axis(SHARES),
        draw_waits(curves, limit, f"Sessions still waiting for a call that works, turn by turn. At the end: {ends}"),
        draw_names(curves, _share),
        element("span", {"class": "side"}, "turn"),
        draw_turns(limit),
        element("span", {}),
    )
    figure = element(
        "figure",
        {"aria-label": "Turns to the first success"},
        element("h3", {}, "In each arm"),
        element(
            "p",
            {"class": "about"},
            "share of sessions in which no call has worked yet; the sooner a curve falls, the better",
        ),
        plot,
        element(
            "p",
            {"class": "note"},
            f"A tick marks sessions that ended without a success. {CENSORED} Lines are drawn slightly apart.",
        ),
        show_table(
            ("arm", "#turn", "#sessions waiting before", "#first call worked", "#still waiting"), _wait_rows(curves)
        ),
    )
    return _pair(figure, show_differences(report, TURNS))


def _wait_rows(curves: Sequence[Curve]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for curve in curves:
        for step in curve.steps:
            row = curve.label, f"{step.time:.0f}", str(step.at_risk), str(step.happened), _share(step.survival)
            rows.append(row)
        if censored := sum(curve.censored.values()):
            rows.append((curve.label, "end", str(censored), "0 (censored)", _share(curve.still_waiting(curve.end))))
    return rows


def _share(value: float) -> str:
    return f"{value:.0%}"
