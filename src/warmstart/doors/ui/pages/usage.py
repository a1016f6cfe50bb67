"""Tokens and costs by day, agent, model, project or session, with estimates marked."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from msgspec import Struct

from warmstart.doors.cli.usage import BYS, FIGURES, format_usage_row, list_remarks
from warmstart.doors.pages.markup import Markup, element, isolate
from warmstart.doors.pages.plots.pieces import make_block, make_cell
from warmstart.doors.ui.figures import Figure
from warmstart.doors.ui.layout import (
    Content,
    link,
    make_address,
    make_choice,
    make_field,
    make_filter,
    make_note,
    make_pending,
    make_table,
)
from warmstart.doors.ui.request import PageRequest, UiPage
from warmstart.errors import Refused
from warmstart.pipeline import Warmstart
from warmstart.ports import Progress
from warmstart.usage.amounts import day_of
from warmstart.usage.report import By, UsageReport, UsageRow

_LISTED = 60


class UsageView(Struct, frozen=True, kw_only=True):
    """The usage as far as it is computed."""

    by: By
    figure: Figure


def _load(asked: PageRequest) -> UsageView:
    by = asked.text("by") or "day"
    if by not in BYS:
        raise Refused(f"usage cannot be grouped by {by!r}; choose one of {', '.join(BYS)}")
    agent, project = asked.text("agent"), asked.text("project")
    since, until = day_of(asked.since()) or None, asked.text("until")
    compute = partial(report_usage, by=cast("By", by), since=since, until=until, agent=agent, project=project)
    return UsageView(by=cast("By", by), figure=asked.figure(("usage", by, agent, project, since, until), compute))


def report_usage(ws: Warmstart, _progress: Progress, by: By, **wanted: str | None) -> UsageReport:
    """Compute what `warmstart usage` prints."""
    return ws.usage.report(by, **wanted)


def _show(view: UsageView, asked: PageRequest) -> Content:
    wanted = {name: asked.text(name) for name in ("by", "agent", "project", "since", "until")}
    report: UsageReport | None = view.figure.value
    body: list[Markup | None] = [_show_filter(wanted, view.by), make_pending(view.figure)]
    if report is not None:
        body += _show_report(report)
    lead = "~ marks estimates (tokens from the text, costs from list prices), - is unknown."
    return Content(title="Usage", lead=lead, json=make_address("/usage.json", **wanted), body=body)


def _show_filter(wanted: dict[str, str | None], by: str) -> Markup:
    return make_filter(
        "/usage",
        make_choice("by", "By", [(one, one) for one in BYS], by),
        make_field("agent", "Agent", wanted["agent"] or "", size=14),
        make_field("project", "Project", wanted["project"] or "", size=24),
        make_field("since", "Since (days or date)", wanted["since"] or "", size=10),
        make_field("until", "Until (date)", wanted["until"] or "", size=10),
    )


def _show_report(report: UsageReport) -> list[Markup | None]:
    if not report.totals.sessions:
        return [make_note("No session with usage matches, or none is stored yet.")]
    shown = report.rows[-_LISTED:][::-1] if report.by == "day" else report.rows[:_LISTED]
    most = max((row.total or 0 for row in shown), default=0)
    rows = [[_link_row(report.by, row), *format_usage_row(row, True)[1:], _draw_share(row, most)] for row in shown]
    total = [element("strong", {}, cell) for cell in ("total", *format_usage_row(report.totals, True)[1:])]
    names = (f"#{name.replace('_', ' ')}" for name in FIGURES)
    columns = (report.by, "#sessions", *names, "of the largest")
    remarks = list_remarks(report, len(report.rows) - len(shown))
    return [
        make_table(columns, [[*total, Markup("")], *rows], f"Usage by {report.by}"),
        element("ul", {"class": "remarks"}, *(element("li", {}, isolate(remark)) for remark in remarks)),
    ]


def _link_row(by: str, row: UsageRow) -> Markup | str:
    """Lead to the sessions behind a row, where they can be listed."""
    name = row.name or "unknown"
    if by == "day":
        return link(make_address("/usage", by="session", since=name, until=name), name) if row.name else name
    if not row.name or by == "model":
        return name
    if by == "session":
        return link(make_address("/sessions", row.name), name[:24])
    return link(make_address("/sessions", **{by: row.name}), name)


def _draw_share(row: UsageRow, most: float) -> Markup:
    share = (row.total or 0) / most if most else 0.0
    return make_cell(f"{share:.0%}", [make_block("0", f"{share * 100:.2f}%", 12, "bar")])


def _describe(view: UsageView) -> Any:
    return view.figure.value


PAGE = UiPage(_load, _show, _describe)
