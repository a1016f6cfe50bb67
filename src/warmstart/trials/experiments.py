"""Measured effect back: trials are closed by their transcripts, arms compared, templates kept, promoted or retired."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct, structs

from warmstart.arms import COLD, CONTROLS, HOLDOUT, WORDS, control_of, holdout_shares, parse_arms, read_shares
from warmstart.config import Settings
from warmstart.errors import NotFound, Refused
from warmstart.ingest.read import scan, sources
from warmstart.ingest.records import Recorder
from warmstart.model import WINDOW, Design, Measures
from warmstart.names import check_name
from warmstart.stats.many_arms import best_arm_probabilities, with_floor
from warmstart.stats.power import detectable_drop, measure_baseline, sessions_needed
from warmstart.store import ExperimentRow, SqliteStore, TemplateStore, TrialRow, TrialStore
from warmstart.store.history import decode_session
from warmstart.templates.library import TemplateLibrary
from warmstart.templates.register import MEASURED
from warmstart.trials.measures import measure
from warmstart.trials.metrics import METRICS
from warmstart.trials.paired_report import analyse_paired
from warmstart.trials.report import CLUSTERS, Observation, Report, analyse, check_split, expected_rate
from warmstart.trials.template_effects import TemplateEffect, weigh_templates
from warmstart.usage.prices import PriceList

_WEEK = 7 * 86_400.0
_facts = msgspec.json.Decoder(dict[str, str])

LEFT_OUT = {
    "choice": "cold by choice",
    "inherited": "started by another session, or going on from one",
    "unknown": "provisioned before arms were drawn",
    "random": "drawn, where every task is to be done in every arm",
    "paired": "not drawn",
}


class ClosedTrials(Struct, frozen=True, kw_only=True):
    """What came of the transcripts that have arrived."""

    trials: int = 0
    retired: tuple[str, ...] = ()
    promoted: tuple[str, ...] = ()


class Drop(Struct, frozen=True, kw_only=True):
    """What it takes to see a drop of the error rate."""

    drop: float  # relative
    sessions: int | None  # in all; None: more than anyone has
    weeks: float | None  # None: no traffic to go by


class Reach(Struct, frozen=True, kw_only=True):
    """What can be seen after some weeks."""

    weeks: int
    sessions: int
    drop: float | None  # None: not even that errors vanish


class Power(Struct, frozen=True, kw_only=True):
    """What one's own traffic can show, before anything is started."""

    sessions: int  # that the figures come from
    rate: float  # errors per call over the first turns
    design_effect: float  # how much clustering blows up the variance
    per_week: float
    cold_share: float
    power: float
    drops: tuple[Drop, ...]
    reach: tuple[Reach, ...]


