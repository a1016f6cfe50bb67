"""The seed of a session is removed from its transcript."""

from __future__ import annotations

import json
from typing import Any

import pytest

import warmstart
from template_files import DEPLOY, REPORT, write_bundle
from warmstart.dialects.compose import NOTES_MARK
from warmstart.ingest.strip_seed import strip_seed
from warmstart.model import Message, Session, Task, ToolCall

TEXT = "deploy the shop to the cluster, write the quarterly report"
OWN: list[dict[str, Any]] = [
    {"role": "system", "content": "You work."},
    {"role": "user", "content": TEXT},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "x"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": '{"output": "", "exit_code": 3, "error": null}'},
    {"role": "assistant", "content": "It failed."},
]
ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": TEXT},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "terminal", "input": {"command": "x"}}],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Exit code 3\nboom", "is_error": True}
        ],
    },
]


@pytest.fixture
def ws(tmp_path):
    with warmstart.open() as opened:
        opened.templates.import_(write_bundle(tmp_path / "t.json", DEPLOY, REPORT), approve=True)
        yield opened


def check(session: Session) -> None:
    assert session.task == TEXT
    assert [call.call_id for call, _answer in session.calls()] in (["c1"], ["toolu_1"])
    assert "earlier session" not in str(session.steps)


@pytest.mark.parametrize(("dialect", "own"), [("openai", OWN), ("anthropic", ANTHROPIC)])
def test_a_recorded_seed_does_not_count_as_work_of_the_session(ws, tmp_path, dialect, own):
    seed = ws.provision(Task(text=TEXT, session="s1", dialect=dialect))
    messages = seed.inject(own)
    assert len(messages) > len(own) + 3
    path = tmp_path / f"{dialect}.json"
    path.write_text(json.dumps(messages))
    (scored,) = warmstart.inspect(path).sessions
    check(scored.session)
    assert (scored.score.counts.tool_calls, scored.score.counts.error_count) == (1, 1)
    measures = ws.experiments.measures(ws.record("s1", path))
    assert (measures.errors, measures.judged, measures.success_turn) == (1, 1, None)


def test_a_seed_of_plain_text_is_removed_too(ws, tmp_path):
    ws.experiments.start("form", "seed,text", salt="any")
    for n in range(12):
        seed = ws.provision(Task(text=TEXT, session=f"s{n}"))
        path = tmp_path / f"{n}.json"
        path.write_text(json.dumps(seed.inject(OWN)))
        (scored,) = warmstart.inspect(path).sessions
        check(scored.session)


def test_a_session_without_a_seed_stays_as_it_is():
    session = Session(
        "s", "openai_chat", "x", "a", (Message("user", "hi"), ToolCall("c", "t", {}), Message("assistant", "Noted."))
    )
    assert strip_seed(session) is session


def test_the_words_of_a_seed_later_in_a_session_stay():
    steps = (*(Message("user", f"line {n}") for n in range(20)), Message("user", f"{NOTES_MARK} is what it said"))
    session = Session("s", "openai_chat", "x", "a", steps)
    assert strip_seed(session) is session


def test_a_truncated_seed_removes_nothing_of_the_session():
    steps = (
        Message("user", NOTES_MARK),
        Message("assistant", "something else"),
        Message("user", "do it"),
        Message("assistant", "ok"),
    )
    found = strip_seed(Session("s", "openai_chat", "x", "a", steps))
    assert [step.text for step in found.steps] == ["do it", "ok"]
    assert found.task == "do it"
