"""What trials of notes have shown: occurrences at calls, and recurrences against cold sessions. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from msgspec import Struct, structs

from warmstart.notes.types import Note
from warmstart.stats.draws import QUICK, DrawBet, DrawTest
from warmstart.stats.many_arms import e_bh
from warmstart.stats.occurrences import (
    MISMATCH,
    WORKS,
    ArmTally,
    Drawn,
    OccurrenceVerdict,
    TrialEvidence,
    count_shares,
    difference_interval,
    judge_evidence,
    pool_evidence,
    tally,
    weigh_occurrences,
)
from warmstart.stats.pooling import pool_partially

RATE = 0.05  # false discovery rate among notes that are retired or marked as working
TrialUnit = Literal["occurrence", "recurrence"]

_ARMS = ("shown", "withheld")
_TOTAL = "in total"
_ALARMS = 2  # the alarms about the split and about what is missing share their probability


class TriedUnit(Struct, frozen=True, kw_only=True):
    """One occurrence of a note, or one session that could meet its cause."""

    note: str
    session: str
    share: float  # probability of being withheld, or cold
    withheld: bool
    failed: bool | None  # None: its transcript is missing
    worked: bool | None = None
    expected: float | None = None  # failure rate if withheld, as known before the draw
    briefed: bool = False  # the brief had named the note


class NoteTrial(Struct, frozen=True, kw_only=True):
    """What the trial of a note, or of several, has shown so far.

    `occurrence`: units are first calls in a session that the note would speak at. `recurrence`: units are sessions, and
    those withheld are the cold ones.
    """

    id: str  # of the note; "" for all notes together
    project: str = ""
    text: str = ""
    status: str = ""
    unit: TrialUnit = "occurrence"
    counts: ArmTally = ArmTally()
    missing: dict[str, int] = {}  # units without a transcript, by arm
    briefed: int = 0  # units whose brief had named the note
    difference: float | None = None  # failure rate with the note minus without it
    low: float | None = None  # its interval, valid at all looks while the rates stay the same
    high: float | None = None
    shrunk: float | None = None  # the difference pulled towards the other notes'
    works: float = 1.0  # evidence (e-value) that it lowers failures; 22.5 is enough
    harms: float = 1.0  # that it raises them; 200 is enough
    verdict: OccurrenceVerdict = "inconclusive"
    blocked: str | None = None  # why there is no verdict
    decision: Literal["keep", "retire", "works"] = "keep"


class TrialResults(Struct, frozen=True, kw_only=True):
    """All trials of one unit."""

    notes: tuple[NoteTrial, ...] = ()  # those with the most units first
    more: int = 0  # left out
    pooled: NoteTrial | None = None  # all notes together; None: nothing was drawn
    projects: dict[str, float] = {}  # difference by project, partially pooled


def weigh_trials(
    units: Sequence[TriedUnit], notes: Mapping[str, Note], unit: TrialUnit, pooled: Sequence[TriedUnit] | None = None
) -> TrialResults:
    """Return what the trials have shown. `pooled`: the units of all notes together, where sessions count once."""
    own: dict[str, list[TriedUnit]] = {}
    for one in units:
        own.setdefault(one.note, []).append(one)
    evidence = {name: _weigh(drawn) for name, drawn in own.items()}
    trials = {name: _describe(drawn, evidence[name], unit) for name, drawn in own.items()}
    trials = _shrink(_decide(trials, evidence)) if unit == "occurrence" else _shrink(trials)
    named = [_name(trial, notes[name]) if name in notes else trial for name, trial in trials.items()]
    together = pool_evidence(evidence.values()) if pooled is None else _weigh(pooled)
    everything = _describe(units if pooled is None else pooled, together, unit)
    return TrialResults(
        notes=tuple(sorted(named, key=lambda trial: (-_count(trial), trial.id))),
        pooled=structs.replace(everything, id="") if own else None,
        projects=_pool_projects(own, notes),
    )


def add_interval(trial: NoteTrial) -> NoteTrial:
    """Return a trial with the interval of its difference, which takes some milliseconds."""
    low, high = difference_interval(trial.counts) or (None, None)
    return structs.replace(trial, low=low, high=high)


def summarise_trials(results: TrialResults, most: int) -> TrialResults:
    """Return the trials with the most units, with intervals."""
    return structs.replace(
        results,
        notes=tuple(add_interval(trial) for trial in results.notes[:most]),
        more=max(0, len(results.notes) - most),
        pooled=add_interval(results.pooled) if results.pooled else None,
    )


def _count(trial: NoteTrial) -> int:
    return trial.counts.shown + trial.counts.withheld


def _list_known(units: Sequence[TriedUnit]) -> list[Drawn]:
    return [Drawn(one.share, one.withheld, one.failed) for one in units if one.failed is not None]


def _weigh(units: Sequence[TriedUnit]) -> TrialEvidence:
    """Weigh a trial. The rate to expect is that of its first unit: a later one would know the trial's own outcomes."""
    return weigh_occurrences(_list_known(units), units[0].expected if units else None)


def _name(trial: NoteTrial, note: Note) -> NoteTrial:
    return structs.replace(trial, project=note.project, text=note.text, status=note.status)


