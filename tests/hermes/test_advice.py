"""What a project knows, in Hermes: the brief in the seed, and advice behind the result of a failed call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import warmstart
from hermes.plugin_calls import make_plugin, make_request, send
from hermes.running import TASK, Hermes, answer_in_turn
from hermes.scripted_server import Answer, Call, ScriptedServer
from transcripts import teach, work_lines
from warmstart.doors.hermes.advice import looks_failed
from warmstart.doors.hermes.place import SessionPlace
from warmstart.doors.hermes.plugin import Plugin
from warmstart.model import SessionOwner, Task
from warmstart.pipeline import Warmstart
from warmstart.store.notes import NoteStore

MISSING = {"content": "", "total_lines": 0, "error": "File not found: settings.yml"}
WORKED = {"content": "1|error: exit_code 3", "total_lines": 1}


def learn_about(ws: Warmstart, folder: Path) -> str:
    """Let two sessions read `settings.yml` in vain and then `settings.yaml`; return the note about it."""
    wrong = ("Read", {"file_path": f"{folder}/settings.yml"}, "<tool_use_error>File does not exist.</tool_use_error>")
    right = ("Read", {"file_path": f"{folder}/settings.yaml"}, "1 a: b")
    sessions = [work_lines(f"past-{n}", wrong, right, day=n + 1, cwd=str(folder)) for n in range(2)]
    for lines in sessions:
        lines[2]["message"]["content"][0]["is_error"] = True
    teach(ws, *sessions)
    ws.learn()
    (note,) = ws.notes.list(project=ws.projects.find(str(folder)).name, kind="path", status="active")
    return note.id


@pytest.fixture
def work(home: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "settings.yaml").write_text("a: b\n")
    with warmstart.open() as ws:
        learn_about(ws, folder)
    return folder


def begin(work: Path, session: str = "s-1", **owner: str) -> Plugin:
    """Return a plugin with a session in the folder that has begun."""
    plugin = make_plugin(place=SessionPlace(SessionOwner(**owner), str(work)))
    send(plugin, make_request(), session_id=session)
    return plugin


def finish(plugin: Plugin, result: Any, session: str = "s-1", **more: Any) -> str | None:
    """End a call of `read_file` with this result; return what takes its place."""
    facts = {"session_id": session, "tool_name": "read_file", "args": {"path": "settings.yml"}, "status": "ok"}
    return plugin.advise(**(facts | {"result": json.dumps(result)} | more))


def test_the_fix_follows_the_failure_once_a_session(work: Path) -> None:
    plugin = begin(work)
    advised = finish(plugin, MISSING)
    assert advised is not None and advised.startswith(json.dumps(MISSING)) and "`settings.yaml`" in advised
    assert finish(plugin, MISSING) is None
    assert finish(begin(work), MISSING) is None, "another process knows it too"
    assert finish(begin(work, "s-2"), MISSING, "s-2")
    with warmstart.open() as ws:
        ws.learn()
        showings = [(one.session, one.how) for one in NoteStore(ws.store).showings() if one.how == "after"]
        assert showings == [("s-1", "after"), ("s-2", "after")]


@pytest.mark.parametrize(
    "result", [WORKED, {"output": '{"exit_code": 3, "error": "x"}', "exit_code": 0, "error": None}]
)
def test_a_call_that_worked_costs_nothing(work: Path, result: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = begin(work)
    monkeypatch.setattr(plugin._adviser, "_open", lambda: pytest.fail("nothing is opened"))
    assert finish(plugin, result) is None
    assert not looks_failed(json.dumps(result))


@pytest.mark.parametrize(
    "result",
    [
        {"output": "boom", "exit_code": 3, "error": None},
        {"output": "", "exit_code": -1, "error": "timed out"},
        {"success": False},
        {"output": "x" * 90_000, "exit_code": 1, "error": None},
    ],
)
def test_failures_are_recognised(result: Any) -> None:
    assert looks_failed(json.dumps(result))


def test_who_gets_no_advice(work: Path) -> None:
    with warmstart.open() as ws:
        ws.provision(Task(session="chilly", agent="hermes", cold=True))
    plugin = begin(work)
    assert finish(plugin, MISSING, "chilly") is None, "a cold session"
    assert finish(plugin, MISSING, "a-subagent") is None, "a session without an arm"
    assert finish(plugin, MISSING, "") is None, "a call from inside execute_code"
    assert finish(plugin, MISSING, args=None) is None
    assert plugin.advise(session_id="s-1", tool_name="read_file", args={}, result=b"x") is None
    person = begin(work, "s-3", platform="telegram", chat="1", user="2")
    assert finish(person, MISSING, "s-3") is None, "a person of a gateway"


def test_the_level_is_respected(work: Path, home: Path) -> None:
    (home / "config.toml").write_text('[advice]\npath = "off"\n')
    assert finish(begin(work), MISSING) is None


def test_faults_leave_the_result_alone(work: Path, home: Path) -> None:
    plugin = begin(work)
    for index in (home / "notes").glob("*.index"):
        index.write_bytes(b"\0rubbish")
    assert finish(plugin, MISSING) is None
    (home / "notes" / "folders").write_bytes(b"\xff\xfe")
    assert finish(plugin, MISSING) is None
    (home / "warmstart.db").write_bytes(b"rubbish" * 1_000)
    assert finish(make_plugin(place=SessionPlace(SessionOwner(), str(work))), MISSING, "s-9") is None


@pytest.mark.slow
def test_in_the_real_hermes(hermes: Hermes, server: ScriptedServer) -> None:
    (hermes.work / "settings.yaml").write_text("a: b\n")
    with hermes.open() as ws:
        note = learn_about(ws, hermes.work)
    server.script = answer_in_turn(
        Answer(calls=[Call("read_file", {"path": "settings.yml"})]),
        Answer(calls=[Call("terminal", {"command": "cat settings.yml"})]),
        Answer(calls=[Call("read_file", {"path": "settings.yaml"})]),
        Answer("It says a: b."),
    )
    hermes.run("chat", "-q", TASK)
    requests = server.asked()
    brief = "`settings.yml`, use `settings.yaml`"
    assert len(requests) == 4 and all(json.dumps(request.body).count(brief) == 1 for request in requests)
    results = [message["content"] for message in requests[-1].body["messages"] if message["role"] == "tool"]
    told = ["[warmstart] " in result for result in results[-3:]]
    assert told == [True, False, False], results
    (trial,) = hermes.trials()
    hermes.wait_closed(trial.session, calls=3, errors=2, judged=3)
    with hermes.open() as ws:
        ws.learn()
        showings = NoteStore(ws.store).showings(note)
        assert sorted(one.how for one in showings) == ["after", "brief"] and {one.session for one in showings} == {
            trial.session
        }
