"""Commands of the way back: record, report, experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from warmstart.arms import parse_arms, read_shares
from warmstart.doors.cli.main import PATH, json_option
from warmstart.doors.render.as_json import describe_trial
from warmstart.doors.render.effect import show_power, show_report
from warmstart.doors.render.terminal import clean, iso, print_json, print_table, when
from warmstart.pipeline import Warmstart
from warmstart.store import ExperimentRow
from warmstart.trials.metrics import METRICS

_DECIDING = [name for name, metric in METRICS.items() if metric.horizon is None]


@click.command()
@click.argument("session")
@click.argument("path", type=PATH)
@json_option
@click.pass_obj
def record(ws: Warmstart, session: str, path: Path, as_json: bool) -> None:
    """Close a trial by hand: PATH is the transcript of SESSION. `ingest` does it for all whose ids agree."""
    trial = ws.record(session, path)
    measures = ws.experiments.measures(trial)
    if as_json:
        print_json(describe_trial(trial, measures))
    elif measures is None:
        click.echo(f"{clean(session)}: recorded, but it could not be measured")
    else:
        click.echo(
            f"{clean(session)} ({clean(trial.arm)}): {measures.errors} errors in {measures.judged} calls "
            f"of the first turns, {measures.all_errors} in {measures.all_judged} in all"
        )


@click.command()
@click.argument("experiment", required=False)
@json_option
@click.pass_obj
def report(ws: Warmstart, experiment: str | None, as_json: bool) -> None:
    """What seeds did, compared with cold sessions: of EXPERIMENT, the running one, the last, or "holdout"."""
    found = ws.report(experiment)
    templates = ws.experiments.weigh()
    outlook = ws.experiments.outlook(found)
    if as_json:
        print_json({"report": found, "templates": templates, "outlook": outlook})
        return
    show_report(found, templates, outlook)


@click.group()
def experiment() -> None:
    """Compare arms on purpose. Without an experiment one session in ten stays cold, to compare with."""


@experiment.command("start")
@click.argument("name")
@click.option(
    "--arms",
    default="cold=.5,warm=.5",
    show_default=True,
    help="Arms and their shares: cold, warm (or seed), text (the seed as plain text), names of templates; as controls "
    "random (examples drawn blindly) and mismatched (about something else).",
)
@click.option("--metric", type=click.Choice(_DECIDING), default="error_rate", show_default=True, help="What decides.")
@click.option("--salt", help="Another salt draws other arms for the same sessions.  [default: the name]")
@click.option(
    "--after",
    type=click.Choice(["fixed", "thompson"]),
    default="fixed",
    show_default=True,
    help="Once there is a verdict: shares as they are, or more for the better arm.",
)
@click.option("--floor", type=float, default=0.1, show_default=True, help="The control's least share then.")
@click.option(
    "--paired", is_flag=True, help="Every task is done in every arm, by a harness that says which (provision --arm)."
)
@json_option
@click.pass_obj
def start(ws: Warmstart, /, name: str, as_json: bool, paired: bool, **wishes: Any) -> None:
    """Start an experiment: new sessions are drawn for its arms. Only one runs at a time."""
    row = ws.experiments.start(name, design="paired" if paired else "random", **wishes)
    if as_json:
        print_json(_experiment_json(row))
        return
    click.echo(f"{clean(row.name)} runs: {clean(_arms(row))}. Stop it with: warmstart experiment stop")


@experiment.command("stop")
@click.argument("name", required=False)
@json_option
@click.pass_obj
def stop(ws: Warmstart, name: str | None, as_json: bool) -> None:
    """Stop the running experiment. What sessions were given stays; late transcripts still count."""
    row = ws.experiments.stop(name)
    if as_json:
        print_json(_experiment_json(row))
    else:
        click.echo(f"{clean(row.name)} is stopped; see: warmstart report {clean(row.name)}")


@experiment.command("list")
@json_option
@click.pass_obj
def list_experiments(ws: Warmstart, as_json: bool) -> None:
    """All experiments, the latest first."""
    rows = ws.experiments.list()
    if as_json:
        print_json([_experiment_json(row) for row in rows])
        return
    if not rows:
        share = f"{ws.settings.holdout:.0%} of sessions stay cold, to compare with"
        click.echo(f"no experiments; {share}. Start one with: warmstart experiment start NAME")
        return
    lines = [(r.name, _arms(r), r.metric, when(r.started), when(r.stopped) or "running") for r in rows]
    print_table(("experiment", "arms", "metric", "started (UTC)", "stopped (UTC)"), lines)


@experiment.command("power")
@click.option("--arms", help="Shares to plan with, like cold=.1,warm=.9.  [default: half and half]")
@click.option("--power", "wanted", type=click.FloatRange(0.5, 0.99), default=0.8, show_default=True)
@json_option
@click.pass_obj
def power(ws: Warmstart, arms: str | None, wanted: float, as_json: bool) -> None:
    """What your own traffic can show: which drop of the error rate is seen after how many weeks."""
    share = next(iter(parse_arms(arms).values())) if arms else 0.5
    found = ws.experiments.power(cold_share=share, power=wanted)
    if as_json:
        print_json(found)
    else:
        show_power(found)


def _arms(row: ExperimentRow) -> str:
    return ", ".join(f"{name} {share:.0%}" for name, share in read_shares(row.shares).items())


def _experiment_json(row: ExperimentRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "arms": read_shares(row.arms),
        "shares": read_shares(row.shares),
        "metric": row.metric,
        "salt": row.salt,
        "after": row.after,
        "floor": row.floor,
        "design": row.design,
        "started": iso(row.started),
        "stopped": iso(row.stopped),
    }
