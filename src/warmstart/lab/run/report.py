"""The report of a run: ingest its transcripts, close the trials, and take the store's own report."""

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
    """Report the sessions so far."""
    lab.ws.ingest(lab.folder / "sessions")
    plan, planned, done = lab.plan, len(lab.plan.arms) * len(lab.tasks()), lab.count_done()
    trials = {trial.session: trial for trial in TrialStore(lab.ws.store).trials(EXPERIMENT)}
    all_measures = {name: lab.ws.experiments.measures(trial) for name, trial in trials.items()}
    measured = {name: measures for name, measures in all_measures.items() if measures is not None}
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
        training_sessions=sum(len(make_sessions(plan.random_seed, held_out=held_out)) for held_out in (False, True)),
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
                    arm: _describe_cell(measures)
                    for arm in plan.arms
                    if (measures := measured.get(lab.session_id(task, arm))) is not None
                },
            )
            for task in lab.tasks()
        ),
        report=report,
        **_find_times(lab),
    )


def _find_times(lab: Lab) -> dict[str, str]:
    """Return when the first session began and the last one ended."""
    ids = {lab.session_id(task, arm) for task, arm in lab.steps()}
    rows = [row for row in lab.ws.sessions(limit=100_000, agent=AGENT) if row.id in ids]
    began, ended = [row.started for row in rows if row.started], [row.ended for row in rows if row.ended]
    return {"began": _write_time(min(began)), "ended": _write_time(max(ended))} if began and ended else {}


def _write_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def _lift_guardrails(report: Report) -> Report:
    """Restore verdicts that guardrails held back. Guardrails suspect an arm that makes fewer calls. In the lab,
    fewer calls are expected: a session ends once its task is solved."""
    held_back = {guardrail.partition(": ")[0] for guardrail in report.guardrails}
    effects = tuple(
        structs.replace(effect, verdict="better", reason=effect.reason.partition(", but ")[0])
        if effect.arm in held_back and not effect.blocked
        else effect
        for effect in report.effects
    )
    return structs.replace(report, effects=effects, guardrails=())


def _hold_back(report: Report) -> Report:
    """Remove all verdicts: the paired interval is for one look, when every task is done in every arm."""

    def hold(effects: Sequence[Effect]) -> tuple[Effect, ...]:
        reason = report.blocked or _UNFINISHED
        return tuple(structs.replace(effect, verdict="inconclusive", reason="", blocked=reason) for effect in effects)

    return structs.replace(report, effects=hold(report.effects), secondary=hold(report.secondary))


def _describe_arm(
    lab: Lab, arm: str, report: Report, trials: dict[str, TrialRow], measured: dict[str, Measures]
) -> ArmLine:
    names = [name for task in lab.tasks() if (name := lab.session_id(task, arm)) in measured]
    sessions = [measured[name] for name in names]
    store = TrialStore(lab.ws.store)
    shown = [len(store.picks(trials[name]) or ()) if arm != report.control else 0 for name in names]
    effects = [*report.effects, *report.secondary]
    return ArmLine(
        arm=arm,
        sessions=len(sessions),
        solved=sum(session.label is True for session in sessions),
        errors_per_call=_find_value(effects, arm, "error_rate"),
        turns_to_success=_find_value(effects, arm, "turns_to_success"),
        tokens=_find_value(effects, arm, "tokens"),
        tools=_find_value(effects, arm, "tools"),
        seed_tokens=_mean(session.seed_tokens for session in sessions),
        examples=_mean(shown) or 0.0,
        seconds=_mean(session.seconds for session in sessions if session.seconds is not None),
    )


def _find_value(effects: Sequence[Effect], arm: str, metric: str) -> float | None:
    """Return an arm's value from a comparison; the control's value is in every comparison."""
    return next((effect.values[arm] for effect in effects if effect.metric == metric and arm in effect.values), None)


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return sum(known) / len(known) if known else None


def _describe_cell(measures: Measures) -> TaskCell:
    return TaskCell(
        solved=measures.label is True,
        errors=measures.all_errors,
        calls=measures.all_calls,
        success_turn=measures.success_turn,
        turns=measures.turns or 0,
    )
