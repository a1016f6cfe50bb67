"""The whole loop with a scripted model: provision, run, write a transcript, ingest, compare, decide about templates.

Only the model is a script: it reads the messages it is given, and errs less (or more) when it sees the planted example in
them. Its session is written as a Claude Code transcript, and only that comes back.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import warmstart
from scripted_model import LESSON, TEXT, USUAL, Host, ScriptedModel, run_sessions
from template_files import write_bundle
from warmstart.arms import assign, read_shares
from warmstart.model import Task
from warmstart.pipeline import Warmstart
from warmstart.templates.register import MEASURED

pytestmark = pytest.mark.slow


@pytest.fixture
def ws(tmp_path: Path):
    with warmstart.open() as opened:
        opened.templates.import_(write_bundle(tmp_path / "t.json", LESSON), approve=True)
        opened.experiments.start("loop", "cold=.5,warm=.5")
        yield opened


def verdict(ws: Warmstart) -> Any:
    (effect,) = ws.report().effects
    return effect


def test_a_drop_is_found_as_better_and_its_template_promoted(ws, tmp_path):
    run_sessions(ws, tmp_path / "out", shown=0.6 * USUAL)
    effect = verdict(ws)
    assert (effect.verdict, effect.blocked) == ("better", None)
    assert effect.low < 0.6 * USUAL - USUAL < effect.high < 0
    assert effect.n["warm"] + effect.n["cold"] == 200
    assert effect.missing == {"warm": 0, "cold": 0}
    assert -0.55 < effect.relative < -0.25
    assert effect.harmed is not None and effect.harmed < effect.harmed_expected
    row, _template, decisions = ws.templates.show("lesson")
    assert (row.status, decisions[-1].by, decisions[-1].status) == ("active", MEASURED, "active")
    assert "fewer errors" in decisions[-1].reason
    assert ws.provision(Task(text=TEXT, session="later-1", tools=("Bash",))).arm in ("cold", "warm")


def test_a_harm_is_found_as_worse_and_its_template_retired(ws, tmp_path):
    run_sessions(ws, tmp_path / "out", shown=1.6 * USUAL)
    effect = verdict(ws)
    assert (effect.verdict, effect.low > 0) == ("worse", True)
    assert effect.harmed > effect.harmed_expected
    row, _template, decisions = ws.templates.show("lesson")
    assert (row.status, decisions[-1].by, decisions[-1].status) == ("retired", MEASURED, "retired")
    assert "more errors" in decisions[-1].reason
    assert not ws.provision(Task(text=TEXT)).templates, "a retired template is no longer chosen"


def test_no_effect_is_inconclusive_and_nothing_happens(ws, tmp_path):
    run_sessions(ws, tmp_path / "out", shown=USUAL)
    effect = verdict(ws)
    assert effect.verdict == "inconclusive"
    assert effect.low < 0 < effect.high
    row, _template, decisions = ws.templates.show("lesson")
    assert (row.status, [decision for decision in decisions if decision.by == MEASURED]) == ("active", [])


def test_a_broken_splitter_is_stopped(ws, tmp_path):
    """The host picks its ids so that most sessions are warm: however clear the effect, it cannot be trusted."""
    host = Host(ws, ScriptedModel(shown=0.1), tmp_path / "out")
    names = [f"run-{n}" for n in range(2_000)]
    warm = [name for name in names if assign(name, {"cold": 0.5, "warm": 0.5}, "loop") == "warm"]
    cold = [name for name in names if name not in set(warm)]
    for name in warm[:140] + cold[:60]:
        host.run_session(name)
    ws.ingest(tmp_path / "out")
    report = ws.report()
    assert report.mismatch < 0.001
    assert "not what was drawn" in report.blocked
    assert {effect.verdict for effect in report.effects} == {"inconclusive"}
    assert all(effect.blocked for effect in (*report.effects, *report.secondary))
    row, _template, _decisions = ws.templates.show("lesson")
    assert row.reason == "approved at import", "no template is promoted by a broken comparison"


def test_transcripts_missing_from_one_arm_are_stopped_too(ws, tmp_path):
    host = Host(ws, ScriptedModel(shown=0.1), tmp_path / "out")
    for n in range(200):
        if host.run_session(f"run-{n}") == "cold" and n % 2:
            (tmp_path / "out" / f"run-{n}.jsonl").unlink()
    ws.ingest(tmp_path / "out")
    report = ws.report()
    assert "missing more in one arm" in report.blocked
    assert report.arms["cold"].missing > 30


def test_sessions_that_are_lost_evenly_are_counted_and_shown(ws, tmp_path):
    host = Host(ws, ScriptedModel(shown=0.6 * USUAL), tmp_path / "out")
    for n in range(220):
        host.run_session(f"run-{n}")
        if n % 11 == 0:
            (tmp_path / "out" / f"run-{n}.jsonl").unlink()
    ws.ingest(tmp_path / "out")
    effect = verdict(ws)
    assert (sum(effect.missing.values()), sum(effect.n.values())) == (20, 200)
    assert effect.verdict == "better"


def test_an_arm_that_calls_less_does_not_win(ws, tmp_path):
    """Half the errors, but also half the work."""
    host = Host(ws, ScriptedModel(shown=0.5 * USUAL), tmp_path / "out")
    for n in range(200):
        is_warm = assign(f"run-{n}", {"cold": 0.5, "warm": 0.5}, "loop") == "warm"
        host.run_session(f"run-{n}", calls=8 if is_warm else 20)
    ws.ingest(tmp_path / "out")
    report = ws.report()
    (effect,) = report.effects
    assert effect.verdict == "inconclusive"
    assert "calls that work fall" in effect.reason
    assert report.guardrails


def test_few_sessions_are_too_few(ws, tmp_path):
    run_sessions(ws, tmp_path / "out", sessions=8, shown=0.0)
    effect = verdict(ws)
    assert (effect.verdict, effect.low, effect.high) == ("too_few", None, None)


@pytest.mark.slow
def test_after_a_verdict_the_better_arm_gets_more(tmp_path):
    with warmstart.open() as ws:
        ws.templates.import_(write_bundle(tmp_path / "t.json", LESSON), approve=True)
        ws.experiments.start("loop", "cold=.5,warm=.5", after="thompson", floor=0.15)
        host = run_sessions(ws, tmp_path / "out", shown=0.6 * USUAL)
        (row,) = ws.experiments.list()
        assert read_shares(row.shares)["cold"] == pytest.approx(0.15, abs=0.01)
        arms = [host.run_session(f"more-{n}") for n in range(200)]
        assert 0.05 < arms.count("cold") / 200 < 0.27
        ws.ingest(tmp_path / "out")
        report = ws.report()
        assert report.blocked is None, "sessions are checked against the shares at their time"
        (effect,) = report.effects
        assert effect.verdict == "better"
        assert -0.55 < effect.relative < -0.25
