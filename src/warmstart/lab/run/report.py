"""A run's folder in, its report out: transcripts are ingested, trials closed, and the store says what they show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from msgspec import structs

from warmstart.lab.chores.families import FAMILIES
from warmstart.lab.chores.make import make_sessions
from warmstart.lab.run.agent import AGENT
from warmstart.lab.run.lab import EXPERIMENT, Lab
from warmstart.lab.run.summary import ArmLine, LabReport, TaskCell, TaskLine
from warmstart.lab.sandbox.processes import describe_walls
from warmstart.model import Effect, Measures
from warmstart.store import TrialRow, TrialStore
from warmstart.trials.report import Report

_UNFINISHED = "the run is not finished"


def report_lab(lab: Lab, command: str, now: float) -> LabReport:
    """What the sessions so far show."""
    lab.ws.ingest(lab.folder / "sessions")
    plan, planned, done = lab.plan, len(lab.plan.arms) * len(lab.tasks()), lab.count_done()
    trials = {trial.session: trial for trial in TrialStore(lab.ws.store).trials(EXPERIMENT)}
    measured = {name: found for name, one in trials.items() if (found := lab.ws.experiments.measures(one)) is not None}
    report = _lift_guardrails(lab.ws.report(EXPERIMENT))
    if done < planned:
        report = _hold_back(report)
    return LabReport(
        command=command,
        at=_write_time(now),
        version=lab.version,
        model=plan.model,
        random_seed=plan.random_seed,
        turns=plan.limits.turns,
        planned=planned,
        done=done,
        grammar=plan.grammar,
        templates=len(lab.ws.templates.find(status="active")),
        training_sessions=sum(len(make_sessions(plan.random_seed, held_out=apart)) for apart in (False, True)),
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
        **_find_times(lab),
    )


def _find_times(lab: Lab) -> dict[str, str]:
    """When the sessions were, whenever they are looked at."""
    ids = {lab.session_id(task, arm) for task, arm in lab.steps()}
    rows = [row for row in lab.ws.sessions(limit=100_000, agent=AGENT) if row.id in ids]
    began, ended = [row.started for row in rows if row.started], [row.ended for row in rows if row.ended]
    return {"began": _write_time(min(began)), "ended": _write_time(max(ended))} if began and ended else {}


def _write_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def _lift_guardrails(report: Report) -> Report:
    """They are for verdicts on errors, and ask whether an arm just calls less. Here a session ends when its task is
    solved: who solves it at once makes the fewest calls, and that speaks against nobody."""
    held = {told.partition(": ")[0] for told in report.guardrails}
    effects = tuple(
        structs.replace(one, verdict="better", reason=one.reason.partition(", but ")[0])
        if one.arm in held and not one.blocked
        else one
        for one in report.effects
    )
    return structs.replace(report, effects=effects, guardrails=())


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
    ledger = TrialStore(lab.ws.store)
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


def _describe_cell(found: Measures) -> TaskCell:
    return TaskCell(
        solved=found.label is True,
        errors=found.all_errors,
        calls=found.all_calls,
        success_turn=found.success_turn,
        turns=found.turns or 0,
    )
