"""Print trials of notes for people: counts of both arms, the interval, the evidence and the verdict; and designs."""

from __future__ import annotations

from collections.abc import Sequence

import click

from warmstart.doors.render.terminal import clean, print_table
from warmstart.insights.advice import describe_pace
from warmstart.notes.note_trials import NoteTrial, TrialResults
from warmstart.stats.designs import PLANNED, DesignPower, choose_fastest
from warmstart.stats.occurrences import HARMS, WORKS

TITLES = {
    "occurrence": "Trials of notes at calls: the call or its retry failed, with the note shown and withheld",
    "recurrence": "Causes of notes in sessions: those that met them, with Warmstart and cold",
}
ARMS = {"occurrence": ("shown", "withheld"), "recurrence": ("helped", "cold")}
_ASKS = {
    "sessions": "errors per call, of all sessions",
    "recurrence": "sessions that meet the cause of one note",
    "recurrence, pooled": "sessions that meet the cause of any note",
    "occurrence": "calls that one note speaks at, or their retries, that fail",
    "occurrence, pooled": "the same over all notes",
    "occurrence, stopped": 'calls that one note would stop, with `level = "stop"`, that fail',
}


def show_trials(results: TrialResults) -> None:
    """Print the trials of one unit; nothing where nothing was drawn."""
    if results.pooled is None:
        return
    unit = results.pooled.unit
    first, second = ARMS[unit]
    click.echo()
    click.secho(TITLES[unit], bold=True)
    rows = [format_trial(trial, trial.id) for trial in results.notes]
    rows.append(format_trial(results.pooled, "all notes"))
    columns = ("note", f"#{first}", f"#{second}", "#difference", "#95 % interval", "#likely", "verdict", "text")
    print_table(columns, rows)
    if results.more:
        click.echo(f"{results.more} more; see: warmstart notes show NOTE")
    if len(results.projects) > 1:
        listed = ", ".join(
            f"{clean(name or 'rules of agents')} {value:+.0%}" for name, value in results.projects.items()
        )
        click.echo(f"By project, pulled towards each other: {listed}")
    for trial in (*results.notes, results.pooled):
        if trial.blocked:
            click.secho(f"{trial.id or 'all notes'}: NO VERDICT: {clean(trial.blocked)}", fg="red")
    click.echo("The verdicts are valid however often you look: " + _explain(unit))


def _explain(unit: str) -> str:
    if unit == "recurrence":
        return "they are about all of Warmstart, not about the single note."
    return f"a note works from an evidence of {WORKS:g} on and harms from {HARMS:.0f} on, beyond what the brief said."


def format_trial(trial: NoteTrial, name: str) -> tuple[str, ...]:
    """Return the cells of a trial's row."""
    counts = trial.counts
    interval = "-" if trial.low is None or trial.high is None else f"{trial.low:+.0%} to {trial.high:+.0%}"
    return (
        name,
        f"{counts.shown_failed} of {counts.shown}",
        f"{counts.withheld_failed} of {counts.withheld}",
        "-" if trial.difference is None else f"{trial.difference:+.0%}",
        interval,
        "-" if trial.shrunk is None else f"{trial.shrunk:+.0%}",
        state_verdict(trial),
        clean(trial.text),
    )


def state_verdict(trial: NoteTrial) -> str:
    """Write the verdict with the evidence behind it."""
    if trial.blocked:
        return "no verdict"
    harms = trial.harms > trial.works
    value = trial.harms if harms else trial.works
    return f"{trial.verdict} (evidence that it {'harms' if harms else 'works'}: {value:.3g})"


def show_note_trial(trial: NoteTrial | None) -> None:
    """Print the trial of one note in a line or two."""
    if trial is None:
        return
    counts = trial.counts
    click.echo(
        f"  tried      {counts.shown_failed} of {counts.shown} occurrences failed when it was shown, "
        f"{counts.withheld_failed} of {counts.withheld} when withheld: {state_verdict(trial)}"
    )
    if missing := sum(trial.missing.values()):
        click.echo(f"             {missing} more without a transcript")
    if trial.blocked:
        click.echo(f"             {clean(trial.blocked)}")


def show_designs(designs: Sequence[DesignPower]) -> None:
    """Print for each design how many weeks it takes, and which one is the fastest."""
    if not designs:
        return
    click.echo()
    click.secho("Weeks that each design takes to show a drop", bold=True)
    rows = [
        (design.design, *(_state_weeks(one.weeks) for one in design.drops), f"{design.rate:.0%}", _state_pace(design))
        for design in designs
    ]
    drops = (f"#{one.drop:.0%} drop" for one in designs[0].drops)
    print_table(("design", *drops, "#rate now", "what it counts"), rows)
    fastest = choose_fastest(designs)
    if fastest is not None:
        click.echo(
            f"The fastest for a drop of {PLANNED:.0%} at your present settings: {fastest.design}.{_state_start(fastest)}"
        )


def _state_start(design: DesignPower) -> str:
    if design.unit == "occurrence":
        return " Start it with: warmstart experiment start NAME --unit occurrence"
    return " The report shows it for every experiment on sessions: warmstart experiment start NAME --unit session"


def _state_weeks(weeks: float | None) -> str:
    return "-" if weeks is None else f"{weeks:,.1f}"


def _state_pace(design: DesignPower) -> str:
    about = f" ({design.note})" if design.note else ""
    if design.unit == "occurrence":
        return f"{_ASKS[design.design]}{about}, {design.per_week:.1f} occurrences per week"
    return f"{_ASKS[design.design]}{about}, {describe_pace(design.per_week)}"
