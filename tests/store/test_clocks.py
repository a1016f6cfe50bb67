"""Two machines whose clocks differ by years write one store: the order of their work decides, never their clocks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from databases import on_both_databases
from transcripts import CART, teach, work_lines
from warmstart import config
from warmstart.model import Task
from warmstart.pipeline import Warmstart
from warmstart.store import TemplateStore, TrialStore

YEAR = 365 * 86_400.0
NOW = 1_790_000_000.0

pytestmark = on_both_databases


@pytest.fixture
def early(url: str, tmp_path: Path) -> Iterator[Warmstart]:
    """The machine whose clock is ten years behind."""
    with Warmstart(config.load(tmp_path / "early", url), lambda: NOW - 10 * YEAR) as opened:
        yield opened


@pytest.fixture
def late(url: str, tmp_path: Path) -> Iterator[Warmstart]:
    """The machine whose clock is ten years ahead."""
    with Warmstart(config.load(tmp_path / "late", url), lambda: NOW + 10 * YEAR) as opened:
        yield opened


def test_the_longer_session_and_the_last_decision_count(early: Warmstart, late: Warmstart) -> None:
    short, whole = (work_lines("s-0", *calls) for calls in (CART[:1], CART))
    for ws, lines in ((late, short), (early, whole), (late, short)):
        teach(ws, lines, folder=f"transcripts of {ws.settings.home.name}")
    assert late.sessions()[0].calls == len(CART)
    teach(early, *(work_lines(f"s-{number}", *CART, day=number + 1) for number in (1, 2)))
    late.capture("s-0", name="cart", approve=True, anyway=True)
    early.templates.retire("cart", reason="no")
    assert late.templates.latest("cart").status == "retired"
    late.templates.approve("cart")
    early.templates.retire("cart", reason="no, again")
    assert late.templates.latest("cart").status == "retired"
    decided = [decision.status for decision in TemplateStore(late.store).decisions("cart")]
    assert decided[-4:] == ["active", "retired", "active", "retired"]


def test_an_experiment_of_one_machine_is_that_of_the_other(early: Warmstart, late: Warmstart) -> None:
    teach(early, *(work_lines(f"s-{number}", *CART, day=number + 1) for number in range(3)))
    late.learn()
    late.experiments.start("ours")
    task = Task(text="fix the cart tests", project="/home/dev/shop", session="t-1")
    first = early.provision(task)
    assert late.provision(task) == first
    trial = TrialStore(late.store).trial("t-1")
    assert trial is not None and trial.experiment == "ours"
    early.experiments.stop()  # before it was started, by the clocks
    assert [row.stopped is not None for row in late.experiments.list() if row.name == "ours"] == [True]
    late.experiments.start("next")
    assert early.experiments.find("next") is not None
