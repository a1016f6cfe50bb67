"""The commands about measured effects, as a person or a program calls them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import warmstart
from command_line import run, run_json
from scripted_model import LESSON, TEXT, USUAL, run_sessions
from template_files import write_bundle
from transcripts import outcome_lines, write_jsonl


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """Eighty sessions of an experiment with a large effect."""
    with warmstart.open() as ws:
        ws.templates.import_(write_bundle(tmp_path / "t.json", LESSON), approve=True)
        ws.experiments.start("loop", "cold=.5,warm=.5")
        run_sessions(ws, tmp_path / "out", sessions=80, shown=0.3 * USUAL)
    return tmp_path


def test_an_experiment_from_start_to_stop(tmp_path):
    assert "no experiments; 0% of sessions stay cold for comparison" in run("experiment", "list").stdout
    started = run_json("experiment", "start", "first", "--arms", "cold=.25,warm=.75", "--salt", "pepper")
    assert started["arms"] == {"cold": 0.25, "warm": 0.75}
    assert (started["metric"], started["salt"], started["stopped"]) == ("error_rate", "pepper", None)
    assert "first is running" in run("experiment", "start", "second", code=1).stderr
    seed = run_json("provision", "anything", "--session", "s1")
    assert seed["arm"] in ("cold", "warm")
    assert "first has stopped" in run("experiment", "stop").stdout
    (row,) = run_json("experiment", "list")
    assert row["name"] == "first" and row["stopped"]
    assert "running" not in run("experiment", "list").stdout


def test_cold_and_parent_can_be_given(tmp_path):
    assert run_json("provision", "x", "--session", "s1", "--cold")["arm"] == "cold"
    assert run_json("provision", "x", "--session", "s2", "--parent", "s1")["arm"] == "cold"
    assert run_json("provision", "x", "--session", "s3", "--parent", "s1", "--continues")["arm"] == "cold"
    assert run_json("report", "holdout")["report"]["left_out"] == {
        "cold by choice": 1,
        "subagents, or continuations of another session": 2,
    }


def test_record(tmp_path):
    path = tmp_path / "x.jsonl"
    write_jsonl(path, outcome_lines("other id", [True, False, True]))
    assert "never provisioned" in run("record", "s1", path, code=1).stderr
    run_json("provision", TEXT, "--session", "s1")
    assert "1 errors in 3 judged calls" in run("record", "s1", path).stdout
    closed = run_json("record", "s1", path)
    assert (closed["session"], closed["arm"], closed["measures"]["errors"]) == ("s1", "warm", 1)
    run("record", "s1", tmp_path / "nowhere.jsonl", code=1)


def test_ingest_reports_closed_trials(tmp_path):
    run_json("provision", TEXT, "--session", "s1")
    write_jsonl(tmp_path / "x.jsonl", outcome_lines("s1", [True]))
    assert "1 trials closed" in run("ingest", tmp_path / "x.jsonl").stdout


def test_the_report(measured):
    printed = run("report").stdout
    for part in (
        "Experiment loop",
        "warm: better",
        "errors per call, first 30 turns: down",
        "without transcript",
        "lesson@1",
        "different tools used with success",
        "decides",
        "guardrail, does not block:",
        "context, includes zero",
        "~ tokens, including the seed: estimated from the text",
    ):
        assert part in printed
    assert re.search(r"tokens, including the seed +warm +~[\d,]+ +~[\d,]+ +~[+-]", printed), printed
    first = run_json("report", "loop", "--metric", "seconds_to_success")["report"]
    assert (first["metric"], first["effects"][0]["metric"]) == ("seconds_to_success", "seconds_to_success")
    report = run_json("report")
    (effect,) = report["report"]["effects"]
    assert effect["verdict"] == "better"
    assert effect["low"] < effect["difference"] < effect["high"] < 0
    assert report["templates"][0]["decision"] == "promote"
    assert report["outlook"] is None
    empty = run_json("report", "holdout")
    assert empty["report"]["effects"] == [], "no session is held out here"
    assert "No sessions are held out" in run("report", "holdout").stdout
    assert "no experiment other" in run("report", "other", code=1).stderr


def test_an_interval_that_is_not_there_is_null(tmp_path, monkeypatch):
    monkeypatch.setenv("WARMSTART_HOLDOUT", "0.5")
    for n in range(6):
        run_json("provision", TEXT, "--session", f"s{n}")
        write_jsonl(tmp_path / "in" / f"s{n}.jsonl", outcome_lines(f"s{n}", [True, False]))
    run("ingest", tmp_path / "in")
    (effect,) = run_json("report")["report"]["effects"]
    assert (effect["verdict"], effect["low"], effect["high"]) == ("too_few", None, None)
    assert "too few" in run("report").stdout


@pytest.mark.slow
def test_power_says_what_traffic_can_show(measured):
    assert re.search(
        r"At your traffic a \d+% drop can be detected within \d+ weeks?", run("experiment", "power").stdout
    )
    uneven = run_json("experiment", "power", "--arms", "warm=.9,cold=.1")
    assert uneven["cold_share"] == pytest.approx(0.1)
    sizes = [drop["sessions"] for drop in uneven["drops"]]
    assert sizes == sorted(sizes, reverse=True), "a larger drop is detected sooner"


@pytest.mark.slow
def test_power_takes_a_window(measured):
    every = run_json("experiment", "power")["sessions"]
    assert "too few" in run("experiment", "power", "--since", "2200-01-01", code=1).stderr
    assert run_json("experiment", "power", "--since", "1990-01-01")["sessions"] == every


def test_power_without_history_says_what_to_do():
    assert "ingest more" in run("experiment", "power", code=1).stderr


@pytest.mark.parametrize(
    "words",
    [("experiment", "start"), ("experiment", "start", "x", "--metric", "joy"), ("record", "s1"), ("experiment", "fly")],
)
def test_wrong_usage_exits_2(words):
    run(*words, code=2)


@pytest.mark.parametrize("arms", ["warm", "cold=2,warm=3", "cold,nowhere"])
def test_arms_that_make_no_sense_exit_1_in_one_line(arms):
    assert len(run("experiment", "start", "x", "--arms", arms, code=1).stderr.strip().splitlines()) == 1
