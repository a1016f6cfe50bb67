"""The assignment of arms: stable, salted, with known probabilities."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmstart.arms import assign, control_of, draw, holdout_shares, parse_arms
from warmstart.errors import Refused

HALVES = {"cold": 0.5, "warm": 0.5}


def test_the_same_session_gets_the_same_arm_on_every_machine():
    """The numbers are fixed: if the hash changed, running experiments would assign other arms."""
    assert [round(draw(f"session-{n}"), 6) for n in range(3)] == [0.033032, 0.791109, 0.594582]
    code = "from warmstart.arms import draw; print(repr([draw(f's{n}') for n in range(5)]))"
    elsewhere = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in range(2)}
    assert elsewhere == {repr([draw(f"s{n}") for n in range(5)]) + "\n"}


def test_shares_are_kept():
    arms = [assign(f"session-{n}", holdout_shares(0.1)) for n in range(20_000)]
    assert 0.092 < arms.count("cold") / len(arms) < 0.108  # three and a half standard errors
    arms = [assign(f"session-{n}", {"a": 0.2, "b": 0.3, "c": 0.5}, "x") for n in range(20_000)]
    for name, share in (("a", 0.2), ("b", 0.3), ("c", 0.5)):
        assert abs(arms.count(name) / len(arms) - share) < 0.012


def test_another_salt_draws_anew():
    first = [assign(f"session-{n}", HALVES, "one") for n in range(2_000)]
    second = [assign(f"session-{n}", HALVES, "two") for n in range(2_000)]
    agree = sum(a == b for a, b in zip(first, second, strict=True))
    assert 880 < agree < 1_120


@given(st.text(max_size=40), st.text(max_size=10))
def test_any_name_gets_an_arm(session, salt):
    assert 0 <= draw(session, salt) < 1
    assert assign(session, HALVES, salt) in HALVES
    assert assign(session, {"warm": 1.0}, salt) == "warm"


def test_nothing_held_out_is_all_warm():
    assert holdout_shares(0) == {"warm": 1.0}


@pytest.mark.parametrize(
    ("text", "arms"),
    [
        ("cold=.5,warm=.5", HALVES),
        ("cold=0.1, warm=0.9", {"cold": 0.1, "warm": 0.9}),
        ("seed vs text", {"seed": 0.5, "text": 0.5}),
        ("cold,fix tests,deploy", {"cold": 1 / 3, "fix tests": 1 / 3, "deploy": 1 / 3}),
        ("cold=.5,a=b=.5", {"cold": 0.5, "a=b": 0.5}),
    ],
)
def test_arms_are_read(text, arms):
    assert parse_arms(text) == pytest.approx(arms)
    assert list(parse_arms(text)) == list(arms)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("warm", "at least two"),
        ("", "no name"),
        ("cold=.5,warm", "every arm a share"),
        ("cold=.5,warm=.6", "add up to 1.1;"),
        ("cold=1,warm=0", "between 0 and 1"),
        ("cold=nan,warm=.5", "between 0 and 1"),
        ("cold=half,warm=half", "not a number"),
        ("cold,cold", "twice"),
        ("=.5,warm=.5", "no name"),
        ("warm,seed", "the same arm"),
    ],
)
def test_arms_that_make_no_sense_are_refused(text, why):
    with pytest.raises(Refused, match=why):
        parse_arms(text)


def test_the_control_is_the_cold_arm_or_the_first():
    assert control_of({"warm": 0.5, "cold": 0.5}) == "cold"
    assert control_of({"seed": 0.5, "text": 0.5}) == "seed"
