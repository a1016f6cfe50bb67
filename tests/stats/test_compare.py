"""Two arms compared: known values, invariances, and whether peeking is really safe."""

from __future__ import annotations

import math
import os
import random
import statistics
from collections.abc import Iterable
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warmstart.stats.compare import MIN_CLUSTERS, Comparison, Estimate, decide, plain_interval, solve_symmetric
from warmstart.stats.sequence import MeasuredDifference, find_boundary, look, narrow, widen

FULL = os.environ.get("WARMSTART_FULL") == "1"


class Row(NamedTuple):
    treated: bool
    numerator: float
    denominator: float
    cluster: int


def compare(rows: Iterable[Row]) -> Comparison:
    comparison = Comparison()
    for row in rows:
        comparison.add(row.treated, row.numerator, row.denominator, cluster=row.cluster)
    return comparison


def sessions(
    seed: int, n: int, *, rates: tuple[float, float] = (0.3, 0.3), share: float = 0.5, size: int = 1
) -> list[Row]:
    """Clusters of `size` sessions with calls of many lengths; rates are of treatment and control."""
    chance = random.Random(seed)
    rows = []
    for number in range(n):
        treated = chance.random() < share
        calls = 1 + int(chance.lognormvariate(1.8, 0.7))
        error = chance.betavariate(4 * rates[not treated], 4 * (1 - rates[not treated]))
        rows.append(Row(treated, sum(chance.random() < error for _ in range(calls)), calls, number // size))
    return rows


def brute_force(rows: list[Row]) -> tuple[float, float]:
    """Difference and its standard error, straight from the delta method: the sum over clusters of squared influences."""
    sums = {treated: [sum(r[at] for r in rows if r.treated == treated) for at in (1, 2)] for treated in (True, False)}
    ratios = {treated: y / d for treated, (y, d) in sums.items()}
    counts = {treated: len({r.cluster for r in rows if r.treated == treated}) for treated in (True, False)}
    influences: dict[int, float] = {}
    for row in rows:
        treated = row.treated
        scale = math.sqrt(counts[treated] / (counts[treated] - 1)) / sums[treated][1] * (1 if treated else -1)
        influences[row.cluster] = influences.get(row.cluster, 0.0) + scale * (
            row.numerator - ratios[treated] * row.denominator
        )
    return ratios[True] - ratios[False], math.sqrt(sum(value**2 for value in influences.values()))


class TestKnownValues:
    @pytest.mark.parametrize("size", [1, 3, 10])
    def test_delta_method(self, size):
        rows = sessions(1, 300, size=size)
        found = compare(rows).estimate()
        difference, se = brute_force(rows)
        assert found.difference == pytest.approx(difference)
        assert found.plain_se == pytest.approx(se)
        assert found.se is not None and found.se >= se

    def test_welch_for_plain_means(self):
        chance = random.Random(2)
        values = {treated: [chance.gauss(treated, 1 + treated) for _ in range(40)] for treated in (True, False)}
        comparison = Comparison()
        for treated, found in values.items():
            for number, value in enumerate(found):
                comparison.add(treated, value, cluster=(treated, number))
        found = comparison.estimate()
        se = math.sqrt(sum(statistics.variance(values[treated]) / 40 for treated in (True, False)))
        assert found.plain_se == pytest.approx(se)
        assert found.difference == pytest.approx(statistics.fmean(values[True]) - statistics.fmean(values[False]))

    def test_bootstrap_over_clusters_agrees(self):
        rows = sessions(3, 400, size=4)
        groups: dict[int, list[Row]] = {}
        for row in rows:
            groups.setdefault(row.cluster, []).append(row)
        chance = random.Random(4)
        means = []
        for _ in range(400):
            drawn = [row for _ in groups for row in groups[chance.randrange(len(groups))]]
            ratios = [
                sum(r.numerator for r in drawn if r.treated == t) / sum(r.denominator for r in drawn if r.treated == t)
                for t in (True, False)
            ]
            means.append(ratios[0] - ratios[1])
        assert compare(rows).estimate().plain_se == pytest.approx(statistics.stdev(means), rel=0.15)

    def test_design_effect_of_whole_clusters(self):
        """Each session counted four times: a design effect of four, and the standard error of counting it once."""
        once = [row._replace(cluster=n) for n, row in enumerate(sessions(5, 300))]
        four = compare([row for row in once for _ in range(4)]).estimate()
        assert four.design_effect == pytest.approx(4)
        assert four.plain_se == pytest.approx(compare(once).estimate().plain_se)

    def test_a_level_that_both_arms_share_cancels(self):
        chance = random.Random(6)
        shared, own = Comparison(), Comparison()
        for task in range(60):
            level = chance.gauss(0, 10)
            for treated in (True, False) * 2:
                value = level + chance.gauss(0, 1)
                shared.add(treated, value, cluster=task)
                own.add(treated, value, cluster=(task, treated))
        assert shared.estimate().plain_se < 0.3 * own.estimate().plain_se

    def test_weights_undo_a_changed_share(self):
        """For the ratio, a weight of 2 equals counting the session twice."""
        comparison, twice = Comparison(), Comparison()
        for row in sessions(7, 200):
            comparison.add(
                row.treated, row.numerator, row.denominator, cluster=row.cluster, weight=2.0 - row.cluster % 2
            )
            for _ in range(2 - row.cluster % 2):
                twice.add(row.treated, row.numerator, row.denominator, cluster=row.cluster)
        assert comparison.estimate().difference == pytest.approx(twice.estimate().difference)
        assert comparison.estimate().plain_se == pytest.approx(twice.estimate().plain_se)

    def test_t_values(self):
        assert widen(1.959964, 10) == pytest.approx(2.228, abs=0.005)
        assert widen(1.959964, 5) == pytest.approx(2.571, abs=0.01)
        assert widen(3.0, 1e9) == pytest.approx(3.0)
        assert narrow(widen(3.2, 7), 7) == pytest.approx(3.2)

    def test_boundary_of_the_normal_mixture(self):
        assert min(find_boundary(n * n / (2 * n)) for n in range(20, 3_000)) == pytest.approx(3.035, abs=0.005)
        assert find_boundary(150) < 3.05
        assert find_boundary(10) > 3.3


class TestCovariates:
    def fill(self, rows: int, scale: float = 1.0, offset: float = 0.0, effect: float = 0.0) -> Comparison:
        chance = random.Random(8)
        comparison = Comparison(3)
        for number in range(rows):
            known, treated = chance.gauss(0, 1), chance.random() < 0.5
            value = known + chance.gauss(0, 0.5) + effect * treated
            shown = known * scale + offset
            comparison.add(treated, value, cluster=number, covariates=(shown, 2 * shown, 5.0))
        return comparison

    def test_take_away_what_they_explain(self):
        found = self.fill(600, effect=-0.3).estimate()
        assert found.adjusted
        assert found.variance_reduction == pytest.approx(0.8, abs=0.05)
        assert found.difference == pytest.approx(-0.3, abs=0.15)
        assert decide(found) == "better"

    def test_neither_scale_nor_a_far_origin_matters(self):
        found, moved = self.fill(600).estimate(), self.fill(600, scale=1e-3, offset=1e7).estimate()
        assert moved.difference == pytest.approx(found.difference, abs=1e-6)
        assert moved.se == pytest.approx(found.se, rel=1e-3)

    def test_are_left_alone_with_few_clusters(self):
        found = self.fill(80).estimate()
        assert not found.adjusted
        assert found.variance_reduction is None
        assert found.value_treatment is not None and found.value_control is not None
        assert found.difference == found.value_treatment - found.value_control

    def test_collinear_columns_get_no_weight(self):
        assert solve_symmetric([[4.0], [8.0, 16.0], [0.0, 0.0, 0.0]], [2.0, 4.0, 0.0]) == [0.5, 0.0, 0.0]
        assert solve_symmetric([[2.0], [1.0, 3.0]], [5.0, 10.0]) == pytest.approx([1.0, 3.0])

    def test_must_be_as_many_as_said(self):
        with pytest.raises(ValueError, match="0 covariates given, 2 expected"):
            Comparison(2).add(True, 1, cluster=0)


class TestUndefined:
    def test_nothing_at_all(self):
        found = Comparison().estimate()
        assert (found.value_treatment, found.difference, found.se, found.low, found.high) == (None,) * 5
        assert (found.e_value, found.e_below, found.e_above) == (1, 1, 1)
        assert decide(found) == "too_few"
        assert plain_interval(found) is None

    def test_an_empty_arm(self):
        found = compare([row._replace(treated=True) for row in sessions(1, 50)]).estimate()
        assert found.value_treatment is not None
        assert (found.value_control, found.difference, found.low) == (None, None, None)

    def test_no_calls_in_an_arm(self):
        rows = [row if row.treated else row._replace(numerator=0, denominator=0) for row in sessions(1, 100)]
        assert compare(rows).estimate().difference is None

    def test_one_cluster(self):
        found = compare([row._replace(cluster=1) for row in sessions(1, 200)]).estimate()
        assert found.difference is not None
        assert found.low is None

    def test_few_clusters_are_too_few(self):
        rows = [row._replace(cluster=row.cluster % (MIN_CLUSTERS - 1)) for row in sessions(1, 500, rates=(0.1, 0.5))]
        assert decide(compare(rows).estimate()) == "too_few"

    def test_no_variance(self):
        found = compare([Row(bool(n % 2), 1, 2, n) for n in range(200)]).estimate()
        assert (found.difference, found.se, found.low) == (0, None, None)
        assert plain_interval(found) is None

    @pytest.mark.slow
    @given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=50, max_size=60))
    def test_arms_that_are_the_same_in_every_cluster(self, pairs):
        rows = [Row(treated, y / 7, d / 3, n) for n, (y, d) in enumerate(pairs) for treated in (True, False)]
        found = compare(rows).estimate()
        assert found.difference == pytest.approx(0, abs=1e-12)
        assert (found.plain_se, found.se, found.low) == (None, None, None)

    def test_no_error_anywhere(self):
        found = compare([Row(bool(n % 2), 0, 1 + n % 7, n) for n in range(500)]).estimate()
        assert found.relative is None
        assert decide(found) == "too_few"

    def test_an_arm_without_errors_is_not_certain(self):
        rows = [row._replace(numerator=0) if row.treated else row for row in sessions(9, 400)]
        found = compare(rows).estimate()
        assert decide(found) == "better"
        assert found.se is not None and found.plain_se is not None and found.se > 1.1 * found.plain_se

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_infinite_numbers_are_refused(self, bad):
        comparison = Comparison(1)
        with pytest.raises(ValueError, match="finite"):
            comparison.add(True, bad, cluster=0, covariates=(1,))
        with pytest.raises(ValueError, match="finite"):
            comparison.add(True, 1, bad, cluster=0, covariates=(1,))
        with pytest.raises(ValueError, match="finite"):
            comparison.add(True, 1, weight=bad, cluster=0, covariates=(1,))
        with pytest.raises(ValueError, match="finite"):
            comparison.add(True, 1, cluster=0, covariates=(bad,))
        assert comparison.estimate().n_treatment == 0

    def test_negative_denominators_and_weights_are_refused(self):
        with pytest.raises(ValueError, match="negative"):
            Comparison().add(True, 1, -1, cluster=0)
        with pytest.raises(ValueError, match="positive"):
            Comparison().add(True, 1, cluster=0, weight=0)


