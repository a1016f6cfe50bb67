"""Read trials from the store as the sessions to compare, with what was known before each, and count those left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from warmstart.arms import ALIKE, COLD, WORDS, read_shares
from warmstart.model import Design
from warmstart.store import Store, TemplateStore, TrialRow, TrialStore
from warmstart.trials.closing import read_facts
from warmstart.trials.expected import expected_rate
from warmstart.trials.observation import Observation

LEFT_OUT = {
    "choice": "cold by choice",
    "inherited": "subagents, or continuations of another session",
    "unknown": "provisioned before arms were drawn",
    "random": "arm drawn at random, although this experiment is paired",
    "paired": "not drawn",
    "earlier": "had begun before Warmstart assigned an arm, so that they count as missing",
}


class Observed(Struct, frozen=True):
    """The sessions of an experiment that are compared, and how many are not, by reason."""

    sessions: Sequence[Observation]
    left_out: dict[str, int]


class TrialReader:
    """Reads trials as observations."""

    def __init__(self, store: Store) -> None:
        self._trials = TrialStore(store)
        self._templates = TemplateStore(store)

    def read(self, experiment: str, design: Design = "random") -> Observed:
        """Return the sessions of an experiment in the order in which they began."""
        trials = self._trials.trials(experiment)
        return Observed(self._observe(trials, design), count_left_out(trials, design))

    def _observe(self, trials: Sequence[TrialRow], design: Design) -> Sequence[Observation]:
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
        arms = [read_shares(trial.propensities) for trial in drawn]
        kinds = self._find_kinds(drawn, facts, arms)
        wanted = [
            (trial.at, (known.get("project"), known.get("model"), kind, known.get("scope")))
            for trial, known, kind in zip(drawn, facts, kinds, strict=True)
        ]
        rates = expected_rate(self._trials.history(), wanted)
        treated = self._trials.treated_sessions()
        return [
            Observation(
                session=trial.session,
                arm=trial.arm,
                shares=shares,
                measures=None if trial.left_out else self._trials.measures(trial),
                project=known.get("project"),
                agent=known.get("agent"),
                model=known.get("model"),
                task=known.get("task") or asked.get(trial.session) or None,
                category=kind,
                expected=rate,
                templates=tuple(sorted(names.union(*of_arm.values()) if trial.arm == COLD else names)),
                treated=trial.session in treated,
            )
            for trial, known, shares, names, kind, rate in zip(drawn, facts, arms, shown, kinds, rates, strict=True)
        ]

    def _find_kinds(
        self, trials: Sequence[TrialRow], facts: Sequence[Mapping[str, str]], shares: Sequence[Mapping[str, float]]
    ) -> list[str | None]:
        """Return each session's kind of work as it was known before the draw: named, or that of the chosen examples.

        The examples say nothing where the arm itself decides which ones are chosen.
        """
        categories = self._categories()
        kinds: list[str | None] = []
        for trial, known, arms in zip(trials, facts, shares, strict=True):
            names = sorted(self._shown_templates(trial)) if arms.keys() <= ALIKE else []
            kinds.append(known.get("category") or next((categories.get(name) for name in names), None))
        return kinds

    def _shown_templates(self, trial: TrialRow) -> set[str]:
        return {f"{pick.template}@{pick.version}" for pick in self._trials.picks(trial) or ()}

    def _categories(self) -> Mapping[str, str]:
        return {f"{row.name}@{row.version}": row.category for row in self._templates.find()}


def count_left_out(trials: Sequence[TrialRow], design: Design) -> dict[str, int]:
    """Return how many sessions are not compared, by reason. What adds to a session's own seed is no session."""
    counts: dict[str, int] = {}
    sessions = {trial.session for trial in trials}
    for trial in trials:
        is_drawn = trial.assignment == design
        if (is_drawn and trial.left_out is None) or (not is_drawn and _is_addition(trial, sessions)):
            continue
        reason = LEFT_OUT[trial.left_out if is_drawn and trial.left_out else trial.assignment]
        counts[reason] = counts.get(reason, 0) + 1
    return counts


def _is_addition(trial: TrialRow, sessions: Collection[str]) -> bool:
    """Return whether the trial only adds to a session's own seed, as a hook does at the first prompt (`SESSION#prompt`)."""
    own, mark, _part = trial.session.rpartition("#")
    return bool(mark) and trial.parent is not None and (own == trial.parent or own in sessions)
