"""Times that people write."""

from __future__ import annotations

import time

import pytest

from warmstart.doors.render.times import read_since


@pytest.mark.parametrize(("text", "hours"), [("7", 168), ("7d", 168), ("24h", 24)])
def test_days_and_hours_back_from_now(text: str, hours: int) -> None:
    assert abs(time.time() - hours * 3600 - read_since(text)) < 60


@pytest.mark.parametrize("text", ["7x", "d", "-7d", "7 d", "\N{ARABIC-INDIC DIGIT SEVEN}d", "2026-13-01"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="neither a number of days nor a date"):
        read_since(text)
