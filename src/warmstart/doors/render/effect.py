"""Print effects for people: tables, intervals drawn as whiskers, and the verdict in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from warmstart.doors.render.comparison import show_comparison
from warmstart.doors.render.terminal import clean, print_table
from warmstart.insights.advice import describe_pace
from warmstart.model import WINDOW, Design, Effect
from warmstart.notes.effect import NoteEffects, Recurrence
from warmstart.plurals import format_count
from warmstart.stats.paired import Crossing
from warmstart.trials.metrics import METRICS
from warmstart.trials.power import Power, describe_reach
from warmstart.trials.report import Report
from warmstart.trials.template_effects import TemplateEffect

_WIDTH = 21
_ESTIMATES = {
    "completed": "the output is completed from the text where the transcript reports only a part of it",
    "priced": "from list prices",
    "estimated": "estimated from the text",
}
_SHORT = {"too_few": "no interval", "inconclusive": "includes zero", "better": "better", "worse": "worse"}
_VALID: dict[Design, str] = {
    "random": "The intervals are valid however often you look.",
    "paired": "The intervals are valid for one look, after every task was done in every arm.",
}


def show_report(
    report: Report, templates: Sequence[TemplateEffect], outlook: str | None, notes: NoteEffects | None = None
) -> None:
    """Print an experiment as it stands."""
    show_comparison(report)
    for effect in report.effects:
        if crossing := report.crossings.get(effect.arm):
            _show_crossing(effect.control, crossing)
    _show_waiting(report)
    if len(report.arms) < 2:
        click.echo("No sessions are held out, so there is nothing to compare. Set `holdout` in config.toml.")
    if outlook:
        click.echo(f"{outlook} See: warmstart experiment power")
    shown = [effect for effect in (*report.effects, *report.secondary) if is_known(effect)]
    if shown:
        columns = ("metric", "arm", "#arm", "#control", "#difference", "#95 % interval", f"{'less':<10}0{'more':>10}")
        print_table((*columns, "counts"), [format_effect(effect) for effect in shown])
        click.echo(_VALID[report.design] + " Only the first metric decides, and guardrails can block it.")
        for note in list_qualifications(shown):
            click.echo(note)
    if templates:
        _show_templates(templates)
    if notes is not None:
        _show_notes(notes)


def _show_waiting(report: Report) -> None:
    """Print why there is nothing to compare yet: no session belongs to the report, or none of them has a transcript."""
    assigned = sum(arm.assigned for arm in report.arms.values())
    if not assigned and not report.left_out:
        whose = "the standing holdout" if report.experiment == "holdout" else "this experiment"
        click.echo(f"No session of {whose} was started yet. To begin: warmstart hook install --all")
    elif assigned and assigned == sum(arm.missing for arm in report.arms.values()):
        started = format_count(assigned, "session was started and waits", "sessions were started and wait")
        click.echo(f"{started} for a transcript; when the agent has finished, run: warmstart ingest")


def _show_crossing(control: str, crossing: Crossing) -> None:
    """Print which tasks gained and which lost."""
    click.echo(
        f"  tasks: {crossing.helped} done only with it, {crossing.harmed} done only {clean(control)} "
        f"(p = {crossing.p:.2g}), {crossing.both} done in both arms, {crossing.neither} in neither"
    )


def list_qualifications(effects: Sequence[Effect]) -> list[str]:
    """Return what qualifies the numbers: estimates, and sessions whose figures rest on another basis."""
    notes = []
    for effect in effects:
        title = METRICS[effect.metric].title
        if effect.basis in _ESTIMATES:
            notes.append(f"~ {title}: {_ESTIMATES[effect.basis]}")
        if effect.other_basis:
            counts = "; ".join(f"{clean(name)} {_count_bases(bases)}" for name, bases in effect.bases.items())
            notes.append(f"{title}: only sessions on one basis are compared ({counts})")
    return list(dict.fromkeys(notes))


def _count_bases(bases: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {basis}" for basis, count in bases.items()) or "none"


def _explain_role(effect: Effect) -> str:
    """Say whether the metric counts for the verdict, and why."""
    if effect.role == "guardrail":
        return f"guardrail, {effect.reason}"
    if effect.role == "decides":
        return "decides" if effect.blocked is None else "no verdict"
    return f"context, {_SHORT[effect.verdict]}"


def is_known(effect: Effect) -> bool:
    """Return whether any arm has a value."""
    return any(value is not None for value in effect.values.values())


def format_effect(effect: Effect) -> tuple[str, ...]:
    """Return the cells of an effect's row."""
    metric = METRICS[effect.metric]
    is_rate = effect.metric in ("error_rate", "success")
    mark = "~" if effect.basis in _ESTIMATES else ""

    def number(value: float | None, sign: str = "") -> str:
        if value is None:
            return "-"
        if is_rate:
            return f"{value:{sign}.1%}"
        return mark + (f"{value:{sign},.2f}" if abs(value) < 100 else f"{value:{sign},.0f}")

    interval = "-" if effect.low is None else f"{number(effect.low, '+')} to {number(effect.high, '+')}"
    title = f"{metric.title} ({metric.unit})" if metric.unit else metric.title
    values = [number(effect.values[name]) for name in (effect.arm, effect.control)]
    return (title, effect.arm, *values, number(effect.difference, "+"), interval, draw(effect), _explain_role(effect))