class TestDecide:
    @pytest.mark.parametrize(
        ("rates", "lower", "said"),
        [
            ((0.15, 0.4), True, "better"),
            ((0.15, 0.4), False, "worse"),
            ((0.4, 0.15), True, "worse"),
            ((0.4, 0.15), False, "better"),
            ((0.3, 0.3), True, "inconclusive"),
        ],
    )
    def test_words(self, rates, lower, said):
        assert decide(compare(sessions(10, 400, rates=rates)).estimate(), lower_is_better=lower) == said

    def test_few_sessions(self):
        assert decide(compare(sessions(10, 30, rates=(0.05, 0.6))).estimate()) == "too_few"


row_lists = st.lists(
    st.builds(
        Row,
        st.booleans(),
        st.integers(0, 5).map(float),
        st.integers(0, 9).map(float),
        st.integers(0, 30),
    ),
    max_size=120,
)


def close(one: float | None, other: float | None, scale: float = 1.0) -> bool:
    if one is None or other is None:
        return one is other
    return one * scale == pytest.approx(other, rel=1e-6, abs=1e-9 * scale)


class TestProperties:
    @given(row_lists)
    def test_swapping_the_arms_negates(self, rows):
        found = compare(rows).estimate()
        other = compare([row._replace(treated=not row.treated) for row in rows]).estimate()
        assert close(found.difference, other.difference, -1)
        assert close(found.se, other.se)
        assert close(found.low, other.high, -1)
        assert close(found.high, other.low, -1)
        assert close(found.e_below, other.e_above)

    @given(row_lists, st.randoms(use_true_random=False))
    def test_the_order_does_not_matter(self, rows, chance):
        mixed = chance.sample(rows, len(rows))
        found, other = compare(rows).estimate(), compare(mixed).estimate()
        for name in ("difference", "se", "low", "high", "design_effect"):
            assert close(getattr(found, name), getattr(other, name)), name

    @given(row_lists, st.sampled_from([0.01, 3.0, 1000.0]))
    def test_units_do_not_matter(self, rows, unit):
        found = compare(rows).estimate()
        other = compare([row._replace(numerator=row.numerator * unit) for row in rows]).estimate()
        assert close(found.difference, other.difference, unit)
        assert close(found.low, other.low, unit)
        assert close(found.relative, other.relative)
        assert found.e_value == pytest.approx(other.e_value)

    @given(row_lists)
    def test_intervals_are_in_order_and_hold_the_estimate(self, rows):
        found = compare(rows).estimate()
        assert (found.low is None) == (found.high is None)
        if found.low is not None and found.high is not None and found.difference is not None:
            assert found.low < found.difference < found.high
            plain = plain_interval(found)
            assert plain is None or (found.low < plain[0] and plain[1] < found.high)
        assert found.e_value >= 0

    @given(
        st.floats(-50, 50),
        st.floats(1e-6, 10),
        st.floats(5, 1e4),
        st.floats(5, 1e5),
        st.floats(-1, 1),
        st.floats(0.001, 0.3),
    )
    def test_e_values_and_intervals_say_the_same(self, difference, se, information, degrees, skew, alpha):
        seen = look(MeasuredDifference(difference, se, information, degrees, skew), alpha)
        assert seen.low <= difference <= seen.high
        edge = min(abs(seen.low), abs(seen.high)) / se
        if edge > 1e-6:
            assert (seen.low > 0 or seen.high < 0) == (seen.e_value > 1 / alpha)
        assert seen.e_value == pytest.approx((seen.e_below + seen.e_above) / 2) or seen.e_value > 1e300

    def test_extreme_evidence_does_not_overflow(self):
        seen = look(MeasuredDifference(1e6, 1e-6, 1e6, 1e9))
        assert math.isfinite(seen.e_value)
        assert seen.e_below < 1e-6


