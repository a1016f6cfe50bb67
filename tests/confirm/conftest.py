from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from confirm.serving import House, check


@pytest.fixture(autouse=True)
def no_daemon_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIRMATION_HOST", "CONFIRMATION_PORT", "CONFIRMATION_RATE_LIMIT", "CONFIRMATION_NOTIFY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("WARMSTART_CONFIRM_URL", "WARMSTART_CONFIRM_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def open_house(tmp_path: Path) -> Iterator[Callable[..., House]]:
    """Makes daemons; afterwards every audit must be sound."""
    houses: list[House] = []

    def make(**options: Any) -> House:
        folder = tmp_path / f"house-{len(houses)}"
        folder.mkdir()
        houses.append(House(folder, **options))
        return houses[-1]

    yield make
    for house in houses:
        house.stop()
        verdict = check(house.database)
        assert verdict.ok, verdict.problems
        assert verdict.lag == 0


@pytest.fixture
def house(open_house: Callable[..., House]) -> House:
    return open_house()
