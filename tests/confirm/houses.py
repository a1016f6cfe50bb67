"""Fixtures: daemons to test against, on a SQLite file or on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from confirm.serving import House, check

on_both_databases = pytest.mark.parametrize("engine", ["sqlite", "postgres"], indirect=True)


@pytest.fixture(autouse=True)
def no_daemon_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the user's own daemon."""
    for name in (
        "CONFIRMATION_HOST",
        "CONFIRMATION_PORT",
        "CONFIRMATION_RATE_LIMIT",
        "CONFIRMATION_NOTIFY",
        "CONFIRMATION_ANCHOR",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("WARMSTART_CONFIRM_URL", "WARMSTART_CONFIRM_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    """The database of the houses: SQLite unless the test says `on_both_databases`."""
    return str(getattr(request, "param", "sqlite"))


@pytest.fixture
def open_house(request: pytest.FixtureRequest, tmp_path: Path, engine: str) -> Iterator[Callable[..., House]]:
    """Start daemons. After the test every audit must verify."""
    houses: list[House] = []
    addresses: list[str] = []

    def make(**options: Any) -> House:
        folder = tmp_path / f"house-{len(houses)}"
        folder.mkdir()
        if engine == "postgres" and "database" not in options:
            options["database"] = request.getfixturevalue("postgres").make_database()
            addresses.append(options["database"])
        houses.append(House(folder, **options))
        return houses[-1]

    yield make
    for house in houses:
        house.stop()
        verdict = check(house.database)
        assert verdict.ok, verdict.problems
        assert verdict.lag == 0
    for address in addresses:
        request.getfixturevalue("postgres").recycle(address)


@pytest.fixture
def house(open_house: Callable[..., House]) -> House:
    return open_house()
