"""Experiments: start and stop them, close trials with their transcripts, and act on the measured effects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct, structs

from warmstart.arms import (
    CONTROLS,
    HOLDOUT,
    SHOWN,
    WITHHELD,
    WORDS,
    control_of,
    holdout_shares,
    parse_arms,
    read_shares,
)
from warmstart.config import Settings
from warmstart.errors import Refused
from warmstart.model import WINDOW, Design, Measures
from warmstart.names import check_name
from warmstart.stats.many_arms import best_arm_probabilities, with_floor
from warmstart.store import ExperimentRow, Store, TemplateStore, TrialRow, TrialStore
from warmstart.store.weighings import is_weighing_due
from warmstart.templates.library import TemplateLibrary
from warmstart.templates.register import MEASURED
from warmstart.trials.closing import TrialCloser
from warmstart.trials.course import EffectCourse, trace_courses
from warmstart.trials.metrics import DECIDING, METRICS, TIMES
from warmstart.trials.observation import Observation
from warmstart.trials.observe import TrialReader
from warmstart.trials.paired_report import analyse_paired
from warmstart.trials.power import Power, compute_power, describe_outlook
from warmstart.trials.report import Report, analyse
from warmstart.trials.split import check_split
from warmstart.trials.template_effects import TemplateEffect, weigh_templates


class ClosedTrials(Struct, frozen=True, kw_only=True):
    """How many trials were closed, and which templates changed because of them."""

    trials: int = 0
    retired: tuple[str, ...] = ()
    promoted: tuple[str, ...] = ()


class Experiments:
    """Starts and stops experiments, closes trials and reports what they show."""

    def __init__(self, store: Store, settings: Settings, clock: Callable[[], float]) -> None:
        self._store = store
        self._trials = TrialStore(store)
        self._templates = TemplateStore(store)
        self._settings = settings
        self._clock = clock
        self._closer = TrialCloser(store, settings, clock)
        self._reader = TrialReader(store)

    # Starting and stopping

    def start(
        self,
        name: str,
        arms: str = "cold=.5,warm=.5",
        *,
        metric: str = "error_rate",
        salt: str | None = None,
        after: Literal["fixed", "thompson"] = "fixed",
        floor: float = 0.1,
        design: Design = "random",
        horizon: float | None = None,
    ) -> ExperimentRow:
        """Start an experiment: new sessions belong to it from now on. Only one runs at a time; old sessions keep theirs.

        In a paired design a harness does every task once in every arm (`Task.arm`). `horizon` is the number of turns
        within which the first success is awaited. To try notes at their occurrences, see `start_occurrences`.
        """
        name = check_name(name)
        if metric not in DECIDING:
            raise Refused(f"no metric {metric} to decide by; choose one of: {', '.join(DECIDING)}")
        if design == "paired" and after != "fixed":
            raise Refused(
                "a paired experiment does every task in every arm, so its shares cannot change; leave out after"
            )
        if metric in TIMES and after != "fixed":
            raise Refused(f"waits cannot be weighted by changing shares, so {metric} needs fixed ones; leave out after")
        if not 0 < floor <= 0.5:
            raise Refused(f"the floor must lie above 0 and at most at 0.5, not {floor:g}")
        shares = parse_arms(arms)
        with self._store.writing():
            self._check_free(name)
            for arm in shares.keys() - WORDS:
                self._check_template(arm)
            body = msgspec.json.encode(shares).decode()
            row = ExperimentRow(
                name=name,
                arms=body,
                shares=body,
                metric=metric,
                salt=name if salt is None else salt,
                after=after,
                floor=floor,
                started=self._clock(),
                design=design,
                horizon=horizon,
            )
            self._trials.put_experiment(row)
        return row

    def start_occurrences(self, name: str, share: float = 0.5, *, salt: str | None = None) -> ExperimentRow:
        """Start an experiment on notes: at the first call of a session that a note would speak at, withhold this share.

        Sessions are drawn by the standing holdout as before. Sessions that begin from now on take part.
        """
        name = check_name(name)
        if not 0.05 <= share <= 0.95:
            raise Refused(f"the share of withheld occurrences must lie between 0.05 and 0.95, not {share:g}")
        salt = name if salt is None else "".join(char for char in salt if ord(char) >= 32)
        body = msgspec.json.encode({WITHHELD: share, SHOWN: 1 - share}).decode()
        with self._store.writing():
            self._check_free(name)
            row = ExperimentRow(
                name=name,
                arms=body,
                shares=body,
                metric="failures",
                salt=salt,
                after="fixed",
                floor=share,
                started=self._clock(),
                design="occurrence",
            )
            self._trials.put_experiment(row)
        return row

    def _check_free(self, name: str) -> None:
        if running := self._trials.running():
            raise Refused(f"{running.name} is running, and a session belongs to one experiment only; stop it first")
        if self._trials.has_experiment(name):
            raise Refused(f"there already is an experiment {name}; choose another name")

    def _check_template(self, name: str) -> None:
        row = self._library.latest(name)
        if row.status == "retired":
            raise Refused(f"the template {name} is retired: {row.reason}")

    def stop(self, name: str | None = None) -> ExperimentRow:
        """Stop the running experiment: new sessions go back to the standing holdout, old ones keep their arm and seed."""
        with self._store.writing():
            running = self._trials.running()
            if name is not None and self._trials.experiment(name).stopped is not None:
                raise Refused(f"{name} has already stopped")
            if running is None:
                raise Refused("no experiment is running")
            self._trials.stop_experiment(running.name, self._clock())
        return self._trials.experiment(running.name)

    def list(self) -> Sequence[ExperimentRow]:
        """Return all experiments, the latest first."""
        return self._trials.experiments()

    # Closing trials

    def close(self) -> ClosedTrials:
        """Close the trials whose transcripts have arrived, and act on the effects. Doing it again changes nothing."""
        with self._store.writing():
            closed = self._closer.close_all()
            retired, promoted = self._act(closed) if closed else ((), ())
        return ClosedTrials(trials=closed, retired=tuple(retired), promoted=tuple(promoted))

    def record(self, session: str, path: Path | str) -> TrialRow:
        """Close a trial by hand: `path` is the transcript of `session`, even if it has another id inside."""
        with self._store.writing():
            trial = self._closer.record(session, path)
            self._act(1)
        return trial

    def measures(self, trial: TrialRow) -> Measures | None:
        """Return how a trial's session went, or None if that is unknown."""
        return self._trials.measures(trial)

    # Acting on effects

    def _act(self, closed: int) -> tuple[Sequence[str], Sequence[str]]:
        """Act on the effects, unless few trials were measured since that was done last."""
        if not is_weighing_due(self._store, "trial", closed):
            return (), ()
        retired, promoted = self._decide()
        self._update_shares()
        return retired, promoted

    def _decide(self) -> tuple[Sequence[str], Sequence[str]]:
        """Retire templates that harm or do nothing and promote those that help, with a recorded decision each."""
        retired, promoted = [], []
        for effect in self.weigh():
            name = f"{effect.name}@{effect.version}"
            row = next((row for row in self._library.versions(effect.name) if row.version == effect.version), None)
            if row is None:
                continue
            self._templates.put_effect(row.name, row.version, structs.replace(effect.effect, shrunk=effect.shrunk))
            if effect.decision == "retire" and row.status != "retired":
                self._library.retire(name, reason=effect.reason, by=MEASURED)
                retired.append(name)
            elif effect.decision == "promote" and not self._is_settled(effect):
                self._library.promote(name, reason=effect.reason, by=MEASURED)
                promoted.append(name)
        return retired, promoted

    def _is_settled(self, effect: TemplateEffect) -> bool:
        """Whether the template was promoted before, or a person has retired it since, whose word stands."""
        decisions = [d for d in self._templates.decisions(effect.name) if d.version == effect.version]
        measured = next((d for d in reversed(decisions) if d.by == MEASURED), None)
        is_promoted = measured is not None and measured.status == "active"
        return is_promoted or (bool(decisions) and decisions[-1].status == "retired")

    def _update_shares(self) -> None:
        """Once there is a verdict, give the better arm more sessions; the control keeps its floor."""
        running = self._trials.running()
        if running is None or running.after != "thompson":
            return
        report = self.report(running.name)
        if report.blocked or not any(effect.verdict in ("better", "worse") for effect in report.effects):
            return
        metric = METRICS[running.metric]
        chances = best_arm_probabilities(report.standings, lower_is_better=metric.lower_is_better)
        self._trials.set_shares(running.name, with_floor(chances, report.control, running.floor))

    def weigh(self) -> Sequence[TemplateEffect]:
        """Return the effect of each template, over all experiments."""
        trusted: list[Observation] = []
        for name in (HOLDOUT, *(row.name for row in self._trials.experiments() if row.design == "random")):
            observations = self._reader.read(name).sessions
            if not check_split(observations, {}).blocked:  # a broken comparison decides nothing
                trusted += (obs for obs in observations if obs.arm not in CONTROLS)
        return weigh_templates(trusted)

    # Reporting

    def report(self, name: str | None = None, *, metric: str | None = None) -> Report:
        """Report an experiment: the named one, else what assigns sessions now: the running one or the "holdout".

        `metric` puts another metric first than the one that the experiment was started to be decided by.
        """
        if metric is not None and metric not in METRICS:
            raise Refused(f"no metric {metric}; choose one of: {', '.join(METRICS)}")
        row = self._find(name)
        if row is not None and row.design == "occurrence":
            raise Refused(
                f"{row.name} draws occurrences of notes, not sessions; see: warmstart report {row.name}, "
                "or notes.weigh_occurrences in the library"
            )
        shares = read_shares(row.arms) if row else holdout_shares(self._settings.holdout)
        design = row.design if row else "random"
        observed = self._reader.read(row.name if row else HOLDOUT, design)
        metric = metric or (row.metric if row else "error_rate")
        analyse_design = analyse
        if row is not None and design == "paired":
            analyse_design = partial(analyse_paired, horizon=row.horizon)
        report = analyse_design(
            row.name if row else "holdout",
            observed.sessions,
            shares=shares,
            control=control_of(shares),
            metric=metric,
        )
        return structs.replace(report, left_out=observed.left_out)

    def trace(self, name: str | None = None, *, metric: str | None = None) -> Sequence[EffectCourse]:
        """Return how the effect of each arm looked after every few sessions: what each look would have shown.

        Experiments whose tasks are done in every arm are looked at once, so that they have no course.
        """
        row = self._find(name)
        if row is not None and row.design != "random":
            return ()
        shares = read_shares(row.arms) if row else holdout_shares(self._settings.holdout)
        observed = self._reader.read(row.name if row else HOLDOUT, "random")
        measure = METRICS[metric or (row.metric if row else "error_rate")]
        return trace_courses(observed.sessions, shares=shares, control=control_of(shares), metric=measure)

    def _find(self, name: str | None) -> ExperimentRow | None:
        if name == "holdout":
            return None
        if name is not None:
            return self._trials.experiment(name)
        running = self._trials.running()
        return None if running is not None and running.design == "occurrence" else running

    def find(self, name: str) -> ExperimentRow | None:
        """Return an experiment by its name; None for the standing holdout."""
        return self._find(name)

    # Before an experiment

    def power(self, *, cold_share: float = 0.5, power: float = 0.8, since: float | None = None) -> Power:
        """Compute what the user's own traffic can show, from the remembered sessions (those that began after `since`)."""
        starts = self._trials.starts(WINDOW)
        if since is not None:
            starts = [start for start in starts if start[1] is not None and start[1] >= since]
        return compute_power(starts, self._clock(), cold_share=cold_share, power=power)

    def outlook(self, report: Report) -> str | None:
        """Say when a report without a verdict can be expected to have one. None if that cannot be said."""
        if (
            report.design == "paired"
            or report.blocked
            or all(effect.verdict in ("better", "worse") for effect in report.effects)
        ):
            return None
        row = self._find(report.experiment)
        shares = read_shares(row.shares) if row else holdout_shares(self._settings.holdout)
        try:
            power = self.power(cold_share=min(0.95, max(0.05, shares[report.control])))
        except Refused:
            return None
        return describe_outlook(power, report.control)

    @property
    def _library(self) -> TemplateLibrary:
        return TemplateLibrary(self._store, self._settings, self._clock)
