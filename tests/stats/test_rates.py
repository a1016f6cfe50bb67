"""Intervals of error rates for tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmstart.stats.rates import rate_interval


def test_many_sessions_of_one_call_come_close_to_wilson():
    assert rate_interval([(int(n < 30), 1) for n in range(100)]) == pytest.approx((0.2189, 0.3958), abs=0.006)


def test_calls_of_one_session_count_together():
    alone = [(int(n % 4 == 0), 1) for n in range(100)]
    alike = [(5 * errors, 5) for errors, _calls in alone]
    assert rate_interval(alike) == pytest.approx(rate_interval(alone), abs=0.01)


def test_no_error_so_far():
    low, high = rate_interval([(0, 10)] * 5) or (1, 1)
    assert low == 0
    assert 0.05 < high < 0.2


def test_not_defined_for_one_session():
    assert rate_interval([]) is None
    assert rate_interval([(0, 0), (0, 0)]) is None
    assert rate_interval([(3, 8), (0, 0)]) is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=40))
def test_lies_in_order_and_inside_0_to_1(rows):
    sessions = [(min(errors, calls), calls) for errors, calls in rows]
    interval = rate_interval(sessions)
    if interval is not None:
        rate = sum(errors for errors, _calls in sessions) / sum(calls for _errors, calls in sessions)
        assert 0 <= interval[0] <= rate <= interval[1] <= 1
