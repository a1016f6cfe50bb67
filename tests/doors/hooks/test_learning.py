"""When the background process learns by itself."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path

import warmstart
from doors.hooks.events import answer_by_program as answer
from doors.hooks.events import event, start, wait_for_quiet
from transcripts import cart_sessions, write_jsonl
from warmstart.doors.hooks import catch_up
from warmstart.doors.hooks.learning import LearningTurn


def end_pause(home: Path) -> None:
    now = time.time()
    os.utime(home / "learned", (now, now))


def test_a_quick_run_needs_no_pause_and_a_long_one_does(tmp_path):
    turn = LearningTurn(tmp_path)
    assert not turn.is_due(), "nothing was read"
    turn.owe()
    assert turn.is_due()
    turn.finish(1.5)
    assert not turn.is_due(), "everything is learned"
    turn.owe()
    assert turn.is_due(), "the sessions of a small store are learned one by one"
    turn.finish(30.0)
    turn.owe()
    assert not turn.is_due()
    end_pause(tmp_path)
    assert turn.is_due()


def test_sessions_read_during_a_pause_are_learned_when_the_next_session_starts():
    home = Path(os.environ["WARMSTART_HOME"])
    for lines in cart_sessions(3):
        session = lines[0]["sessionId"]
        path = Path(os.environ["HOME"], ".claude", "projects", "-home-dev-shop", f"{session}.jsonl")
        write_jsonl(path, lines)
        answer(event("Stop", session))
    LearningTurn(home).finish(30.0)
    catch_up.catch_up(warmstart.config.load())
    with warmstart.open() as ws:
        assert len(ws.sessions(limit=None)) == 3
        assert not ws.templates.find()
    answer(start(str(uuid.uuid4())))
    assert not LearningTurn(home).is_due(), "the pause lasts"
    end_pause(home)
    answer(start(str(uuid.uuid4())))
    wait_for_quiet()
    with warmstart.open() as ws:
        assert len(ws.templates.find()) == 1
