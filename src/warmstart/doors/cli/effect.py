"""Commands about measured effects: record, report, experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click
import msgspec
from click.core import ParameterSource

from warmstart.arms import control_of, parse_arms, read_shares
from warmstart.doors.cli.main import PATH, json_option
from warmstart.doors.cli.options import since_option
from warmstart.doors.render.as_json import describe_note_effects, describe_trial
from warmstart.doors.render.effect import show_power, show_report
from warmstart.doors.render.note_trials import show_designs, show_trials
from warmstart.doors.render.terminal import clean, format_iso, format_time, print_json, print_table
from warmstart.model import WINDOW, Design
from warmstart.pipeline import Warmstart
from warmstart.stats.designs import choose_fastest, choose_unit
from warmstart.store import ExperimentRow
from warmstart.trials.metrics import DECIDING


@click.command()
@click.argument("session")
@click.argument("path", type=PATH)
@json_option
@click.pass_obj
def record(ws: Warmstart, session: str, path: Path, as_json: bool) -> None:
    """Close a trial by hand: PATH is the transcript of SESSION. `ingest` closes all trials whose session ids match."""
    trial = ws.record(session, path)
    measures = ws.experiments.measures(trial)
    if as_json:
        print_json(describe_trial(trial, measures))
    elif measures is None:
        click.echo(f"{clean(session)}: recorded, but the transcript has no turns to measure")
    else:
        click.echo(
            f"{clean(session)} ({clean(trial.arm)}): {measures.errors} errors in {measures.judged} judged calls "
            f"of the first {WINDOW} turns, {measures.all_errors} in {measures.all_judged} in total"
        )


@click.command()
@click.argument("experiment", required=False)
@click.option("--metric", type=click.Choice(DECIDING), help="The metric to put first.  [default: the one that decides]")
@json_option
@click.pass_obj
def report(ws: Warmstart, experiment: str | None, metric: str | None, as_json: bool) -> None:
    """Show what seeds did, compared with cold sessions.

    Reports EXPERIMENT; without it what assigns sessions now: the running experiment, else the standing "holdout".
    `~` marks tokens estimated from the text and costs from list prices.
    """
    row = ws.experiments.find(experiment) if experiment else None
    if row is not None and row.design == "occurrence":
        _report_occurrences(ws, row, as_json)
        return
    result = ws.report(experiment, metric=metric)
    templates = ws.experiments.weigh()
    outlook = ws.experiments.outlook(result)
    notes = ws.notes.weigh()
    trials = {"occurrences": ws.notes.weigh_occurrences(), "recurrences": ws.notes.weigh_recurrences()}
    if as_json:
        described = {"report": result, "templates": templates, "outlook": outlook}
        print_json(described | {"notes": describe_note_effects(notes), "trials": trials})
        return
    show_report(result, templates, outlook, notes)
    for tried in trials.values():
        show_trials(tried)


def _report_occurrences(ws: Warmstart, row: ExperimentRow, as_json: bool) -> None:
    """Report an experiment that draws notes at calls."""
    tried = ws.notes.weigh_occurrences(row.name)
    if as_json:
        print_json({"report": None, "experiment": describe_experiment(row), "trials": {"occurrences": tried}})
        return
    click.secho(f"Experiment {clean(row.name)}: {describe_arms(row)}", bold=True)
    if tried.pooled is None:
        click.echo(
            "No note was drawn yet. Sessions that began after the start take part, at calls that a note is about."
        )
    show_trials(tried)


@click.group()
def experiment() -> None:
    """Compare arms. Without an experiment, one session in ten stays cold as the standing holdout."""


@experiment.command("start")
@click.argument("name")
@click.option(
    "--arms",
    default="cold=.5,warm=.5",
    show_default=True,
    help="Arms and their shares: cold, warm (or seed), brief (what the project knows, no examples), brief+advice (and advice "
    "at calls), text (the seed as plain text) or a template's name; controls are random (randomly drawn examples) and "
    "mismatched (examples about something else).",
)
@click.option(
    "--metric", type=click.Choice(DECIDING), default="error_rate", show_default=True, help="The metric that decides."
)
@click.option("--salt", help="Another salt draws other arms for the same sessions.  [default: NAME]")
@click.option(
    "--after",
    type=click.Choice(["fixed", "thompson"]),
    default="fixed",
    show_default=True,
    help="After a verdict, keep the shares (fixed) or give the better arm more sessions (thompson).",
)
@click.option("--floor", type=float, default=0.1, show_default=True, help="The control's smallest share with thompson.")
@click.option(
    "--paired", is_flag=True, help="A harness does every task in every arm and names the arm (provision --arm)."
)
@click.option(
    "--unit",
    type=click.Choice(["auto", "session", "occurrence"]),
    default="auto",
    show_default=True,
    help="Draw sessions, or notes at the calls that they are about. auto: sessions, unless they cannot show a drop of 30 % "
    "within a year at your traffic while occurrences can.",
)
@click.option(
    "--share",
    type=float,
    default=0.5,
    show_default=True,
    help="Share of occurrences that are withheld, with occurrence.",
)
@json_option
@click.pass_context
def start(
    context: click.Context,
    name: str,
    arms: str,
    metric: str,
    salt: str | None,
    after: Literal["fixed", "thompson"],
    floor: float,
    paired: bool,
    unit: Literal["auto", "session", "occurrence"],
    share: float,
    as_json: bool,
) -> None:
    """Start an experiment: new sessions are assigned to its arms. Only one runs at a time."""
    ws: Warmstart = context.obj
    given = [option for option in _OF_SESSIONS if _is_given(context, option)]
    if unit == "occurrence" and given:
        raise click.UsageError(f"--{given[0]} is about sessions; leave it out, or use --unit session")
    if unit == "occurrence" or (unit == "auto" and not given and choose_unit(ws.compare_designs()) == "occurrence"):
        _start_occurrences(ws, name, share, salt, is_chosen=unit == "occurrence", as_json=as_json)
        return
    design: Design = "paired" if paired else "random"
    row = ws.experiments.start(name, arms, metric=metric, salt=salt, after=after, floor=floor, design=design)
    if as_json:
        print_json(describe_experiment(row))
        return
    click.echo(f"{clean(row.name)} is running: {clean(describe_arms(row))}. Stop it with: warmstart experiment stop")


_OF_SESSIONS = ("arms", "metric", "after", "floor", "paired")  # options that an experiment on occurrences does not have


def _is_given(context: click.Context, option: str) -> bool:
    return context.get_parameter_source(option) is ParameterSource.COMMANDLINE


def _start_occurrences(
    ws: Warmstart, name: str, share: float, salt: str | None, *, is_chosen: bool, as_json: bool
) -> None:
    row = ws.experiments.start_occurrences(name, share, salt=salt)
    if as_json:
        print_json(describe_experiment(row))
        return
    if not is_chosen:
        click.echo(
            "Sessions cannot show a drop of 30 % within a year at your traffic, so notes are tried at calls instead."
        )
        click.echo("That answers another question: see warmstart experiment power. For sessions: --unit session")
    click.echo(f"{clean(row.name)} is running: {clean(describe_arms(row))}. Stop it with: warmstart experiment stop")


@experiment.command("stop")
@click.argument("name", required=False)
@json_option
@click.pass_obj
def stop(ws: Warmstart, name: str | None, as_json: bool) -> None:
    """Stop the running experiment. Its sessions keep their seeds, and late transcripts still count."""
    row = ws.experiments.stop(name)
    if as_json:
        print_json(describe_experiment(row))
    else:
        click.echo(f"{clean(row.name)} has stopped; see: warmstart report {clean(row.name)}")


@experiment.command("list")
@json_option
@click.pass_obj
def list_experiments(ws: Warmstart, as_json: bool) -> None:
    """List all experiments, the latest first."""
    rows = ws.experiments.list()
    if as_json:
        print_json([describe_experiment(row) for row in rows])
        return
    if not rows:
        share = f"{ws.settings.holdout:.0%} of sessions stay cold for comparison"
        click.echo(f"no experiments; {share}. Start one with: warmstart experiment start NAME")
        return
    lines = [
        (r.name, describe_arms(r), r.metric, format_time(r.started), format_time(r.stopped) or "running") for r in rows
    ]
    print_table(("experiment", "arms", "metric", "started (UTC)", "stopped (UTC)"), lines)


@experiment.command("power")
@click.option("--arms", default="cold=.5,warm=.5", show_default=True, help="Shares to plan with.")
@click.option(
    "--power",
    "wanted",
    type=click.FloatRange(0.5, 0.99),
    default=0.8,
    show_default=True,
    help="Chance of detecting a real drop.",
)
@since_option
@json_option
@click.pass_obj
def power(ws: Warmstart, arms: str, wanted: float, since: float | None, as_json: bool) -> None:
    """Show which drop of the error rate your own traffic can detect, and after how many weeks, by each design."""
    shares = parse_arms(arms)
    computed = ws.experiments.power(cold_share=shares[control_of(shares)], power=wanted, since=since)
    designs = ws.compare_designs(cold_share=computed.cold_share, power=wanted, since=since)
    fastest = choose_fastest(designs)
    if as_json:
        best = fastest.design if fastest else None
        print_json(msgspec.to_builtins(computed) | {"designs": designs, "best": best, "unit": choose_unit(designs)})
    else:
        show_power(computed)
        show_designs(designs)


def describe_arms(row: ExperimentRow) -> str:
    """Write the arms of an experiment with their shares."""
    return ", ".join(f"{name} {share:.0%}" for name, share in read_shares(row.shares).items())


def describe_experiment(row: ExperimentRow) -> dict[str, Any]:
    """Describe an experiment for JSON."""
    return {
        "name": row.name,
        "arms": read_shares(row.arms),
        "shares": read_shares(row.shares),
        "metric": row.metric,
        "salt": row.salt,
        "after": row.after,
        "floor": row.floor,
        "design": row.design,
        "started": format_iso(row.started),
        "stopped": format_iso(row.stopped),
    }
