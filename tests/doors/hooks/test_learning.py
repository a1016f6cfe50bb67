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
from warmstart.doors.hermes import close
from warmstart.doors.hooks import catch_up
from warmstart.doors.hooks.learning import LearningTurn, learn_in_turn
from warmstart.ingest.queue import Queue


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


def test_what_was_learned_last_is_known_and_hermes_takes_the_same_turns(tmp_path):
    for lines in cart_sessions(3):
        write_jsonl(tmp_path / "in" / f"{lines[0]['sessionId']}.jsonl", lines)
    with warmstart.open() as ws:
        home = ws.settings.home
        turn = LearningTurn(home)
        assert turn.read_last() is None and learn_in_turn(ws, has_changed=False) is None
        ws.ingest(tmp_path / "in")
        turn.finish(30.0)
        close.learn(ws, has_changed=True)
        assert turn.read_last() is None and not ws.templates.find(), "the pause lasts, whoever comes"
        end_pause(home)
        with Queue(home).alone():
            close.learn(ws, has_changed=True)
        assert turn.read_last() is None, "another process is learning"
        close.learn(ws, has_changed=False)
        last = turn.read_last()
        assert last is not None and (last.sessions, last.active, last.new) == (3, 1, 1), "made up for"
        turn.owe()
        (home / "learned").write_bytes(b"rubbish")
        end_pause(home)
        assert turn.read_last() is None and turn.is_due()
