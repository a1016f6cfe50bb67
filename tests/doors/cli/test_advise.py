"""`warmstart advise`: one line out for each line in, whatever the line is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import warmstart
from notes.making import make_note, write_notes
from warmstart.doors.cli.main import main

NOTE = make_note(fix=".golangci.yaml", text="`.golangci.yml` is not here; `.golangci.yaml` is")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / ".golangci.yaml").write_text("")
    write_notes(Path(os.environ["WARMSTART_HOME"]), NOTE, folder=folder)
    return folder


def advise(*lines: dict[str, Any] | str, options: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    done = CliRunner().invoke(main, ["advise", *options], input=text)
    assert done.exit_code == 0, done.output
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(lines)
    return answers


def test_words_are_those_of_the_table(project):
    line = {
        "session": "s",
        "agent": "claude-code",
        "cwd": str(project),
        "tool": "Bash",
        "arguments": {"command": "cat .golangci.yml"},
        "when": "before",
    }
    failed = line | {"when": "after", "result": "cat: .golangci.yml: No such file or directory", "error": True}
    told, again, after, other = advise(
        line,
        line,
        failed,
        failed | {"session": "t", "error": "cat: .golangci.yml: No such file or directory", "result": None},
    )
    assert told == {"action": "tell", "text": f"[warmstart] {NOTE.text} (7 sessions)", "note": NOTE.id}
    assert again == {"action": "none", "text": "", "note": None}
    assert after["action"] == other["action"] == "tell"


def test_a_correction_has_the_corrected_arguments(project):
    Path(os.environ["WARMSTART_HOME"], "config.toml").write_text('[advice]\npath = "correct"\n')
    (given,) = advise({"cwd": str(project), "tool": "Bash", "arguments": {"command": "cat .golangci.yml"}})
    assert (given["action"], given["arguments"]) == ("correct", {"command": "cat .golangci.yaml"})


def test_other_machines_sessions_are_replayed_without_the_disk(project):
    (project / ".golangci.yml").write_text("")
    line = {"cwd": str(project), "tool": "Bash", "arguments": {"command": "cat .golangci.yml"}}
    assert [given["action"] for given in advise(line)] == ["none"]
    assert [given["action"] for given in advise(line, options=("--no-disk",))] == ["tell"]


def test_bad_lines_are_reported_and_the_rest_goes_on(project):
    good = {"cwd": str(project), "tool": "Bash", "arguments": {"command": "cat .golangci.yml"}}
    bad = [
        "{",
        "[]",
        "null",
        '{"tool": 5}',
        '{"tool": "Bash"}',
        '{"tool": "Bash", "arguments": {}, "when": "later"}',
        "[" * 90_000,
    ]
    *problems, last = advise(*bad, good)
    assert [given["error"]["line"] for given in problems] == list(range(1, len(bad) + 1))
    assert all(given["action"] == "none" and given["error"]["reason"] and given["error"]["type"] for given in problems)
    assert last["action"] == "tell"


def test_the_library_says_the_same(project):
    event = warmstart.CallEvent(tool="Bash", arguments={"command": "cat .golangci.yml"}, session="s", cwd=str(project))
    with warmstart.open() as ws:
        assert ws.advise(event).action == "tell"
        assert ws.advise(event) == warmstart.Advice()
    assert not Path(os.environ["WARMSTART_HOME"], "warmstart.db").exists(), "no store is opened"


def test_notes_are_found_by_the_projects_name(project):
    event = warmstart.CallEvent(
        tool="Bash", arguments={"command": "cat .golangci.yml"}, project="/home/dev/shop", cwd=str(project)
    )
    with warmstart.open() as ws:
        assert ws.advise(event).action == "tell"
        assert ws.advise(warmstart.CallEvent(tool="Bash", arguments={}, project="/nowhere")) == warmstart.Advice()
