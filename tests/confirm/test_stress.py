"""Many deciders at once, and kills at random moments. Short by default; WARMSTART_FULL=1 runs a thousand of each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from confirm.serving import House, check
from confirm.stress import run_kills, run_race

FULL = os.environ.get("WARMSTART_FULL") == "1"


@pytest.mark.slow
def test_of_many_deciders_exactly_one_wins(house: House) -> None:
    requests = 1000 if FULL else 15
    approvers = [house.approver, house.second, house.admin, house.make_token("dan", "approver:decide")]
    found = run_race([house.api], house.agent, approvers, requests)
    assert found["exactly_one"] == requests
    assert found["wrong"] == []
    assert set(found["refused"]) == {409}
    finals = [event for event in house.events() if event in ("approved", "denied")]
    assert FULL or len(finals) == requests


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_by_kill_9(tmp_path: Path) -> None:
    found = run_kills(tmp_path / "confirm.db", 1000 if FULL else 12)
    assert found["wrong"] == {}
    assert found["submitted"] > 12
    assert found["decided"] > 4
    assert check(tmp_path / "confirm.db").ok