class Experiments:
    """Starts and stops comparisons, closes trials and says what they show."""

    def __init__(self, store: SqliteStore, settings: Settings, clock: Callable[[], float]) -> None:
        self._store = store
        self._ledger = TrialStore(store)
        self._shelf = TemplateStore(store)
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
        """From now on new sessions belong to it. Only one runs at a time; a session keeps the one it began in.

        In a paired design every task is done once in every arm (`Task.arm`), by a harness that can do so. `horizon`: turns
        within which the first success is awaited.
        """
        name = check_name(name)
        if metric not in METRICS or METRICS[metric].horizon is not None:
            raise Refused(f"no metric {metric} to decide by; there are: {', '.join(deciding_metrics())}")
        if design == "paired" and after != "fixed":
            raise Refused("a paired experiment does every task in every arm: shares cannot follow a verdict")
        if not 0 < floor <= 0.5:
            raise Refused(f"the floor must lie between 0 and 0.5, not {floor:g}")
        shares = parse_arms(arms)
        with self._store.writing():
            if running := self._ledger.running():
                raise Refused(f"{running.name} is running, and a session belongs to one experiment only; stop it first")
            if self._ledger.has_experiment(name):
                raise Refused(f"there was an experiment {name} already; choose another name")
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
            self._ledger.put_experiment(row)
        return row

    def _check_template(self, name: str) -> None:
        row = self._teacher.latest(name)
        if row.status == "retired":
            raise Refused(f"the template {name} is retired: {row.reason}")

    def stop(self, name: str | None = None) -> ExperimentRow:
        """New sessions go back to the standing holdout; what was given stays."""
        with self._store.writing():
            running = self._ledger.running()
            if name is not None and self._ledger.experiment(name).stopped is not None:
                raise Refused(f"{name} is stopped already")
            if running is None:
                raise Refused("no experiment is running")
            self._ledger.stop_experiment(running.name, self._clock())
        return self._ledger.experiment(running.name)

    def list(self) -> Sequence[ExperimentRow]:
        """The latest first."""
        return self._ledger.experiments()

    # Closing trials

    def close(self) -> ClosedTrials:
        """Take in what transcripts have come for trials, and what follows from them. Doing it again changes nothing."""
        with self._store.writing():
            done = 0
            for session, keys in self._closable().items():
                self._close(session, keys[0])
                done += 1
            if not done:
                return ClosedTrials()
            retired, promoted = self._decide()
            self._share_out()
        return ClosedTrials(trials=done, retired=tuple(retired), promoted=tuple(promoted))

    def _closable(self) -> dict[str, Sequence[str]]:
        """Sessions and the transcripts that may be theirs, that of the same agent first."""
        found: dict[str, list[tuple[bool, str]]] = {}
        for session, key, agent, task in self._ledger.closable():
            other = read_facts(task).get("agent") not in (None, agent)
            found.setdefault(session, []).append((other, key))
        return {session: [key for _other, key in sorted(keys)] for session, keys in found.items()}

    def _close(self, session: str, key: str) -> None:
        row = self._store.find_session(key)
        past = decode_session(row, self._store.calls_of(key))
        tokens = self._ledger.seed_tokens(session)
        measures = measure(past, seed_tokens=tokens, price=self._prices.cost) if past else None
        self._ledger.close(session, key, measures, self._clock())

    def record(self, session: str, path: Path | str) -> TrialRow:
        """Close a trial by hand: PATH is the transcript of SESSION, whatever id it has in there."""
        if self._ledger.trial(session) is None:
            raise NotFound(f"session {session} was never provisioned; see: warmstart provision --session {session}")
        file = Path(path)
        recorder = Recorder(self._settings.secrets)
        found = [scored for source in sources(file) for scored in scan(source, self._settings.tools)]
        own = [scored for scored in found if scored.session.id == session] or found
        if len(own) != 1:
            what = f"{len(found)} sessions, none of them {session}" if found else "no session"
            raise Refused(f"{recorder.name(str(path))}: holds {what}; give the file of that session alone")
        made = recorder.record(own[0].session, own[0].score, self._clock())
        with self._store.writing():
            self._store.put_session(made.session, made.calls, made.spent)
            self._close(session, made.session.key)
            self._decide()
            self._share_out()
        trial = self._ledger.trial(session)
        assert trial is not None
        return trial

    def measures(self, trial: TrialRow) -> Measures | None:
        """How a trial's session went, or None where that is not known."""
        return self._ledger.measures(trial)

    # What follows

    def _decide(self) -> tuple[Sequence[str], Sequence[str]]:
        """Retire what harms or does nothing, promote what helps; on the record."""
        retired, promoted = [], []
        for found in self.weigh():
            name = f"{found.name}@{found.version}"
            row = next((row for row in self._teacher.versions(found.name) if row.version == found.version), None)
            if row is None:
                continue
            self._shelf.put_effect(row.name, row.version, structs.replace(found.effect, shrunk=found.shrunk))
            if found.decision == "retire" and row.status != "retired":
                self._teacher.retire(name, reason=found.reason, by=MEASURED)
                retired.append(name)
            elif found.decision == "promote" and not self._is_promoted(found):
                self._teacher.promote(name, reason=found.reason, by=MEASURED)
                promoted.append(name)
        return retired, promoted

    def _is_promoted(self, found: TemplateEffect) -> bool:
        """Or a person has since decided otherwise, whose word stands."""
        said = [one for one in self._shelf.decisions(found.name) if one.version == found.version]
        last = next((one for one in reversed(said) if one.by == MEASURED), None)
        return (last is not None and last.status == "active") or (bool(said) and said[-1].status == "retired")

    def _share_out(self) -> None:
        """Once there is a verdict, the better arm gets more sessions; the control keeps its floor."""
        running = self._ledger.running()
        if running is None or running.after != "thompson":
            return
        report = self.report(running.name)
        if report.blocked or not any(effect.verdict in ("better", "worse") for effect in report.effects):
            return
        metric = METRICS[running.metric]
        chances = best_arm_probabilities(report.standings, lower_is_better=metric.lower_is_better)
        self._ledger.set_shares(running.name, with_floor(chances, report.control, running.floor))

    def weigh(self) -> Sequence[TemplateEffect]:
        """What each template has done, over all experiments."""
        trusted: list[Observation] = []
        for name in (HOLDOUT, *(row.name for row in self._ledger.experiments() if row.design == "random")):
            found = [one for one in self._observe(self._ledger.trials(name)) if one.arm not in CONTROLS]
            if not check_split(found, {}).blocked:  # what cannot be trusted decides nothing
                trusted += found
        return weigh_templates(trusted)

    # Looking

    def report(self, name: str | None = None) -> Report:
        """What an experiment shows: the one that runs, else the last, else the standing holdout ("holdout")."""
        row = self._find(name)
        trials = self._ledger.trials(row.name if row else HOLDOUT)
        shares = read_shares(row.arms) if row else holdout_shares(self._settings.holdout)
        design = row.design if row else "random"
        left_out: dict[str, int] = {}
        for trial in trials:
            if trial.assignment != design:
                reason = LEFT_OUT[trial.assignment]
                left_out[reason] = left_out.get(reason, 0) + 1
        if row is not None and design == "paired":
            return analyse_paired(
                row.name,
                self._observe(trials, design),
                shares=shares,
                control=control_of(shares),
                metric=row.metric,
                horizon=row.horizon,
                left_out=left_out,
            )
        return analyse(
            row.name if row else "holdout",
            self._observe(trials),
            shares=shares,
            control=control_of(shares),
            metric=row.metric if row else "error_rate",
            left_out=left_out,
        )

    def _find(self, name: str | None) -> ExperimentRow | None:
        if name == "holdout":
            return None
        if name is not None:
            return self._ledger.experiment(name)
        return self._ledger.running() or next(iter(self._ledger.experiments()), None)

    def _observe(self, trials: Sequence[TrialRow], design: Design = "random") -> Sequence[Observation]:
        """The sessions that are compared, with what was known before each."""
        drawn = [trial for trial in trials if trial.assignment == design]
        facts = [read_facts(trial.task) for trial in drawn]
        added: dict[str, set[str]] = {}  # what sessions were shown beside their own seed, later or by what they started
        asked: dict[str, str] = {}  # and what they were asked, where that came later
        for trial in trials:
            if trial.assignment == "inherited" and trial.parent:
                added.setdefault(trial.parent, set()).update(self._templates(trial))
                asked.setdefault(trial.parent, read_facts(trial.task).get("task", ""))
        shown = [self._templates(trial) | added.get(trial.session, set()) for trial in drawn]
        of_arm: dict[str, set[str]] = {}
        for trial, names in zip(drawn, shown, strict=True):
            if trial.arm not in WORDS:
                of_arm.setdefault(trial.arm, set()).update(names)
        categories = self._categories()
        kinds = [
            one.get("category") or next((categories.get(n) for n in names), None)
            for one, names in zip(facts, shown, strict=True)
        ]
        wanted = [
            (trial.at, (one.get("project"), one.get("model"), kind))
            for trial, one, kind in zip(drawn, facts, kinds, strict=True)
        ]
        rates = expected_rate(self._ledger.history(), wanted)
        return [
            Observation(
                session=trial.session,
                arm=trial.arm,
                shares=read_shares(trial.propensities),
                measures=self._ledger.measures(trial),
                project=one.get("project"),
                task=one.get("task") or asked.get(trial.session) or None,
                category=kind,
                expected=rate,
                templates=tuple(sorted(names.union(*of_arm.values()) if trial.arm == COLD else names)),
            )
            for trial, one, names, kind, rate in zip(drawn, facts, shown, kinds, rates, strict=True)
        ]

    def _templates(self, trial: TrialRow) -> set[str]:
        return {f"{pick.template}@{pick.version}" for pick in self._ledger.picks(trial) or ()}

    def _categories(self) -> Mapping[str, str]:
        return {f"{row.name}@{row.version}": row.category for row in self._shelf.find()}

    # Before anything is started

    def power(self, *, cold_share: float = 0.5, power: float = 0.8) -> Power:
        """What one's own traffic can show, from the sessions that are remembered."""
        starts = [start for start in self._ledger.starts(WINDOW) if start[5]]
        if len(starts) < 10:
            raise Refused(f"{len(starts)} sessions with tool calls are too few to tell; ingest more: warmstart ingest")
        tasks = {task for _key, _at, _project, task, *_rest in starts}
        by_task = len(tasks) >= CLUSTERS  # as the comparison will be, with so many
        baseline = measure_baseline(
            [(errors, judged, (by_task and task) or key) for key, _at, _project, task, errors, judged in starts]
        )
        if baseline is None or not baseline.rate:
            raise Refused("there is no error in the sessions' first turns, so there is nothing that could fall")
        per_week = _per_week([at for _key, at, *_rest in starts if at is not None], self._clock())
        drops = []
        for drop in (0.1, 0.2, 0.3, 0.4, 0.5):
            needed = sessions_needed(baseline, drop, power=power, share_cold=cold_share)
            weeks = needed / per_week if needed is not None and per_week else None
            drops.append(Drop(drop=drop, sessions=needed, weeks=weeks))
        reach = []
        for weeks in (1, 2, 4, 8, 13, 26, 52):
            sessions = int(weeks * per_week)
            seen = detectable_drop(baseline, sessions, power=power, share_cold=cold_share) if sessions else None
            reach.append(Reach(weeks=weeks, sessions=sessions, drop=seen))
        return Power(
            sessions=len(starts),
            rate=baseline.rate,
            design_effect=baseline.design_effect,
            per_week=per_week,
            cold_share=cold_share,
            power=power,
            drops=tuple(drops),
            reach=tuple(reach),
        )

    def outlook(self, report: Report) -> str | None:
        """Where nothing is shown yet: what will be, and when. None where there is nothing to say."""
        if (
            report.design == "paired"
            or report.blocked
            or all(effect.verdict in ("better", "worse") for effect in report.effects)
        ):
            return None
        total = sum(arm.expected for arm in report.arms.values())
        share = report.arms[report.control].expected / total if total else 0.5
        try:
            power = self.power(cold_share=min(0.95, max(0.05, share)))
        except Refused:
            return None
        soon = next((reach for reach in power.reach if reach.drop is not None and reach.drop <= 0.5), None)
        return (
            tell_reach(soon) if soon else "with your traffic not even half of all errors would be missed within a year"
        )

    @property
    def _teacher(self) -> TemplateLibrary:
        return TemplateLibrary(self._store, self._settings, self._clock)


def deciding_metrics() -> Sequence[str]:
    """What an experiment can be decided by."""
    return [name for name, metric in METRICS.items() if metric.horizon is None]


def tell_reach(reach: Reach) -> str:
    """What can be seen after some weeks, in a sentence."""
    weeks = "1 week" if reach.weeks == 1 else f"{reach.weeks} weeks"
    return f"with your traffic you will be able to see a drop of {reach.drop or 0:.0%} in {weeks}"


def read_facts(body: str) -> dict[str, str]:
    """What was known of a task before its session."""
    try:
        return _facts.decode(body)
    except msgspec.DecodeError:
        return {}


def _per_week(starts: Sequence[float], now: float) -> float:
    """Of the last four weeks with anything in them: who comes back from holiday has traffic too."""
    if not starts:
        return 0.0
    last = min(now, max(starts))
    recent = [at for at in starts if at > last - 4 * _WEEK]
    span = max(_WEEK, min(4 * _WEEK, last - min(starts)))
    return len(recent) * _WEEK / span
