"""Checks over many arms."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmstart.stats.many_arms import (
    best_arm_probabilities,
    chi_square_tail,
    e_bh,
    missing_mismatch,
    ratio_mismatch,
    shrink,
    with_floor,
)


class TestSplit:
    @pytest.mark.parametrize(
        ("value", "degrees", "tail"),
        [
            (3.841459, 1, 0.05),
            (10.827566, 1, 0.001),
            (5.991465, 2, 0.05),
            (11.344867, 3, 0.01),
            (18.307038, 10, 0.05),
            (0.0, 4, 1.0),
        ],
    )
    def test_chi_square(self, value, degrees, tail):
        assert chi_square_tail(value, degrees) == pytest.approx(tail, rel=1e-5)

    def test_shares(self):
        assert ratio_mismatch({"cold": 100, "warm": 900}, {"cold": 0.1, "warm": 0.9}) == 1
        assert ratio_mismatch({"cold": 100, "warm": 100}, {"cold": 1, "warm": 1}) == 1
        assert ratio_mismatch({"cold": 440, "warm": 560}, {"cold": 0.5, "warm": 0.5}) == pytest.approx(
            1.48e-4, rel=0.01
        )

    def test_few_sessions_are_tested_exactly(self):
        assert ratio_mismatch({"cold": 0, "warm": 9}, {"cold": 0.5, "warm": 0.5}) == pytest.approx(2 / 2**9)
        assert ratio_mismatch({"warm": 10}, {"cold": 0.1, "warm": 0.9}) == pytest.approx(
            0.9**10 + (1 - 0.9**10 - 10 * 0.1 * 0.9**9)
        )
        assert ratio_mismatch({"a": 3, "b": 0, "c": 0}, {"a": 1, "b": 1, "c": 1}) <= 0.2

    def test_an_arm_that_should_not_be_there(self):
        assert ratio_mismatch({"cold": 5, "other": 1}, {"cold": 1, "other": 0}) == 0
        assert ratio_mismatch({"cold": 5, "other": 1}, {"cold": 1}) == 0

    def test_nothing_to_test(self):
        assert ratio_mismatch({}, {"cold": 0.5, "warm": 0.5}) == 1
        assert ratio_mismatch({"cold": 5}, {"cold": 1}) == 1

    @pytest.mark.parametrize("bad", [{}, {"a": 0.0}, {"a": -1.0, "b": 2.0}, {"a": math.nan}])
    def test_impossible_shares(self, bad):
        with pytest.raises(ValueError, match="expected shares"):
            ratio_mismatch({"a": 1}, bad)

    def test_false_alarms_are_as_rare_as_said(self):
        chance = random.Random(1)
        alarms = 0
        for _ in range(2_000):
            cold = sum(chance.random() < 0.1 for _ in range(60))
            alarms += ratio_mismatch({"cold": cold, "warm": 60 - cold}, {"cold": 0.1, "warm": 0.9}) < 0.05
        assert alarms <= 125

    @given(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 60), min_size=2))
    def test_is_a_probability(self, counts):
        assert 0 <= ratio_mismatch(counts, dict.fromkeys(counts, 1.0)) <= 1 + 1e-12
        assert 0 <= (missing_mismatch(counts, dict.fromkeys(counts, 3)) or 0) <= 1 + 1e-12


class TestMissing:
    def test_as_often_in_both(self):
        assert missing_mismatch({"cold": 90, "warm": 900}, {"cold": 10, "warm": 100}) == 1

    def test_more_in_one(self):
        found = missing_mismatch({"cold": 80, "warm": 99}, {"cold": 20, "warm": 1})
        assert found is not None
        assert found < 1e-4

    def test_fisher_for_few(self):
        """The lady tasting tea: 3 of 4 right."""
        assert missing_mismatch({"milk": 1, "tea": 3}, {"milk": 3, "tea": 1}) == pytest.approx(34 / 70)

    def test_nothing_to_compare(self):
        assert missing_mismatch({"cold": 10, "warm": 10}, {}) is None
        assert missing_mismatch({}, {"cold": 3, "warm": 4}) is None
        assert missing_mismatch({"cold": 10}, {"cold": 3}) is None
        assert missing_mismatch({}, {}) is None


class TestDiscoveries:
    def test_example(self):
        """Four arms at 5 %: bars 80, 40, 26.7 and 20."""
        assert e_bh({"a": 100, "b": 45, "c": 20, "d": 1}) == {"a", "b"}
        assert e_bh({"a": 45, "b": 45, "c": 20, "d": 1}) == {"a", "b"}
        assert e_bh({"a": 70, "b": 30, "c": 25, "d": 21}) == {"a", "b", "c", "d"}
        assert e_bh({"a": 70, "b": 30, "c": 20, "d": 1}) == set()
        assert e_bh({"a": 20.0}) == {"a"}
        assert e_bh({}) == set()

    def test_no_evidence_is_not_negative(self):
        with pytest.raises(ValueError, match="not be negative"):
            e_bh({"a": math.nan})

    @given(st.dictionaries(st.text(max_size=3), st.floats(0, 1e6)), st.floats(0.01, 0.3))
    def test_the_found_ones_are_the_largest(self, values, alpha):
        found = e_bh(values, alpha)
        if found:
            worst = min(values[arm] for arm in found)
            assert worst >= len(values) / (len(found) * alpha) - 1e-9
            assert all(values[arm] < worst for arm in values if arm not in found)


class TestShrink:
    def test_noise_is_drawn_to_0_and_signal_is_kept(self):
        noise = shrink(
            {name: (value, 1.0) for name, value in zip("abcdef", (1.1, -0.8, 0.3, -1.2, 0.6, -0.1), strict=True)}
        )
        assert abs(noise["a"][0]) < 0.45
        signal = shrink(
            {name: (value, 0.1) for name, value in zip("abcdef", (1.1, -0.8, 0.3, -1.2, 0.6, -0.1), strict=True)}
        )
        assert signal["a"][0] == pytest.approx(1.1, rel=0.05)

    def test_keeps_sign_and_order_and_never_grows(self):
        found = shrink({"a": (-0.3, 0.1), "b": (-0.1, 0.1), "c": (0.2, 0.1), "alone": (-0.3, 0.5)})
        assert found["a"][0] < found["b"][0] < 0 < found["c"][0]
        assert abs(found["alone"][0]) < abs(found["a"][0]) < 0.3
        assert all(se > 0 for _, se in found.values())

    def test_against_the_winners_curse(self):
        chance = random.Random(2)
        bare = shrunken = 0.0
        for _ in range(100):
            truth = {str(n): chance.gauss(0, 0.5) for n in range(12)}
            seen = {arm: (value + chance.gauss(0, 1), 1.0) for arm, value in truth.items()}
            best = min(seen, key=lambda arm: seen[arm][0])
            bare += (seen[best][0] - truth[best]) ** 2
            shrunken += (shrink(seen)[best][0] - truth[best]) ** 2
        assert shrunken < 0.4 * bare

    def test_edges(self):
        assert shrink({}) == {}
        value, se = shrink({"a": (0.0, 1.0)})["a"]
        assert value == 0
        assert 0 < se <= 1
        with pytest.raises(ValueError, match="standard errors positive"):
            shrink({"a": (1.0, 0.0)})


class TestAllocation:
    def test_two_arms(self):
        """P(X < Y) for two normals is known: Phi(1 / sqrt 2)."""
        found = best_arm_probabilities({"a": (0.0, 1.0), "b": (1.0, 1.0)})
        assert found["a"] == pytest.approx(0.7602, abs=0.002)
        assert sum(found.values()) == pytest.approx(1)
        assert best_arm_probabilities({"a": (0.0, 1.0), "b": (1.0, 1.0)}, lower_is_better=False)["b"] == pytest.approx(
            found["a"]
        )

    def test_certain_arms(self):
        assert best_arm_probabilities({"a": (0.0, 0.0), "b": (1.0, 0.0)}) == {"a": 1, "b": 0}
        assert best_arm_probabilities({"a": (0.0, 0.0), "b": (0.0, 0.0)}) == {"a": 0.5, "b": 0.5}
        assert best_arm_probabilities({"a": (3.0, 0.5)}) == {"a": 1}

    def test_floor(self):
        assert with_floor({"cold": 0.02, "a": 0.48, "b": 0.5}, "cold", 0.1) == pytest.approx(
            {"cold": 0.1, "a": 0.48 * 0.9 / 0.98, "b": 0.5 * 0.9 / 0.98}
        )
        assert with_floor({"cold": 0.4, "a": 0.6}, "cold", 0.1) == {"cold": 0.4, "a": 0.6}
        assert with_floor({"a": 1.0}, "cold", 0.1) == pytest.approx({"a": 0.9, "cold": 0.1})
        assert with_floor({"cold": 0.0, "a": 0.0}, "cold", 0.1) == {"cold": 1.0, "a": 0.0}
        with pytest.raises(ValueError, match="floor"):
            with_floor({"a": 1.0}, "a", 1.5)

    @given(st.dictionaries(st.sampled_from("abcd"), st.tuples(st.floats(-5, 5), st.floats(0, 3)), min_size=1))
    def test_are_probabilities(self, arms):
        found = best_arm_probabilities(arms)
        assert sum(found.values()) == pytest.approx(1)
        assert min(found.values()) >= 0
