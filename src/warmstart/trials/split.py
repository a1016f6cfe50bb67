"""Check that arms can be compared: drawn as stated, alike in what was known before, and missing equally often. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from msgspec import Struct

from warmstart.stats.draws import QUICK, DrawBet, DrawTest, Thirds
from warmstart.stats.many_arms import missing_mismatch, ratio_mismatch
from warmstart.trials.observation import Observation

MISMATCH = 0.001  # probability of a false alarm, over all looks
PARTS = 2  # the two alarms (split and missing) share it

_TOTAL = "in total"
_STRATA = (_TOTAL, "by project", "by agent", "by kind of work", "by expected errors")


class ArmCounts(Struct, frozen=True, kw_only=True):
    """The sessions of an arm."""

    assigned: int
    expected: float  # number expected from the shares
    missing: int  # without a transcript
    seeded: int | None = None  # got a seed or advice; None: unknown


class Split(Struct, frozen=True, kw_only=True):
    """The sizes of the arms, and whether they are what was drawn."""

    arms: dict[str, ArmCounts]
    mismatch: float | None  # probability of such a split, or of arms this different, by chance
    missing_mismatch: float | None  # the same for the missing transcripts
    blocked: str | None  # why the comparison cannot be trusted


def check_split(observations: Sequence[Observation], shares: Mapping[str, float]) -> Split:
    """Check randomly assigned sessions, which must be in the order in which they began. Looking often does no harm."""
    arms = count_arms(observations, shares)
    if len(arms) < 2 or not observations:
        return Split(arms=arms, mismatch=None, missing_mismatch=None, blocked=None)
    test = DrawTest(_STRATA)
    lost = DrawBet(QUICK)
    for obs, strata in _find_strata(observations):
        test.add(strata, obs.arm, obs.shares)
        if obs.measures is None:
            lost.add(None, obs.arm, obs.shares)
    is_lost = any(arm.missing > 0 for arm in arms.values()) and any(arm.missing < arm.assigned for arm in arms.values())
    mismatch = min(1.0, PARTS / test.most)
    gone = min(1.0, PARTS / lost.capital) if is_lost else None
    return Split(
        arms=arms,
        mismatch=mismatch,
        missing_mismatch=gone,
        blocked=_explain_block(arms, mismatch, gone, test.strongest),
    )


def check_paired(observations: Sequence[Observation], shares: Mapping[str, float]) -> Split:
    """Check a paired experiment. A harness may run one arm after the other, so that only the totals say something."""
    arms = count_arms(observations, shares)
    observed = {name: arm.assigned for name, arm in arms.items()}
    mismatch = None
    if len(arms) > 1 and observations:
        mismatch = ratio_mismatch(observed, {name: arm.expected for name, arm in arms.items()})
    gone = missing_mismatch(
        {name: arm.assigned - arm.missing for name, arm in arms.items()},
        {name: arm.missing for name, arm in arms.items()},
    )
    return Split(
        arms=arms, mismatch=mismatch, missing_mismatch=gone, blocked=_explain_block(arms, mismatch, gone, _TOTAL)
    )


def count_arms(observations: Sequence[Observation], shares: Mapping[str, float]) -> dict[str, ArmCounts]:
    """Count the sessions of each arm."""
    known = {name for obs in observations for name in (obs.arm, *obs.shares)}
    names = [*shares, *sorted(known - shares.keys())]
    return {name: _count_arm(observations, name) for name in names}


def _count_arm(observations: Sequence[Observation], name: str) -> ArmCounts:
    own = [obs for obs in observations if obs.arm == name]
    known = [obs.treated for obs in own if obs.treated is not None]
    return ArmCounts(
        assigned=len(own),
        expected=sum(obs.shares.get(name, 0.0) for obs in observations),
        missing=sum(obs.measures is None for obs in own),
        seeded=sum(known) if len(known) == len(own) else None,
    )


def _find_strata(observations: Sequence[Observation]) -> Iterator[tuple[Observation, dict[str, Hashable]]]:
    """Yield each session with its strata. All of them were known before its arm was drawn."""
    thirds = Thirds()
    for obs in observations:
        known = (None, obs.project, obs.agent, obs.category, thirds.place(obs.expected))
        yield obs, dict(zip(_STRATA, known, strict=True))


def _explain_block(
    arms: Mapping[str, ArmCounts], mismatch: float | None, gone: float | None, strongest: str
) -> str | None:
    if mismatch is not None and mismatch < MISMATCH and strongest == _TOTAL:
        split = ", ".join(f"{name} {arm.assigned} instead of {arm.expected:.0f}" for name, arm in arms.items())
        return (
            f"the arms are not what was drawn ({split}; p = {mismatch:.1g}): find the cause before trusting any figure"
        )
    if mismatch is not None and mismatch < MISMATCH:
        return (
            f"the arms are not what was drawn {strongest} (p = {mismatch:.1g}): they hold different work, "
            "so find the cause before trusting any figure"
        )
    if gone is not None and gone < MISMATCH:
        split = ", ".join(f"{name} {arm.missing} of {arm.assigned}" for name, arm in arms.items())
        return f"transcripts are missing more in one arm ({split}; p = {gone:.1g}): the rest cannot be compared"
    return None
