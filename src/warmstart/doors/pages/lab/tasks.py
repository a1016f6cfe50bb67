"""The tasks on the lab's page: families by arm, harmed tasks, and every single task."""

from __future__ import annotations

from collections.abc import Sequence

from warmstart.doors.pages.markup import Markup, element, isolate, join
from warmstart.doors.render.lab_findings import (
    REQUEST,
    count_families,
    describe_cell,
    find_main_arm,
    list_harmed,
    list_others,
    may_conclude,
    safe,
    write_p,
)
from warmstart.lab.run.summary import LabReport, TaskCell, TaskLine
from warmstart.plurals import format_count

_SHADES = 5  # of the heat map, beside blank
_HARMED = 12  # tasks of the main arm that are shown unfolded


def show_families(report: LabReport) -> Markup | None:
    """Show the heat map, a table whose shades repeat the numbers in its cells."""
    families = count_families(report)
    if not families:
        return None
    names = [line.arm for line in report.arms]
    head = [element("th", {"scope": "col"}, element("span", {}, isolate(safe(name)))) for name in names]
    rows = [
        element(
            "tr",
            {},
            element("th", {"scope": "row"}, isolate(safe(family.name))),
            *(_heat_cell(family.arms.get(name)) for name in names),
        )
        for family in families
    ]
    table = element(
        "table",
        {"class": "heat", "aria-label": "Tasks solved, by family and arm"},
        element("thead", {}, element("tr", {}, element("th", {"scope": "col"}, "family"), *head)),
        element("tbody", {}, *rows),
    )
    return element("figure", {"aria-label": "Tasks solved, by family and arm"}, table)


def _heat_cell(counts: tuple[int, int] | None) -> Markup:
    if counts is None or not counts[1]:
        return element("td", {"class": "heat-none"}, "-")
    solved, tried = counts
    shade = 0 if not solved else max(1, round(_SHADES * solved / tried))
    return element("td", {"class": f"heat-{shade}"}, f"{solved}/{tried}")


def show_harmed(report: LabReport) -> Markup | None:
    """Show the tasks that were solved without a seed and failed with it: means hide them."""
    others = list_others(report)
    if not others or not report.tasks:
        return None
    return element("div", {"class": "harms"}, *(_show_arm(report, line.arm) for line in others))


def _show_arm(report: LabReport, arm: str) -> Markup:
    """Show an arm's harmed tasks, unfolded for the main arm."""
    harmed = list_harmed(report, arm)
    crossing = report.report.crossings.get(arm)
    counts = f" · {format_count(len(harmed), 'task')} harmed"
    if crossing is not None:
        counts += f", {crossing.helped} helped"
        counts += f" ({write_p(crossing.p)})" if may_conclude(report) else ""
    title = element("h3", {}, isolate(safe(arm)), element("span", {"class": "about"}, counts))
    if not harmed:
        return element("div", {}, title)
    tasks = element("ul", {"class": "harmed"}, *(_show_task(report, arm, task) for task in harmed))
    is_open = "" if arm == find_main_arm(report) and len(harmed) <= _HARMED else None
    return element("details", {"open": is_open}, element("summary", {}, title), tasks)


def _show_task(report: LabReport, arm: str, task: TaskLine) -> Markup:
    control = report.report.control
    return element(
        "li",
        {},
        element("p", {}, isolate(safe(task.request, REQUEST))),
        element("p", {"class": "about"}, isolate(safe(task.task, 80))),
        element("p", {"class": "about"}, isolate(safe(control)), f": {describe_cell(task.arms[control])}"),
        element("p", {"class": "about"}, isolate(safe(arm)), f": {describe_cell(task.arms[arm])}"),
    )


def show_tasks(report: LabReport) -> Markup | None:
    """Show every task in every arm, folded."""
    if not report.tasks:
        return None
    names = [line.arm for line in report.arms]
    head = ("task", "request", *names)
    rows = [_task_row(task, names) for task in report.tasks]
    table = element(
        "table",
        {"class": "tasks"},
        element(
            "thead", {}, element("tr", {}, *(element("th", {"scope": "col"}, isolate(safe(name))) for name in head))
        ),
        element("tbody", {}, *rows),
    )
    return element(
        "details",
        {"class": "all-tasks"},
        element("summary", {}, f"All {format_count(len(report.tasks), 'task')} in every arm"),
        element(
            "p", {"class": "note"}, "✓ solved, ✗ not; then errors/calls, and the turn of the first call that worked."
        ),
        element("div", {"class": "scroll", "tabindex": 0, "role": "region", "aria-label": "All tasks"}, table),
    )


def _task_row(task: TaskLine, names: Sequence[str]) -> Markup:
    about = join(element("strong", {}, isolate(safe(task.family))), " ", isolate(safe(task.task, 60)))
    cells = [_task_cell(task.arms.get(name)) for name in names]
    request = element("td", {"class": "request"}, isolate(safe(task.request, REQUEST)))
    return element("tr", {}, element("td", {"class": "about"}, about), request, *cells)


def _task_cell(cell: TaskCell | None) -> Markup:
    if cell is None:
        return element("td", {"class": "outcome"}, "not done")
    mark = element("b", {"class": "verdict better"}, "✓") if cell.solved else element("b", {"class": "verdict"}, "✗")
    turn = "" if cell.success_turn is None else f" · t{cell.success_turn}"
    attributes = {"class": "outcome", "aria-label": describe_cell(cell)}
    return element("td", attributes, mark, f" {cell.errors}/{cell.calls}{turn}")