def draw(effect: Effect) -> str:
    """Draw the interval as a whisker around zero: left is less, right is more."""
    if effect.low is None or effect.high is None or effect.difference is None:
        return ""
    reach = max(abs(effect.low), abs(effect.high)) or 1.0
    middle = _WIDTH // 2

    def place(value: float) -> int:
        return middle + round(value / reach * middle)

    cells = [" "] * _WIDTH
    cells[middle] = "|"
    for at in range(place(effect.low), place(effect.high) + 1):
        cells[at] = "+" if at == middle else "-"
    cells[place(effect.difference)] = "o"
    return "".join(cells)


def _show_templates(templates: Sequence[TemplateEffect]) -> None:
    click.echo()
    click.secho("Templates: sessions shown a template against cold sessions that would have been shown it", bold=True)
    lines = []
    for template in templates:
        effect = template.effect
        interval = "-" if effect.low is None or effect.high is None else f"{effect.low:+.1%} to {effect.high:+.1%}"
        shrunk = "-" if template.shrunk is None else f"{template.shrunk:+.0%}"
        sizes = " / ".join(str(count) for count in effect.n.values())
        name = f"{template.name}@{template.version}"
        lines.append((name, sizes, interval, shrunk, draw(effect), template.decision, template.reason))
    columns = ("template", "#shown / cold", "#95 % interval", "#likely change", "less  0  more", "decision", "why")
    print_table(columns, lines)


def _show_notes(effects: NoteEffects) -> None:
    if effects.notes:
        click.echo()
        click.secho("Notes: sessions that met them before they were first shown, and since", bold=True)
        lines = [
            (note.id, note.shown, state_recurrence(note.before), state_recurrence(note.since), note.text)
            for note in effects.notes
        ]
        print_table(("note", "#shown to", "#met before", "#met since", "text"), lines)
        if effects.more:
            click.echo(f"{effects.more} more; see: warmstart notes list")
        click.echo("Projects change too, so a drop alone proves nothing: the comparison with cold sessions is above.")
    if stopped := effects.stopped.calls:
        calls = format_count(stopped, "call")
        turns = format_count(effects.stopped.turns, "turn")
        click.echo(f"Warmstart stopped {calls}, neither errors nor successes, which cost {turns}.")


def state_recurrence(recurrence: Recurrence) -> str:
    """Write how many sessions met a note, with the interval of their share."""
    counts = f"{recurrence.met} of {recurrence.sessions}"
    if recurrence.low is None or recurrence.high is None:
        return counts
    return f"{counts} ({recurrence.low:.0%} to {recurrence.high:.0%})"


def show_power(power: Power) -> None:
    """Print what the traffic can show: sessions needed per drop, then the detectable drop per number of weeks."""
    click.secho(
        f"{power.sessions} sessions with tool calls, {power.rate:.1%} errors per call in the first {WINDOW} turns, "
        f"{describe_pace(power.per_week)}",
        bold=True,
    )
    click.echo(
        f"Assumes that {power.cold_share:.0%} of sessions are cold and that a real drop is detected "
        f"with a chance of {power.power:.0%}."
    )
    print_table(
        ("drop in error rate", "#sessions needed", "#weeks"),
        [
            (
                f"{d.drop:.0%}",
                "too many" if d.sessions is None else f"{d.sessions:,}",
                "-" if d.weeks is None else f"{d.weeks:,.1f}",
            )
            for d in power.drops
        ],
    )
    for reach in power.reach:
        if reach.drop is not None:
            click.echo(f"{describe_reach(reach)[:-1]} ({reach.sessions:,} sessions).")
    if all(reach.drop is None for reach in power.reach):
        click.echo("At your traffic no drop can be detected within a year. Pool the sessions of a team.")
