"""A run's folder in, its report out: transcripts are ingested, trials closed, and the store says what they show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from msgspec import structs

from warmstart import __version__
from warmstart.analysis import Report
from warmstart.lab.families import FAMILIES
from warmstart.lab.jail import describe_walls
from warmstart.lab.making import make_sessions
from warmstart.lab.running import EXPERIMENT, Lab
from warmstart.lab.summary import ArmLine, Cell, LabReport, TaskLine
from warmstart.model import Effect, Measures
from warmstart.store import Ledger, TrialRow

_UNFINISHED = "the run is not finished"


def report_lab(lab: Lab, command: str, now: float) -> LabReport:
    """What the sessions so far show."""
    lab.ws.ingest(lab.folder / "sessions")
    plan, planned, done = lab.plan, len(lab.plan.arms) * len(lab.tasks()), lab.count_done()
    report = lab.ws.report(EXPERIMENT)
    if done < planned:
        report = _hold_back(report)
    trials = {trial.session: trial for trial in Ledger(lab.ws.store).trials(EXPERIMENT)}
    measured = {name: found for name, one in trials.items() if (found := lab.ws.experiments.measures(one)) is not None}
    return LabReport(
        command=command,
        at=datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"),
        version=__version__,
        model=plan.model,
        seed=plan.seed,
        turns=plan.limits.turns,
        planned=planned,
        done=done,
        grammar=plan.grammar,
        templates=len(lab.ws.templates.find(status="active")),
        training_sessions=sum(len(make_sessions(plan.seed, held_out=apart)) for apart in (False, True)),
        families=tuple(dict.fromkeys(sorted(task.family for task in lab.tasks()))),
        held_out=tuple(family.name for family in FAMILIES if family.held_out),
        walls=describe_walls(),
        arms=tuple(_describe_arm(lab, arm, report, trials, measured) for arm in plan.arms),
        tasks=tuple(
            TaskLine(
                task=task.id,
                family=task.family,
                request=task.request,
                arms={
                    arm: _describe_cell(found)
                    for arm in plan.arms
                    if (found := measured.get(lab.session_id(task, arm))) is not None
                },
            )
            for task in lab.tasks()
        ),
        report=report,
    )


def _hold_back(report: Report) -> Report:
    """The paired interval is for one look, when every task was done in every arm: before that nothing is decided."""

    def hold(effects: Sequence[Effect]) -> tuple[Effect, ...]:
        why = report.blocked or _UNFINISHED
        return tuple(structs.replace(one, verdict="inconclusive", reason="", blocked=why) for one in effects)

    return structs.replace(report, effects=hold(report.effects), secondary=hold(report.secondary))


def _describe_arm(
    lab: Lab, arm: str, report: Report, trials: dict[str, TrialRow], measured: dict[str, Measures]
) -> ArmLine:
    names = [lab.session_id(task, arm) for task in lab.tasks()]
    found = [measured[name] for name in names if name in measured]
    ledger = Ledger(lab.ws.store)
    shown = [
        len(ledger.picks(trials[name]) or ()) if arm != report.control else 0 for name in names if name in measured
    ]
    effects = [*report.effects, *report.secondary]
    return ArmLine(
        arm=arm,
        sessions=len(found),
        solved=sum(one.label is True for one in found),
        errors_per_call=_value(effects, arm, "error_rate"),
        turns_to_success=_value(effects, arm, "turns_to_success"),
        tokens=_value(effects, arm, "tokens"),
        tools=_value(effects, arm, "tools"),
        seed_tokens=_mean(one.seed_tokens for one in found),
        examples=_mean(shown) or 0.0,
        seconds=_mean(one.seconds for one in found if one.seconds is not None),
    )


def _value(effects: Sequence[Effect], arm: str, metric: str) -> float | None:
    """As the comparison has it; the control's own stands in every comparison."""
    return next((one.values[arm] for one in effects if one.metric == metric and arm in one.values), None)


def _mean(values: Iterable[float]) -> float | None:
    told = list(values)
    return sum(told) / len(told) if told else None


def _describe_cell(found: Measures) -> Cell:
    return Cell(
        solved=found.label is True,
        errors=found.all_errors,
        calls=found.all_calls,
        success_turn=found.success_turn,
        turns=found.turns or 0,
    )
