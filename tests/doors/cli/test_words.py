"""What people type first: other words for commands, typing errors, sessions before any ingest, and empty lists."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

import warmstart
from command_line import run, run_json
from transcripts import CART, cart_sessions, outcome_lines, work_lines, write_jsonl
from warmstart.doors.cli.main import COMMANDS, main
from warmstart.doors.cli.words import INSTEAD
from warmstart.model import Task

TRIED = (
    "create list stats build show search export import approve seed start init setup install run log history".split()
)


@pytest.mark.parametrize("word", TRIED)
def test_other_words_point_to_the_command(word: str) -> None:
    message = run(word, code=2).stderr
    assert f"there is no command '{word}'; use: warmstart " in message


def test_every_word_points_to_commands_that_exist() -> None:
    assert not set(INSTEAD) & set(COMMANDS)
    for word, instead in INSTEAD.items():
        named = re.findall(r"warmstart ((?:[a-z]+ ?){0,2}|--\w+)", instead)
        assert named, word
        for words in named:
            if words.startswith("--"):
                continue
            command: click.Command = main
            for part in words.split():
                if isinstance(command, click.Group):
                    found = command.get_command(click.Context(command), part)
                    assert found is not None or command.name in ("mcp",), (word, words)
                    command = found or command


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("sesions", "list"), "warmstart sessions"),
        (("insigths",), "warmstart insights"),
        (("templates", "shw"), "warmstart templates show"),
        (("sessions", "serach", "x"), "warmstart sessions search"),
        (("review", "aply", "x"), "warmstart review apply"),
        (("hook", "instal"), "warmstart hook install"),
    ],
)
def test_typing_errors_get_a_suggestion(words: tuple[str, ...], meant: str) -> None:
    assert f"did you mean: {meant}" in run(*words, code=2).stderr


def test_a_word_like_nothing_gets_the_list() -> None:
    message = run("xyzzy", code=2).stderr
    assert "there are: inspect, ingest, sessions" in message


class TestCaptureBeforeIngest:
    def test_it_looks_in_the_usual_places(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path / "user"))
        session = "0f0e0d0c-1111-4222-8333-444455556666"
        place = tmp_path / "user" / ".claude" / "projects" / "-home-dev-shop"
        write_jsonl(place / f"{session}.jsonl", work_lines(session, *CART))
        write_jsonl(place / "other.jsonl", work_lines("other", *CART))
        assert run_json("capture", "0f0e0d0c", "--name", "mine")["name"] == "mine"
        assert [row["id"] for row in run_json("sessions", "list")] == [session], "only that file was read"

    def test_or_says_what_to_run(self) -> None:
        assert "run: warmstart ingest" in run("capture", "0f0e0d0c", code=1).stderr
        assert "run: warmstart ingest" in run("sessions", "show", "0f0e0d0c", code=1).stderr

    def test_a_path(self, tmp_path: Path) -> None:
        path = write_jsonl(tmp_path / "a.jsonl", work_lines("cart", *CART))
        assert run_json("capture", path, "--name", "mine")["name"] == "mine"
        (tmp_path / "b.jsonl").write_text("no transcript\n")
        assert run("capture", tmp_path / "b.jsonl", code=1).stderr.count("\n") == 1


def test_inspect_json_carries_the_score(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", outcome_lines("s-1", [True, True, True, False]))
    shown = run_json("inspect", path)
    assert shown["error_rate"] == 0.25
    assert (shown["is_proficient"], shown["is_successful"]) == (False, False)


def test_templates_show_names_the_sessions(tmp_path: Path) -> None:
    run("ingest", write_jsonl(tmp_path / "a.jsonl", work_lines("0f0e0d0c-1111-4222", *CART)))
    run("capture", "0f0e0d0c", "--name", "mine")
    shown = run("templates", "show", "mine").stdout
    assert "from session 0f0e0d0c: 0f0e0d0c-1111-4222 (claude-code)" in shown
    (source,) = run_json("templates", "show", "mine")["sources"]
    assert (source["id"], source["short"], source["agent"]) == ("0f0e0d0c-1111-4222", "0f0e0d0c", "claude-code")


class TestEmpties:
    @pytest.fixture
    def stored(self, tmp_path: Path) -> None:
        for lines in cart_sessions(1):
            write_jsonl(tmp_path / "in" / f"{lines[0]['sessionId']}.jsonl", lines)
        run("ingest", tmp_path / "in")

    def test_templates(self, stored: None) -> None:
        assert "1 session to learn from; run: warmstart learn" in run("templates", "list").stdout
        run("learn")
        shown = run("templates", "list", "--status", "active").stdout
        assert "none of the templates (1 proposed) matches the filters" in shown and "ingest" not in shown

    def test_learn_and_usage_with_filters(self, stored: None) -> None:
        for words in (("learn", "--agent", "codex"), ("usage", "--agent", "codex"), ("insights", "--agent", "codex")):
            shown = run(*words).stdout
            assert "matches the filters" in shown and "warmstart ingest" not in shown

    def test_review(self) -> None:
        assert "run: warmstart review SESSION" in run("review", "list").stdout

    def test_report(self) -> None:
        assert "No session of the standing holdout was started yet" in run("report").stdout

    def test_report_counts_sessions_that_wait_for_their_transcript(self) -> None:
        run("experiment", "start", "trial", "--arms", "cold,warm")
        assert "No session of this experiment was started yet" in run("report").stdout
        for session in ("one", "two"):
            run("provision", "fix the failing cart tests", "--session", session)
        shown = run("report").stdout
        assert "2 sessions were started and wait for a transcript" in shown and "No session" not in shown

    def test_report_of_sessions_that_are_all_left_out(self) -> None:
        run("provision", "fix the failing cart tests", "--session", "one", "--cold")
        shown = run("report").stdout
        assert "1 cold by choice" in shown and "was started yet" not in shown

    def test_provision_says_what_waits(self, stored: None) -> None:
        assert "to learn some, run: warmstart learn" in run("provision", "fix the failing cart tests").stdout
        run("learn")
        assert "1 template waits for approval" in run("provision", "fix the failing cart tests").stdout
        with warmstart.open() as ws:
            ((row, _template),) = ws.templates.find()
            ws.templates.approve(row.name)
            assert "waits" not in ws.provision(Task(text="fix the failing cart tests", project="*")).reason
            reason = ws.provision(Task(text="compose a sonnet about whales", project="*")).reason
            assert reason == "no example is similar enough to the task"
            other = ws.provision(Task(text="fix the failing cart tests", project="*", tools=("Nothing",))).reason
            assert other.startswith("no example that this session can use: ")


def test_json_is_one_value_or_lines(tmp_path: Path) -> None:
    for lines in cart_sessions(2):
        write_jsonl(tmp_path / "in" / f"{lines[0]['sessionId']}.jsonl", lines)
    assert len([json.loads(line) for line in run("inspect", tmp_path / "in", "--json").stdout.splitlines()]) == 2
    assert "JSON lines" in run("inspect", "--help").stdout
    for words in (("sessions", "list"), ("templates", "list"), ("report",), ("usage",)):
        json.loads(run(*words, "--json").stdout)
        assert "one JSON value" in " ".join(run(*words, "--help").stdout.split())
