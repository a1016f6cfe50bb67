"""Waits with censoring."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmstart.stats.compare import decide
from warmstart.stats.survival import Wait, kaplan_meier, pseudo_values, restricted_mean_difference

# Remission in weeks under 6-MP (Freireich et al. 1963), in every textbook on survival.
FREIREICH = [Wait(t, True) for t in (6, 6, 6, 7, 10, 13, 16, 22, 23)] + [
    Wait(t, False) for t in (6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35)
]
waits = st.lists(st.builds(Wait, st.integers(0, 20).map(float), st.booleans()), min_size=1, max_size=40)


class TestCurve:
    def test_textbook(self):
        steps = kaplan_meier(FREIREICH)
        assert [(step.time, step.at_risk, round(step.survival, 3)) for step in steps] == [
            (6, 21, 0.857),
            (7, 17, 0.807),
            (10, 15, 0.753),
            (13, 12, 0.690),
            (16, 11, 0.627),
            (22, 7, 0.538),
            (23, 6, 0.448),
        ]

    def test_nothing_happened(self):
        assert kaplan_meier([Wait(3, False), Wait(5, False)]) == []
        assert kaplan_meier([]) == []

    @pytest.mark.slow
    @given(waits)
    def test_falls_from_1_to_no_less_than_0(self, found):
        survival = [1.0] + [step.survival for step in kaplan_meier(found)]
        assert survival == sorted(survival, reverse=True)
        assert survival[-1] >= 0

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
    def test_impossible_times(self, bad):
        with pytest.raises(ValueError, match="waiting times"):
            kaplan_meier([Wait(bad, True)])


def restricted_mean(found: list[Wait], horizon: float) -> tuple[float, float] | None:
    """The mean of the pseudo-values and its standard error."""
    values = pseudo_values(found, horizon)
    if values is None:
        return None
    return statistics.fmean(values), statistics.pstdev(values) / math.sqrt(len(values))


class TestRestrictedMean:
    def test_without_censoring_is_the_mean_of_shortened_waits(self):
        times = [1.0, 2, 2, 5, 9, 12]
        found = restricted_mean([Wait(t, True) for t in times], 8)
        shortened = [min(t, 8) for t in times]
        assert found is not None
        assert found[0] == pytest.approx(statistics.fmean(shortened))
        assert found[1] == pytest.approx(statistics.pstdev(shortened) / math.sqrt(6))
        assert pseudo_values([Wait(t, True) for t in times], 8) == pytest.approx(shortened)

    def test_textbook_and_greenwood(self):
        """By hand: the area under the steps, and the sum of squared areas ahead times d / (n (n - d))."""
        steps = [step for step in kaplan_meier(FREIREICH) if step.time < 30]
        edges = [(0.0, 1.0)] + [(step.time, step.survival) for step in steps] + [(30.0, 0.0)]
        areas = [s * (edges[at + 1][0] - t) for at, (t, s) in enumerate(edges[:-1])]
        variance = sum(
            sum(areas[at + 1 :]) ** 2 * step.happened / (step.at_risk * (step.at_risk - step.happened))
            for at, step in enumerate(steps)
        )
        found = restricted_mean(FREIREICH, 30)
        assert found is not None
        assert found[0] == pytest.approx(sum(areas))
        assert found[1] == pytest.approx(math.sqrt(variance))

    def test_beyond_what_was_watched_is_not_defined(self):
        assert restricted_mean(FREIREICH, 36) is None
        assert restricted_mean(FREIREICH, 35) is not None
        assert restricted_mean([], 5) is None
        assert restricted_mean([Wait(1, True)], 0) is None

    def test_nobody_left_waiting(self):
        assert restricted_mean([Wait(2, False), Wait(4, True)], 100) == pytest.approx((4, 0))

    @pytest.mark.slow
    @given(waits, st.integers(1, 20))
    def test_is_between_0_and_the_horizon(self, found, horizon):
        mean = restricted_mean(found, horizon)
        if mean is not None:
            assert -1e-9 <= mean[0] <= horizon + 1e-9
            assert mean[1] >= 0


class TestDifference:
    def draw(self, seed: int, scale: float, n: int = 200) -> list[Wait]:
        chance = random.Random(seed)
        pairs = [(chance.expovariate(1 / scale), chance.expovariate(1 / 20)) for _ in range(n)]
        return [Wait(min(pair), pair[0] <= pair[1]) for pair in pairs]

    def test_a_shorter_wait_is_found(self):
        found = restricted_mean_difference(self.draw(1, 4), self.draw(2, 12), 15)
        assert found is not None
        assert decide(found) == "better"
        truth = 4 * (1 - math.exp(-15 / 4)) - 12 * (1 - math.exp(-15 / 12))
        assert found.low is not None and found.high is not None
        assert found.low < truth < found.high

    def test_the_same_wait_is_not(self):
        found = restricted_mean_difference(self.draw(3, 8), self.draw(4, 8), 15)
        assert found is not None
        assert decide(found) == "inconclusive"

    def test_an_arm_not_watched_long_enough(self):
        assert restricted_mean_difference(self.draw(1, 4), [Wait(1, False)] * 50, 15) is None
        assert restricted_mean_difference([], self.draw(1, 4), 15) is None

    def test_clusters_are_shared_between_arms(self):
        one = [wait._replace(cluster=n % 20) for n, wait in enumerate(self.draw(5, 8))]
        other = [wait._replace(cluster=n % 20) for n, wait in enumerate(self.draw(6, 8))]
        found = restricted_mean_difference(one, other, 15)
        assert found is not None
        assert found.clusters == 20
