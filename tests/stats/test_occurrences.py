"""Trials of two failure rates: exactness by enumeration, verdicts, intervals, and what is promised before a trial."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmstart.stats.designs import DesignPower, choose_fastest, choose_unit, plan_design
from warmstart.stats.occurrences import (
    HARMS,
    WORKS,
    ArmTally,
    Drawn,
    OccurrenceTest,
    TrialEvidence,
    count_shares,
    difference_interval,
    judge_evidence,
    occurrences_needed,
    pool_evidence,
    tally,
    weigh_occurrences,
)
from warmstart.stats.pooling import pool_partially

RATE = st.floats(0.01, 0.99)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("expected", [None, 0.2, 0.95])
def test_without_an_effect_the_mean_of_the_evidence_is_exactly_one(share, expected):
    """Over all arms that could have been drawn, whatever the outcomes were: no model of the failure rates is needed."""
    for outcomes in ((True, True, False), (False, False, False), (True, False, True)):
        means = [0.0, 0.0]
        for arms in itertools.product((True, False), repeat=len(outcomes)):
            chance = math.prod(share if withheld else 1 - share for withheld in arms)
            drawn = [Drawn(share, withheld, failed) for withheld, failed in zip(arms, outcomes, strict=True)]
            evidence = weigh_occurrences(drawn, expected)
            means[0] += chance * evidence.works
            means[1] += chance * evidence.harms
        assert means == pytest.approx([1.0, 1.0])


@given(shown=RATE, withheld=RATE, share=st.floats(0.05, 0.95))
def test_a_note_that_does_not_help_gains_no_evidence_on_average(shown, withheld, share):
    """Against "it does not lower failures": the mean of the next factor is at most 1 for every such pair of rates."""
    if shown < withheld:
        shown, withheld = withheld, shown
    mean = sum(
        (share if is_withheld else 1 - share)
        * (rate if failed else 1 - rate)
        * weigh_occurrences([Drawn(share, is_withheld, failed)]).works
        for is_withheld, rate in ((True, withheld), (False, shown))
        for failed in (True, False)
    )
    assert mean <= 1 + 1e-9


def test_one_by_one_is_the_same_as_all_at_once():
    chance = random.Random(7)
    drawn = [Drawn(chance.choice((0.1, 0.5)), chance.random() < 0.5, chance.random() < 0.6) for _ in range(50)]
    test = OccurrenceTest(0.8)
    for one in drawn:
        test.add(one)
        assert test.may_decide() or judge_evidence(test.weigh()) == "inconclusive"
    assert test.weigh().works == pytest.approx(weigh_occurrences(reversed(drawn), 0.8).works)
    with pytest.raises(ValueError, match="share"):
        test.add(Drawn(1.0, True, True))


def test_verdicts():
    assert 1 / WORKS + 1 / HARMS <= 0.05, "false verdicts over all looks"
    spares = [Drawn(0.5, n % 2 == 0, n % 2 == 0) for n in range(20)]
    assert judge_evidence(weigh_occurrences(spares)) == "works"
    assert judge_evidence(weigh_occurrences([one._replace(withheld=not one.withheld) for one in spares])) == "harms"
    assert judge_evidence(TrialEvidence()) == "inconclusive"


def test_trials_add_up_where_each_alone_says_nothing():
    trials = [weigh_occurrences([Drawn(0.5, n % 2 == 0, n % 2 == 0) for n in range(4)], 0.95) for _ in range(6)]
    assert {judge_evidence(trial) for trial in trials} == {"inconclusive"}
    assert judge_evidence(pool_evidence(trials)) == "works"
    assert pool_evidence([]).works == pytest.approx(1.0)


def test_interval():
    assert difference_interval(ArmTally(0, 0, 5, 5)) is None
    counts = tally([Drawn(0.5, n % 2 == 0, n % 2 == 0 or n % 4 == 1) for n in range(80)])
    assert counts == ArmTally(40, 20, 40, 40) and counts.difference == -0.5
    low, high = difference_interval(counts) or (0, 0)
    assert low < -0.5 < high < 0
    wide = difference_interval(ArmTally(4, 2, 4, 4))
    assert wide is not None and wide[0] < low and wide[1] > high
    assert difference_interval(ArmTally(1, 0, 1, 1)) == pytest.approx((-1.0, 0.9), abs=0.15)


def test_more_is_needed_for_less():
    assert occurrences_needed(0.95, 0.5, share=0.5) in range(20, 45)
    by_rate = [occurrences_needed(rate, 0.5, share=0.5) for rate in (0.95, 0.8, 0.6, 0.3, 0.1)]
    by_drop = [occurrences_needed(0.9, drop, share=0.5) for drop in (0.5, 0.3, 0.1)]
    by_share = [occurrences_needed(0.9, 0.5, share=share) for share in (0.5, 0.1, 0.02)]
    for numbers in (by_rate, by_drop, by_share):
        assert numbers == sorted(numbers, key=lambda number: number or 0) and len({*numbers}) == len(numbers)
    known, unknown = (occurrences_needed(0.9, 0.5, share=0.5, known=known) for known in (True, False))
    assert known is not None and unknown is not None and known < unknown
    assert occurrences_needed(0.0001, 0.1, share=0.01) is None
    for wrong in ({"rate": 0.0, "drop": 0.5}, {"rate": 0.5, "drop": 0.0}, {"rate": 0.5, "drop": 2.0}):
        with pytest.raises(ValueError, match="must lie"):
            occurrences_needed(**wrong, share=0.5)


def test_shares():
    observed, expected = count_shares([(0.1, True), (0.1, False), (0.5, False)])
    assert observed == {"shown": 2, "withheld": 1} and expected == pytest.approx({"shown": 2.3, "withheld": 0.7})


class TestPooling:
    def test_members_are_pulled_towards_each_other_the_less_they_know_themselves(self):
        pooled = pool_partially({"a": (-0.5, 0.05), "b": (-0.45, 0.05), "c": (0.3, 0.5), "d": (-0.4, 0.05)})
        assert pooled is not None and -0.5 < pooled.mean < -0.35
        assert abs(pooled.members["c"][0] - pooled.mean) < 0.2, "one that knows little says what the others say"
        assert abs(pooled.members["a"][0] + 0.5) < 0.06, "one that knows much keeps its own"

    def test_unlike_members_stay_apart(self):
        pooled = pool_partially({"a": (-0.9, 0.02), "b": (0.0, 0.02), "c": (0.9, 0.02)})
        assert pooled is not None and pooled.spread > 0.3
        assert [round(pooled.members[name][0], 1) for name in "abc"] == [-0.9, 0.0, 0.9]

    def test_bad_input(self):
        assert pool_partially({}) is None
        alone = pool_partially({"a": (-0.5, 0.1)})
        assert alone is not None and alone.members["a"][0] == pytest.approx(-0.5)
        with pytest.raises(ValueError, match="positive"):
            pool_partially({"a": (0.1, 0.0)})


class TestDesigns:
    def plan(self, design, weeks, assumes=""):
        made = plan_design(design, rate=0.9, share=0.5, per_week=1.0, power=0.8)
        units = next(one.units for one in made.drops if one.drop == 0.3) or 1
        paced = plan_design(design, rate=0.9, share=0.5, per_week=units / weeks, power=0.8)
        return DesignPower(
            **{name: getattr(paced, name) for name in paced.__struct_fields__ if name != "assumes"}, assumes=assumes
        )

    def test_sessions_stay_unless_only_occurrences_answer_within_a_year(self):
        slow, soon = self.plan("sessions", 320.0), self.plan("occurrence", 3.0)
        assert choose_unit([slow, soon]) == "occurrence" and choose_fastest([slow, soon]) == soon
        assert choose_unit([self.plan("sessions", 40.0), soon]) == "session"
        assert choose_unit([slow, self.plan("recurrence", 30.0), soon]) == "session"
        assert choose_unit([slow, self.plan("occurrence", 60.0)]) == "session", "neither answers in time"
        assert choose_unit([]) == "session" and choose_fastest([]) is None

    def test_a_design_with_another_setting_is_never_chosen(self):
        other = self.plan("occurrence, stopped", 1.0, assumes="level")
        assert choose_unit([self.plan("sessions", 99.0), other]) == "session" and choose_fastest([other]) is None

    def test_nothing_fails_and_nothing_comes(self):
        assert [one.units for one in plan_design("occurrence", rate=0, share=0.5, per_week=1, power=0.8).drops] == [
            None
        ] * 3
        still = plan_design("occurrence", rate=0.9, share=0.5, per_week=0, power=0.8)
        assert [one.weeks for one in still.drops] == [None] * 3
