"""The whole loop by hooks alone: a session starts, is asked, works, ends; nobody does anything, and its trial is closed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

import warmstart
from doors.hooks.events import PROMPT, event, prompt, read_log, start, wait_for_quiet
from doors.hooks.events import answer_by_program as answer
from transcripts import cart_sessions, outcome_lines, write_jsonl
from warmstart.doors.hooks import catch_up
from warmstart.ingest.queue import Queue
from warmstart.store import TrialStore


def folder() -> Path:
    return Path(os.environ["HOME"], ".claude", "projects", "-home-dev-shop")


def end(session: str) -> None:
    began = time.monotonic()
    assert answer(event("SessionEnd", session, reason="prompt_input_exit")) is None
    assert time.monotonic() - began < 15, "it does not wait for what it starts"


@pytest.mark.slow
def test_a_session_comes_back_as_a_closed_trial(taught):
    session = str(uuid.uuid4())
    given = [answer(start(session)), answer(prompt(session=session))]
    assert all(given)
    write_jsonl(folder() / f"{session}.jsonl", outcome_lines(session, [True, False, True, True]))
    answer(event("Stop", session, stop_hook_active=False))
    end(session)
    wait_for_quiet()
    with warmstart.open() as ws:
        trial = TrialStore(ws.store).trial(session)
        assert trial is not None and trial.closed is not None
        measures = ws.experiments.measures(trial)
        assert measures is not None and (measures.errors, measures.judged) == (1, 4)
        arms = ws.report("holdout").arms
        assert {name: (arm.expected, arm.missing) for name, arm in arms.items()} == {"warm": (1, 0)}
    assert read_log() == ""


@pytest.mark.slow
def test_it_learns_from_what_it_read(tmp_path):
    for lines in cart_sessions(3):
        session = lines[0]["sessionId"]
        write_jsonl(folder() / f"{session}.jsonl", lines)
        answer(event("Stop", session))
    end("another")
    wait_for_quiet()
    with warmstart.open() as ws:
        assert len(ws.sessions(limit=None)) == 3
        assert [template.provenance.origin for _row, template in ws.templates.find()] == ["learned"]
        project = ws.templates.find()[0][0].project
    assert answer(start(cwd=project)), "the next session starts with it"


@pytest.mark.slow
def test_what_a_killed_session_left_is_read_when_the_next_one_starts():
    session = str(uuid.uuid4())
    write_jsonl(folder() / f"{session}.jsonl", outcome_lines(session, [True, True]))
    answer(event("Stop", session))
    answer(start(str(uuid.uuid4())))
    wait_for_quiet()
    with warmstart.open() as ws:
        assert ws.session(session).session.calls == 2


def test_only_one_is_at_work_and_none_is_left_behind(monkeypatch):
    session = str(uuid.uuid4())
    write_jsonl(folder() / f"{session}.jsonl", outcome_lines(session, [True, True]))
    queue = Queue(Path(os.environ["WARMSTART_HOME"]))
    with queue.alone() as alone:
        assert alone
        with queue.alone() as second:
            assert not second
        answer(event("Stop", session))
        with monkeypatch.context() as patch:
            patch.setattr(catch_up, "_PATIENCE", 0.5)
            catch_up.catch_up(warmstart.config.load())
        assert queue.count() == 1, "someone else is at work"
    catch_up.catch_up(warmstart.config.load())
    assert queue.count() == 0


def test_it_waits_for_a_process_that_does_not_read_the_queue():
    """Hermes learns with the lock, and what the hooks queued meanwhile waited for the next session."""
    session = str(uuid.uuid4())
    write_jsonl(folder() / f"{session}.jsonl", outcome_lines(session, [True, True]))
    queue = Queue(Path(os.environ["WARMSTART_HOME"]))
    with ThreadPoolExecutor(1) as pool:
        with queue.alone() as alone:
            assert alone
            answer(event("Stop", session))
            waiting = pool.submit(catch_up.catch_up, warmstart.config.load())
            assert not wait([waiting], timeout=1).done
            assert queue.count() == 1
        waiting.result(60)
    assert queue.count() == 0


def test_a_lock_left_by_a_killed_process_holds_nobody(tmp_path):
    code = "import os, sys; from pathlib import Path; from warmstart.ingest.queue import Queue\nwith Queue(Path(sys.argv[1])).alone() as a: print(a, flush=True); os.kill(os.getpid(), 9)"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("True\n", -9)
    with Queue(tmp_path).alone() as alone:
        assert alone


def test_what_a_crash_interrupted_is_taken_up_again(tmp_path):
    queue = Queue(tmp_path)
    file = tmp_path / "a.jsonl"
    file.write_text("{}")
    queue.add(file)
    (taken,) = queue.take()
    queue.add(file)  # it goes on meanwhile
    queue.forget([taken])
    assert [entry.transcript for entry in queue.take()] == [file]
    assert [entry.transcript for entry in queue.take()] == [file], "taken, but never finished"
    file.unlink()
    assert queue.take() == [] and queue.count() == 0


def test_damage_is_logged_and_what_waits_stays(monkeypatch):
    session = str(uuid.uuid4())
    write_jsonl(folder() / f"{session}.jsonl", outcome_lines(session, [True]))
    answer(event("Stop", session))
    home = Path(os.environ["WARMSTART_HOME"])
    (home / "warmstart.db").write_bytes(b"rubbish" * 1_000)
    monkeypatch.setattr(catch_up, "_SETTLE", 0)
    monkeypatch.setattr(os, "nice", lambda _by: 0)
    catch_up.main(str(home))
    assert "catching up: StoreError" in read_log()
    assert Queue(home).count() == 1
    (home / "warmstart.db").unlink()
    catch_up.main(str(home))
    assert Queue(home).count() == 0


@pytest.mark.slow
def test_several_sessions_at_once(taught):
    names = [str(uuid.uuid4()) for _ in range(5)]
    for name in names:
        write_jsonl(folder() / f"{name}.jsonl", outcome_lines(name, [True, True]))

    def ask(said: dict[str, Any]) -> subprocess.Popen[bytes]:
        words = [str(Path(sys.executable).with_name("warmstart")), "hook", "run", "claude-code"]
        hook = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert hook.stdin is not None
        hook.stdin.write(json.dumps(said).encode())
        hook.stdin.close()
        return hook

    for make in (start, lambda name: prompt(PROMPT, name), lambda name: event("SessionEnd", name, reason="other")):
        for hook in [ask(make(name)) for name in names]:
            assert hook.wait(timeout=60) == 0
            assert hook.stderr is not None
            assert hook.stderr.read() == b""
            hook.stderr.close()
    wait_for_quiet()
    with warmstart.open() as ws:
        closed = [TrialStore(ws.store).trial(name) for name in names]
    assert all(trial is not None and trial.closed is not None for trial in closed), read_log()
