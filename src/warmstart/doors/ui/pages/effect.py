"""The effect: experiments with intervals that are valid at every look, and what notes and templates did."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from warmstart.doors.cli.effect import describe_arms, describe_experiment
from warmstart.doors.pages.markup import Markup, element, isolate, join, show_table, typeset_code
from warmstart.doors.pages.plots.courses import draw_effect_course
from warmstart.doors.render.as_json import describe_note_effects
from warmstart.doors.render.comparison import list_facts, state_subject, state_verdict, write_interval
from warmstart.doors.render.effect import format_effect, is_known, list_qualifications, state_recurrence
from warmstart.doors.render.note_trials import ARMS, TITLES, format_trial
from warmstart.doors.render.terminal import format_time
from warmstart.doors.ui.figures import Figure
from warmstart.doors.ui.layout import (
    Content,
    link,
    make_address,
    make_badge,
    make_note,
    make_part,
    make_pending,
    make_table,
    make_warning,
)
from warmstart.doors.ui.request import PageRequest, UiPage
from warmstart.errors import Refused
from warmstart.model import Effect
from warmstart.notes.effect import NoteEffects
from warmstart.notes.note_trials import TrialResults
from warmstart.pipeline import Warmstart
from warmstart.ports import Progress
from warmstart.store import ExperimentRow
from warmstart.trials.course import EffectCourse
from warmstart.trials.power import Power, describe_reach
from warmstart.trials.report import Report
from warmstart.trials.template_effects import TemplateEffect


class MeasuredEffects(Struct, frozen=True, kw_only=True):
    """Everything that was measured, as `warmstart report` shows it, and how it came about."""

    row: ExperimentRow | None  # None: the standing holdout
    report: Report | None  # None: the experiment draws occurrences of notes
    courses: Sequence[EffectCourse] = ()
    outlook: str | None = None
    power: Power | None = None
    no_power: str = ""  # why there is none
    templates: Sequence[TemplateEffect] = ()
    notes: NoteEffects | None = None
    occurrences: TrialResults | None = None
    recurrences: TrialResults | None = None


class EffectView(Struct, frozen=True, kw_only=True):
    """The experiments, and one of them as far as it is computed."""

    experiments: Sequence[ExperimentRow]
    name: str
    figure: Figure
    visible: frozenset[str] | None  # notes and templates that a guest may see; None: all


def _load(asked: PageRequest) -> EffectView:
    ws = asked.ws
    rows = ws.experiments.list()
    running = next((row.name for row in rows if row.stopped is None), "holdout")
    name = asked.name or running
    if name != "holdout":
        ws.experiments.find(name)
    border = asked.border
    visible = None
    if border is not None:
        notes = {note.id for note in ws.notes.list() if border.admits(note.scope, note.project)}
        templates = {f"{row.name}@{row.version}" for row, _template in ws.templates.find(border=border)}
        visible = frozenset(notes | templates)
    figure = asked.figure(("effect", name), partial(measure, name=name), cost="slow")
    return EffectView(experiments=rows, name=name, figure=figure, visible=visible)


def measure(ws: Warmstart, _progress: Progress, name: str) -> MeasuredEffects:
    """Compute what `warmstart report` and `warmstart experiment power` print, and the course of the effects."""
    row = ws.experiments.find(name)
    if row is not None and row.design == "occurrence":
        return MeasuredEffects(row=row, report=None, occurrences=ws.notes.weigh_occurrences(row.name))
    report = ws.report(name)
    power, no_power = None, ""
    try:
        power = ws.experiments.power()
    except Refused as error:
        no_power = str(error)
    return MeasuredEffects(
        row=row,
        report=report,
        courses=ws.experiments.trace(name),
        outlook=ws.experiments.outlook(report),
        power=power,
        no_power=no_power,
        templates=ws.experiments.weigh(),
        notes=ws.notes.weigh(),
        occurrences=ws.notes.weigh_occurrences(),
        recurrences=ws.notes.weigh_recurrences(),
    )


def _show(view: EffectView, asked: PageRequest) -> Content:
    measured: MeasuredEffects | None = view.figure.value
    title = "The standing holdout" if view.name == "holdout" else f"Experiment {view.name}"
    body: list[Markup | None] = [_show_experiments(view), make_pending(view.figure)]
    if measured is not None:
        body += _show_measured(measured, view.visible)
    return Content(title=title, json=make_address("/effect", f"{view.name}.json"), body=body)


def _show_experiments(view: EffectView) -> Markup:
    items = [element("li", {}, link("/effect/holdout", "standing holdout"))]
    for row in view.experiments:
        items.append(element("li", {}, link(make_address("/effect", row.name), row.name), " "))
    return element("ul", {"class": "inline", "aria-label": "Experiments"}, *items)


def _show_measured(measured: MeasuredEffects, visible: frozenset[str] | None) -> list[Markup | None]:
    report = measured.report
    parts: list[Markup | None] = []
    if measured.row is not None:
        parts.append(make_note(f"Arms: {describe_arms(measured.row)}; started {_write_time(measured.row)}."))
    if report is not None:
        parts += [
            _show_verdicts(report, measured.outlook),
            make_part(
                "Over time",
                *(_show_course(course, report) for course in measured.courses if _has_looks(course)),
                lead="The difference after every few sessions. The shaded interval holds at all looks at once, so peeking "
                "does no harm.",
            ),
            make_part("Metrics", _show_metrics(report)),
            make_part("What stands behind it", _show_facts(report)),
            make_part("What your traffic can show", _show_power(measured)),
        ]
    parts += [
        make_part("Templates", _show_templates(measured.templates, visible)),
        make_part("Notes", _show_notes(measured.notes, visible)),
        *(_show_trials(one, visible) for one in (measured.occurrences, measured.recurrences) if one),
    ]
    return parts


def _write_time(row: ExperimentRow) -> str:
    return f"{format_time(row.started)}, {f'stopped {format_time(row.stopped)}' if row.stopped else 'running'}"


def _show_verdicts(report: Report, outlook: str | None) -> Markup:
    lines = [element("p", {"class": "meaning"}, isolate(state_subject(report)))]
    if report.blocked:
        lines.append(make_warning(f"No verdict: {report.blocked}"))
    for effect in report.effects:
        _verdict, numbers = state_verdict(effect)
        about = f"{effect.arm}: {numbers}" if numbers else effect.arm
        lines.append(element("p", {"class": "verdict"}, make_badge(effect.verdict), " ", isolate(about)))
    lines += [make_warning(reason) for reason in report.guardrails]
    assigned = sum(arm.assigned for arm in report.arms.values())
    if not assigned:
        lines.append(make_note("No session was drawn yet. To begin: warmstart hook install --all"))
    if outlook:
        lines.append(make_note(outlook))
    return join(*lines)


def _has_looks(course: EffectCourse) -> bool:
    return any(look.difference is not None for look in course.looks)


def _show_course(course: EffectCourse, report: Report) -> Markup:
    effect = next((one for one in report.effects if one.arm == course.arm), None)
    is_rate = course.metric in ("error_rate", "success")

    def write(value: float) -> str:
        if not value:
            return "0"
        return f"{value:+.1%}".replace(".0%", "%") if is_rate else f"{value:+,.2f}"

    last = course.looks[-1]
    now = f"{write(last.difference)}" if last.difference is not None else "no difference yet"
    interval = effect and write_interval(effect, last.low, last.high)
    label = (
        f"{course.arm} against {course.control}: {now} after {last.sessions} sessions, {interval or 'no interval yet'}"
    )
    rows = [
        (
            f"{look.sessions:,}",
            "-" if look.difference is None else write(look.difference),
            "-" if look.low is None or look.high is None else f"{write(look.low)} to {write(look.high)}",
            look.verdict.replace("_", " "),
        )
        for look in course.looks
    ]
    return element(
        "figure",
        {"aria-label": f"{course.arm} over time"},
        element("h3", {}, isolate(f"{course.arm} minus {course.control}")),
        element("p", {"class": "about"}, isolate(label)),
        draw_effect_course(course, label, write),
        show_table(("#sessions", "#difference", "#95% interval", "verdict"), rows),
    )


def _show_metrics(report: Report) -> Markup | None:
    shown: list[Effect] = [effect for effect in (*report.effects, *report.secondary) if is_known(effect)]
    if not shown:
        return None
    columns = ("metric", "arm", "#arm", "#control", "#difference", "#95 % interval", "counts")
    rows = [(*cells[:6], cells[7]) for cells in map(format_effect, shown)]
    notes = [make_note(text) for text in list_qualifications(shown)]
    return join(make_table(columns, rows, "Metrics"), *notes)


def _show_facts(report: Report) -> Markup:
    pairs = (
        element("div", {}, element("dt", {}, name), element("dd", {}, isolate(fact)))
        for name, fact in list_facts(report)
    )
    return element("dl", {"class": "facts"}, *pairs)


def _show_power(measured: MeasuredEffects) -> Markup | None:
    power = measured.power
    if power is None:
        return make_note(measured.no_power) if measured.no_power else None
    rows = [
        (
            f"{drop.drop:.0%}",
            "too many" if drop.sessions is None else f"{drop.sessions:,}",
            "-" if drop.weeks is None else f"{drop.weeks:,.1f}",
        )
        for drop in power.drops
    ]
    reaches = [make_note(describe_reach(reach)) for reach in power.reach if reach.drop is not None]
    about = f"{power.sessions:,} sessions, {power.rate:.1%} errors per call, {power.per_week:.1f} sessions per week"
    table = make_table(("drop in error rate", "#sessions needed", "#weeks"), rows, "Power")
    return join(make_note(about), table, *reaches)


def _show_templates(templates: Sequence[TemplateEffect], visible: frozenset[str] | None) -> Markup | None:
    rows = []
    for one in templates:
        name, effect = f"{one.name}@{one.version}", one.effect
        if visible is not None and name not in visible:
            continue
        interval = "-" if effect.low is None or effect.high is None else f"{effect.low:+.1%} to {effect.high:+.1%}"
        rows.append(
            (
                link(make_address("/templates", name), name),
                " / ".join(str(count) for count in effect.n.values()),
                interval,
                "-" if one.shrunk is None else f"{one.shrunk:+.0%}",
                one.decision,
                one.reason,
            )
        )
    columns = ("template", "#shown / cold", "#95 % interval", "#likely change", "decision", "why")
    return make_table(columns, rows, "Effects of templates") if rows else None


def _show_notes(effects: NoteEffects | None, visible: frozenset[str] | None) -> Markup | None:
    if effects is None:
        return None
    rows = [
        (
            link(make_address("/notes", note.id), note.id),
            typeset_code(note.text),
            f"{note.shown:,}",
            state_recurrence(note.before),
            state_recurrence(note.since),
        )
        for note in effects.notes
        if visible is None or note.id in visible
    ]
    warning = "Projects change too, so a drop alone proves nothing: the comparison with cold sessions is above."
    columns = ("note", "text", "#shown to", "#met before", "#met since")
    return join(make_table(columns, rows, "Notes"), make_note(warning)) if rows else None


def _show_trials(results: TrialResults, visible: frozenset[str] | None) -> Markup | None:
    if results.pooled is None:
        return None
    unit = results.pooled.unit
    first, second = ARMS[unit]
    rows: list[Sequence[str]] = []
    for trial in results.notes:
        if visible is None or trial.id in visible:
            rows.append((link(make_address("/notes", trial.id), trial.id), *format_trial(trial, trial.id)[1:]))
    rows.append(format_trial(results.pooled, "all notes"))
    columns = ("note", f"#{first}", f"#{second}", "#difference", "#95 % interval", "#likely", "verdict", "text")
    blocked = [make_warning(f"{one.id}: {one.blocked}") for one in results.notes if one.blocked]
    return make_part(TITLES[unit], make_table(columns, rows, TITLES[unit]), *blocked)


def _describe(view: EffectView) -> dict[str, Any]:
    measured: MeasuredEffects = view.figure.value
    described: dict[str, Any] = {
        "experiments": [describe_experiment(row) for row in view.experiments],
        "report": measured.report,
        "courses": measured.courses,
        "outlook": measured.outlook,
        "power": measured.power,
        "templates": [
            one for one in measured.templates if view.visible is None or f"{one.name}@{one.version}" in view.visible
        ],
    }
    if view.visible is None:
        notes = describe_note_effects(measured.notes) if measured.notes else None
        trials = {"occurrences": measured.occurrences, "recurrences": measured.recurrences}
        described |= {"notes": notes, "trials": trials}
    return described


PAGE = UiPage(_load, _show, _describe)
