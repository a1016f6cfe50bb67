"""Experiments: start and stop them, close trials with their transcripts, and act on the measured effects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct, structs

from warmstart.arms import COLD, CONTROLS, HOLDOUT, WORDS, control_of, holdout_shares, parse_arms, read_shares
from warmstart.config import Settings
from warmstart.errors import NotFound, Refused
from warmstart.ingest.read import find_sources, scan
from warmstart.ingest.records import Recorder
from warmstart.model import WINDOW, Design, Measures
from warmstart.names import check_name
from warmstart.stats.many_arms import best_arm_probabilities, with_floor
from warmstart.store import ExperimentRow, SqliteStore, TemplateStore, TrialRow, TrialStore
from warmstart.store.history import decode_session
from warmstart.templates.library import TemplateLibrary
from warmstart.templates.register import MEASURED
from warmstart.trials.expected import expected_rate
from warmstart.trials.measures import measure
from warmstart.trials.metrics import DECIDING, METRICS, TIMES
from warmstart.trials.paired_report import analyse_paired
from warmstart.trials.power import Power, compute_power, describe_outlook
from warmstart.trials.report import Observation, Report, analyse, check_split
from warmstart.trials.template_effects import TemplateEffect, weigh_templates
from warmstart.usage.prices import PriceList

_facts = msgspec.json.Decoder(dict[str, str])

LEFT_OUT = {
    "choice": "cold by choice",
    "inherited": "subagents, or continuations of another session",
    "unknown": "provisioned before arms were drawn",
    "random": "arm drawn at random, although this experiment is paired",
    "paired": "not drawn",
}


class ClosedTrials(Struct, frozen=True, kw_only=True):
    """How many trials were closed, and which templates changed because of them."""

    trials: int = 0
    retired: tuple[str, ...] = ()
    promoted: tuple[str, ...] = ()


class Experiments:
    """Starts and stops experiments, closes trials and reports what they show."""

    def __init__(self, store: SqliteStore, settings: Settings, clock: Callable[[], float]) -> None:
        self._store = store
        self._trials = TrialStore(store)
        self._templates = TemplateStore(store)
        self._settings = settings
        self._clock = clock
        self._prices = PriceList(settings.prices)

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
        within which the first success is awaited.
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
            if running := self._trials.running():
                raise Refused(f"{running.name} is running, and a session belongs to one experiment only; stop it first")
            if self._trials.has_experiment(name):
                raise Refused(f"there already is an experiment {name}; choose another name")
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
            transcripts = self._find_transcripts()
            if not transcripts:
                return ClosedTrials()
            for session, key in transcripts.items():
                self._close(session, key)
            retired, promoted = self._decide()
            self._update_shares()
        return ClosedTrials(trials=len(transcripts), retired=tuple(retired), promoted=tuple(promoted))

    def _find_transcripts(self) -> dict[str, str]:
        """Return the transcript of each session that can be closed; of several with the same id, the same agent's."""
        keys: dict[str, list[tuple[bool, str]]] = {}
        for session, key, agent, task in self._trials.closable():
            is_of_other = read_facts(task).get("agent") not in (None, agent)
            keys.setdefault(session, []).append((is_of_other, key))
        return {session: min(candidates)[1] for session, candidates in keys.items()}

    def _close(self, session: str, key: str) -> None:
        row = self._store.find_session(key)
        past = decode_session(row, self._store.calls_of(key))
        tokens = self._trials.seed_tokens(session)
        measures = measure(past, seed_tokens=tokens, price=self._prices.cost) if past else None
        self._trials.close(session, key, measures, self._clock())

    def record(self, session: str, path: Path | str) -> TrialRow:
        """Close a trial by hand: `path` is the transcript of `session`, even if it has another id inside."""
        if self._trials.trial(session) is None:
            raise NotFound(f"session {session} was never provisioned; see: warmstart provision --session {session}")
        recorder = Recorder(self._settings.secrets, self._settings.home)
        sessions = [scored for source in find_sources(Path(path)) for scored in scan(source, self._settings.tools)]
        own = [scored for scored in sessions if scored.session.id == session] or sessions
        if len(own) != 1:
            content = f"{len(sessions)} sessions, none of them {session}" if sessions else "no session"
            raise Refused(f"{recorder.name(str(path))}: holds {content}; give the file of that session alone")
        record = recorder.record(own[0].session, own[0].score, self._clock())
        with self._store.writing():
            if self._store.put_session(record.session, record.calls, record.spent) == "forgotten":
                raise Refused(
                    f"session {session}: you deleted its transcript's session ({record.session.id}), so that it is not stored"
                    " again; its trial stays unmeasured"
                )
            self._close(session, record.session.key)
            self._decide()
            self._update_shares()
        trial = self._trials.trial(session)
        assert trial is not None
        return trial

    def measures(self, trial: TrialRow) -> Measures | None:
        """Return how a trial's session went, or None if that is unknown."""
        return self._trials.measures(trial)

    # Acting on effects

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
            observations = [o for o in self._observe(self._trials.trials(name)) if o.arm not in CONTROLS]
            if not check_split(observations, {}).blocked:  # a broken comparison decides nothing
                trusted += observations
        return weigh_templates(trusted)

    # Reporting

    def report(self, name: str | None = None, *, metric: str | None = None) -> Report:
        """Report an experiment: the named one, else what assigns sessions now: the running one or the "holdout".

        `metric` puts another metric first than the one that the experiment was started to be decided by.
        """
        if metric is not None and metric not in METRICS:
            raise Refused(f"no metric {metric}; choose one of: {', '.join(METRICS)}")
        row = self._find(name)
        trials = self._trials.trials(row.name if row else HOLDOUT)
        shares = read_shares(row.arms) if row else holdout_shares(self._settings.holdout)
        design = row.design if row else "random"
        chosen = row.metric if row else "error_rate"
        left_out: dict[str, int] = {}
        sessions = {trial.session for trial in trials}
        for trial in trials:
            if trial.assignment != design and not _is_addition(trial, sessions):
                reason = LEFT_OUT[trial.assignment]
                left_out[reason] = left_out.get(reason, 0) + 1
        if row is not None and design == "paired":
            return analyse_paired(
                row.name,
                self._observe(trials, design),
                shares=shares,
                control=control_of(shares),
                metric=metric or chosen,
                horizon=row.horizon,
                left_out=left_out,
            )
        return analyse(
            row.name if row else "holdout",
            self._observe(trials),
            shares=shares,
            control=control_of(shares),
            metric=metric or chosen,
            left_out=left_out,
        )

    def _find(self, name: str | None) -> ExperimentRow | None:
        if name == "holdout":
            return None
        if name is not None:
            return self._trials.experiment(name)
        return self._trials.running()

    def _observe(self, trials: Sequence[TrialRow], design: Design = "random") -> Sequence[Observation]:
        """Return the sessions to compare, with what was known before each."""
        drawn = [trial for trial in trials if trial.assignment == design]
        facts = [read_facts(trial.task) for trial in drawn]
        added: dict[str, set[str]] = {}  # templates shown beside a session's own seed: later, or to its subagents
        asked: dict[str, str] = {}  # the task, where it became known later
        for trial in trials:
            if trial.assignment == "inherited" and trial.parent:
                added.setdefault(trial.parent, set()).update(self._shown_templates(trial))
                asked.setdefault(trial.parent, read_facts(trial.task).get("task", ""))
        shown = [self._shown_templates(trial) | added.get(trial.session, set()) for trial in drawn]
        of_arm: dict[str, set[str]] = {}
        for trial, names in zip(drawn, shown, strict=True):
            if trial.arm not in WORDS:
                of_arm.setdefault(trial.arm, set()).update(names)
        categories = self._categories()
        kinds = [
            known.get("category") or next((categories.get(n) for n in names), None)
            for known, names in zip(facts, shown, strict=True)
        ]
        wanted = [
            (trial.at, (known.get("project"), known.get("model"), kind))
            for trial, known, kind in zip(drawn, facts, kinds, strict=True)
        ]
        rates = expected_rate(self._trials.history(), wanted)
        return [
            Observation(
                session=trial.session,
                arm=trial.arm,
                shares=read_shares(trial.propensities),
                measures=self._trials.measures(trial),
                project=known.get("project"),
                task=known.get("task") or asked.get(trial.session) or None,
                category=kind,
                expected=rate,
                templates=tuple(sorted(names.union(*of_arm.values()) if trial.arm == COLD else names)),
            )
            for trial, known, names, kind, rate in zip(drawn, facts, shown, kinds, rates, strict=True)
        ]

    def _shown_templates(self, trial: TrialRow) -> set[str]:
        return {f"{pick.template}@{pick.version}" for pick in self._trials.picks(trial) or ()}

    def _categories(self) -> Mapping[str, str]:
        return {f"{row.name}@{row.version}": row.category for row in self._templates.find()}

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


def read_facts(body: str) -> dict[str, str]:
    """Return what was known of a task before its session."""
    try:
        return _facts.decode(body)
    except msgspec.DecodeError:
        return {}


def _is_addition(trial: TrialRow, sessions: Collection[str]) -> bool:
    """Return whether the trial only adds to a session's own seed, as a hook does at the first prompt (`SESSION#prompt`)."""
    own, mark, _part = trial.session.rpartition("#")
    return bool(mark) and trial.parent is not None and (own == trial.parent or own in sessions)
