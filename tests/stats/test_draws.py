"""Bets against a draw: fair games if the draw is fair, and quick to win if it is not."""

from __future__ import annotations

import itertools
import random

import pytest

from warmstart.stats.draws import FEWEST, DrawBet, DrawTest, Thirds

HALVES = {"cold": 0.5, "warm": 0.5}
TENTH = {"cold": 0.1, "warm": 0.9}


def test_the_game_is_fair_whatever_the_shares_and_strata():
    """Over all sequences of ten draws, with shares that change on the way, the expected capital is exactly 1."""
    total = 0.0
    for arms in itertools.product(HALVES, repeat=10):
        bet, chance = DrawBet(), 1.0
        for place, arm in enumerate(arms):
            shares = TENTH if place % 3 else HALVES
            chance *= shares[arm]
            bet.add(place % 2, arm, shares)
        total += chance * bet.capital
    assert total == pytest.approx(1)


def test_three_arms_are_fair_too():
    shares = {"a": 0.2, "b": 0.3, "c": 0.5}
    total = 0.0
    for arms in itertools.product(shares, repeat=6):
        bet, chance = DrawBet(), 1.0
        for arm in arms:
            chance *= shares[arm]
            bet.add(None, arm, shares)
        total += chance * bet.capital
    assert total == pytest.approx(1)


def test_one_arm_that_never_comes_is_found():
    bet = DrawBet()
    for _session in range(30):
        bet.add(None, "warm", HALVES)
    assert bet.capital > 1_000_000


def test_an_arm_that_cannot_come_ends_the_game():
    bet = DrawBet()
    bet.add(None, "other", HALVES)
    assert bet.capital > 1e300


def test_a_single_arm_tells_nothing():
    bet = DrawBet()
    for _session in range(100):
        bet.add(None, "warm", {"warm": 1.0})
    assert bet.capital == pytest.approx(1)


def test_strata_that_cancel_in_total_are_found_by_name():
    dice = random.Random(1)
    test = DrawTest(("in total", "by project"))
    for _session in range(150):
        project = dice.randrange(2)
        arm = "warm" if dice.random() < (0.85, 0.15)[project] else "cold"
        test.add({"in total": None, "by project": project}, arm, HALVES)
    assert (test.most > 2_000, test.strongest) == (True, "by project")


def test_later_sessions_do_not_repair_a_broken_draw():
    test = DrawTest(("in total",))
    for place in range(600):
        arm = "warm" if place < 60 else ("cold", "warm")[place % 2]
        test.add({"in total": None}, arm, HALVES)
    assert test.most > 2_000


@pytest.mark.slow
def test_false_alarms_stay_rare_over_all_looks():
    """1,000 experiments of 300 sessions: the bound is 1 in 20 for a capital of 20."""
    alarms = 0
    for seed in range(1_000):
        dice = random.Random(seed)
        test = DrawTest(("in total", "by project"))
        for _session in range(300):
            arm = "warm" if dice.random() < 0.9 else "cold"
            test.add({"in total": None, "by project": dice.randrange(4)}, arm, TENTH)
        alarms += test.most >= 20
    assert alarms <= 50


def test_thirds_are_those_of_earlier_numbers():
    thirds = Thirds()
    assert [thirds.place(float(n % 10)) for n in range(FEWEST)] == [-1] * FEWEST
    assert [thirds.place(value) for value in (-1.0, 4.5, 20.0, None)] == [0, 1, 2, None]
