"""Paired comparisons: against hand-made numbers, against simulation, and at the edges."""

from __future__ import annotations

import math
import random

import pytest

from warmstart.stats.paired import MIN_GROUPS, MIN_TASKS, Paired, compare_paired, cross


def pairs(treatment, control, groups=None):
    groups = groups or range(len(treatment))
    return [Paired((t, 1.0), (c, 1.0), g) for t, c, g in zip(treatment, control, groups, strict=True)]


def test_the_interval_is_students_t_over_tasks():
    differences = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    found = compare_paired(pairs([d + 5 for d in differences], [5.0] * 10))
    assert found.difference == pytest.approx(4.5)
    se = math.sqrt(sum((d - 4.5) ** 2 for d in differences) / 9 / 10)
    assert found.se == pytest.approx(se)
    assert found.high - found.difference == pytest.approx(2.262 * se, rel=0.005)  # t, 9 degrees of freedom
    assert (found.n_treatment, found.clusters, found.relative) == (10, 10, pytest.approx(0.9))


def test_what_makes_tasks_differ_drops_out():
    hard = [random.Random(n).uniform(0, 100) for n in range(30)]
    found = compare_paired(pairs([h - 1 - (n % 2) for n, h in enumerate(hard)], hard))
    assert -1.8 < found.low < found.high < -1.2


def test_a_ratio_weighs_calls_not_sessions():
    tasks = [Paired((1.0, 10.0), (5.0, 10.0), n) for n in range(11)] + [Paired((1.0, 1.0), (0.0, 1.0), 11)]
    found = compare_paired(tasks, is_rate=True)
    assert found.value_treatment == pytest.approx(12 / 111)
    assert found.value_control == pytest.approx(55 / 111)
    assert found.difference == pytest.approx(12 / 111 - 55 / 111)


def test_groups_that_agree_within_count_as_one():
    outcomes = [1.0] * 6 + [0.0] * 6
    treatment, control = outcomes * 5, [0.0] * 60
    alone = compare_paired(pairs(treatment, control), is_rate=True)
    grouped = compare_paired(pairs(treatment, control, [n % 12 for n in range(60)]), is_rate=True)
    assert grouped.clusters == 12
    assert grouped.high - grouped.low > 2 * (alone.high - alone.low)


def test_unanimous_tasks_are_not_certain():
    found = compare_paired(pairs([1.0] * 20, [0.0] * 20), is_rate=True)
    assert found.difference == 1.0
    assert 0.5 < found.low < 0.95, "twenty of twenty are much, but not everything"
    same = compare_paired(pairs([0.0] * 20, [0.0] * 20), is_rate=True)
    assert same.low < 0 < same.high


@pytest.mark.parametrize(
    ("count", "groups"), [(MIN_TASKS - 1, None), (30, [n % (MIN_GROUPS - 1) for n in range(30)]), (0, None)]
)
def test_too_few_have_no_interval(count, groups):
    found = compare_paired(pairs([1.0, 0.0] * (count // 2) + [1.0] * (count % 2), [0.0] * count, groups), is_rate=True)
    assert (found.low, found.high) == (None, None)
    assert (found.difference is None) == (count == 0)


def test_tasks_that_tell_in_one_arm_only_are_left_out():
    tasks = [
        *pairs([1.0, 0.0] * 6, [0.0] * 12),
        Paired((5.0, 1.0), (0.0, 0.0), "x"),
        Paired((0.0, 0.0), (9.0, 1.0), "y"),
    ]
    found = compare_paired(tasks, is_rate=True)
    assert (found.n_treatment, found.value_treatment, found.value_control) == (12, 0.5, 0.0)


@pytest.mark.parametrize(
    ("helped", "harmed", "p"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (0, 5, 0.0625), (8, 2, 0.109375), (3, 3, 1.0), (40, 0, 2 / 2**40)],
)
def test_mcnemar_is_exact(helped, harmed, p):
    found = cross([(True, False)] * helped + [(False, True)] * harmed + [(True, True)] * 2 + [(False, False)] * 3)
    assert (found.helped, found.harmed, found.both, found.neither) == (helped, harmed, 2, 3)
    assert found.p == pytest.approx(p)


def test_the_interval_holds_the_truth_in_nineteen_of_twenty_runs_over_families():
    """Families differ in how much the treatment helps; the truth is about families like these."""
    rng = random.Random(5)
    truth = _truth()
    held = 0
    runs = 800
    for _ in range(runs):
        tasks = []
        for family in range(15):
            lift = min(1.0, max(0.0, rng.gauss(0.4, 0.2)))
            base = rng.uniform(0.05, 0.3)
            for _task in range(4):
                control = float(rng.random() < base)
                treated = 1.0 if control else float(rng.random() < lift)
                tasks.append(Paired((treated, 1.0), (control, 1.0), family))
        found = compare_paired(tasks, is_rate=True)
        held += found.low <= truth <= found.high
    assert held / runs > 0.93


def _truth() -> float:
    """E[(1 - base) * lift] with the lift cut to 0-1, by brute force."""
    rng = random.Random(1)
    draws = 200_000
    return sum((1 - rng.uniform(0.05, 0.3)) * min(1.0, max(0.0, rng.gauss(0.4, 0.2))) for _ in range(draws)) / draws