def _describe(units: Sequence[TriedUnit], evidence: TrialEvidence, unit: TrialUnit) -> NoteTrial:
    counts = tally(_list_known(units))
    blocked = find_block(units)
    verdict = judge_evidence(evidence)
    if verdict == "works" and blocked is None:
        blocked = find_harm(units)
    return NoteTrial(
        id=units[0].note if units else "",
        unit=unit,
        counts=counts,
        missing=_count_missing(units),
        briefed=sum(one.briefed for one in units),
        difference=counts.difference,
        works=evidence.works,
        harms=evidence.harms,
        verdict="inconclusive" if blocked else verdict,
        blocked=blocked,
    )


def _count_missing(units: Collection[TriedUnit]) -> dict[str, int]:
    lost = [one.withheld for one in units if one.failed is None]
    return {"shown": len(lost) - sum(lost), "withheld": sum(lost)}


def find_block(units: Sequence[TriedUnit]) -> str | None:
    """Return why a trial cannot be trusted: its split is not what was drawn, or outcomes are missing unevenly."""
    observed, expected = count_shares((one.share, one.withheld) for one in units)
    split, lost = DrawTest((_TOTAL,)), DrawBet(QUICK)
    for one in units:
        arm, shares = _ARMS[one.withheld], {"shown": 1 - one.share, "withheld": one.share}
        split.add({_TOTAL: None}, arm, shares)
        if one.failed is None:
            lost.add(None, arm, shares)
    if (chance := _ALARMS / split.most) < MISMATCH:
        return f"{observed['withheld']} were withheld instead of {expected['withheld']:.0f} (p = {chance:.1g})"
    if (chance := _ALARMS / lost.capital) < MISMATCH:
        missing = _count_missing(units)
        counts = " and ".join(f"{missing[arm]} of {observed[arm]} {arm}" for arm in observed)
        return f"outcomes are missing unevenly ({counts}; p = {chance:.1g})"
    return None


def find_harm(units: Sequence[TriedUnit]) -> str | None:
    """Return what speaks against a note that seems to work: fewer calls work after it."""
    known = [Drawn(one.share, one.withheld, not one.worked) for one in units if one.worked is not None]
    if weigh_occurrences(known).harms < WORKS:  # complains earlier than a verdict would
        return None
    counts = tally(known)
    shares = 1 - counts.shown_failed / max(1, counts.shown), 1 - counts.withheld_failed / max(1, counts.withheld)
    return f"fewer calls work after it ({shares[0]:.0%} against {shares[1]:.0%} of the occurrences)"


def _decide(trials: Mapping[str, NoteTrial], evidence: Mapping[str, TrialEvidence]) -> dict[str, NoteTrial]:
    """Return the trials with what follows for their notes, held to a false discovery rate."""
    open_ones = [name for name, trial in trials.items() if trial.blocked is None]
    bad = e_bh({name: evidence[name].harms for name in open_ones}, RATE)
    good = e_bh({name: evidence[name].works for name in open_ones}, RATE)
    decided = {}
    for name, trial in trials.items():
        verdict = trial.verdict
        if name in bad and name not in good and verdict == "harms":
            trial = structs.replace(trial, decision="retire")
        elif name in good and name not in bad and verdict == "works":
            trial = structs.replace(trial, decision="works")
        decided[name] = trial
    return decided


def estimate_difference(counts: ArmTally) -> tuple[float, float] | None:
    """Return the difference and its standard error, with half a failure and half a success added to each arm."""
    if not counts.shown or not counts.withheld:
        return None
    rates = [
        ((failed + 0.5) / (number + 1), number + 1)
        for failed, number in ((counts.shown_failed, counts.shown), (counts.withheld_failed, counts.withheld))
    ]
    return rates[0][0] - rates[1][0], math.sqrt(sum(rate * (1 - rate) / number for rate, number in rates))


def _shrink(trials: Mapping[str, NoteTrial]) -> dict[str, NoteTrial]:
    known = {name: estimate for name, trial in trials.items() if (estimate := estimate_difference(trial.counts))}
    pooled = pool_partially(known)
    members = pooled.members if pooled else {}
    return {
        name: structs.replace(trial, shrunk=members[name][0] if name in members else None)
        for name, trial in trials.items()
    }


def _pool_projects(own: Mapping[str, Sequence[TriedUnit]], notes: Mapping[str, Note]) -> dict[str, float]:
    projects: dict[str, list[Drawn]] = {}
    for name, units in own.items():
        project = notes[name].project if name in notes else ""
        projects.setdefault(project, []).extend(_list_known(units))
    known = {name: estimate for name, units in projects.items() if (estimate := estimate_difference(tally(units)))}
    pooled = pool_partially(known)
    return {name: value for name, (value, _se) in pooled.members.items()} if pooled else {}


def describe_trial_figures(trial: NoteTrial) -> str:
    """Return the figures behind a decision."""
    counts = trial.counts
    return (
        f"({counts.shown_failed} of {counts.shown} occurrences failed with it, {counts.withheld_failed} of "
        f"{counts.withheld} without it; evidence {max(trial.works, trial.harms):.3g})"
    )