class TestPeeking:
    """With a look after every session the plain interval often fails; ours hardly ever does."""

    def peek(self, seed: int, share: float) -> tuple[bool, bool]:
        comparison = Comparison()
        ours = plain = False
        for row in sessions(seed, 400, share=share):
            comparison.add(row.treated, row.numerator, row.denominator, cluster=row.cluster)
            found: Estimate = comparison.estimate()
            ours = ours or decide(found) in ("better", "worse")
            low, high = plain_interval(found) or (0, 0)
            plain = plain or (found.low is not None and not low <= 0 <= high)
        return ours, plain

    @pytest.mark.slow
    @pytest.mark.parametrize("share", [0.5, 0.9])
    def test_without_an_effect(self, share):
        """Six times as many experiments run with WARMSTART_FULL=1, and thousands in bench/stats.py."""
        runs = 120 if FULL else 20
        seen = [self.peek(seed, share) for seed in range(runs)]
        assert sum(plain for _, plain in seen) > 0.15 * runs  # about 0.3 expected
        assert sum(ours for ours, _ in seen) <= 0.05 * runs  # about 0.01 expected

    @settings(max_examples=5, deadline=None)
    @given(st.integers(0, 10**6))
    def test_a_large_effect_is_found(self, seed):
        assert decide(compare(sessions(seed, 600, rates=(0.12, 0.4))).estimate()) == "better"
