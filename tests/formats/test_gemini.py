"""Gemini CLI sessions: documents, logs of upserts, API histories, and broken files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from formats.reading import Listener, judge, steps
from places import CORPUS, DATA, needs_corpus
from warmstart.formats import gemini
from warmstart.formats.source import Source
from warmstart.model import Message, Session, Signal, ToolCall, ToolResult, Usage

CASES = DATA / "gemini_cli"


def read(path: Path) -> tuple[list[Session], Source]:
    source = Source(path)
    return list(gemini.read(source, judge)), source


def signals_of(path: Path) -> list[tuple[str, Signal | None]]:
    listener = Listener()
    list(gemini.read(Source(path), listener))
    ids = [call.call_id if call else "" for call in listener.calls]
    return list(zip(ids, listener.signals, strict=True))


def session_of(*messages: Any) -> str:
    return json.dumps({"sessionId": "g", "projectHash": "p", "startTime": "2026-01-01T00:00:00Z", "messages": messages})


def test_status_and_exit_code_become_signals() -> None:
    assert signals_of(CASES / "case.json") == [
        ("read-1", Signal(status="ok")),
        ("sh-1", Signal(exit_code=3)),
        ("dir-1", Signal(status="error")),
        ("sh-2", Signal(status="rejected")),
    ]


def test_a_message_written_again_counts_once() -> None:
    (session,), source = read(CASES / "case-log.jsonl")
    assert session.usage == Usage(input=70, output=7, cache_read=50, reasoning=0)
    assert signals_of(CASES / "case-log.jsonl") == [("sh-9", Signal(status="ok"))]
    assert source.problems == []


def test_tokens_are_summed_with_the_thoughts_in_the_output() -> None:
    (session,), _ = read(CASES / "case.json")
    assert session.usage == Usage(input=800, output=59, cache_read=1400, reasoning=30)


def test_a_long_log_keeps_its_order(tmp_path: Path) -> None:
    path = tmp_path / "session-x.jsonl"
    rows = [{"sessionId": "g", "projectHash": "p", "startTime": "2026-01-01T00:00:00Z"}]
    for n in range(100):
        rows += [{"id": f"m{n}", "type": "gemini", "content": c} for c in ("draft", f"text {n}")]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    (session,), _ = read(path)
    assert [m.text for m in steps(session, Message)] == [f"text {n}" for n in range(100)]


def test_a_subagent_knows_its_parent(tmp_path: Path) -> None:
    folder = tmp_path / "chats" / "parent-1"
    folder.mkdir(parents=True)
    (folder / "helper.json").write_text(session_of({"id": "m", "type": "user", "content": "hi"}))
    (session,), _ = read(folder / "helper.json")
    assert session.parent == "parent-1"


def test_an_api_history_is_read(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint-x.json"
    path.write_text(
        json.dumps(
            {
                "history": [
                    {"role": "user", "parts": [{"text": "list"}]},
                    {"role": "model", "parts": [{"text": "plan", "thought": True}, {"functionCall": {"name": "ls"}}]},
                    {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {"output": "a"}}}]},
                    {"role": "model", "parts": [{"text": "There is a."}]},
                ]
            }
        )
    )
    assert gemini.sniff(Source(path).head)
    (session,), _ = read(path)
    assert [c.tool for c in steps(session, ToolCall)] == ["ls"]
    assert [r.text for r in steps(session, ToolResult)] == ["a"]
    assert [m.text for m in steps(session, Message)] == ["list", "There is a."]


def test_broken_fields_cost_themselves_only(tmp_path: Path) -> None:
    path = tmp_path / "session-x.json"
    calls = [
        {"id": "c1", "name": "a", "args": None, "result": None, "status": "executing"},
        {"id": "c2", "name": 5, "args": "x", "result": {"odd": 1}, "status": "success"},
        {"name": "b", "args": {}, "result": [None, {"functionResponse": None}], "status": "error"},
    ]
    text = session_of(
        {"id": "m0", "type": "user", "content": None},
        {"id": "m1", "type": "user", "content": [{"text": "hi"}, {"inlineData": {}}, None]},
        {"id": "m2", "type": "gemini", "content": "", "tokens": {"input": "x", "output": 2}, "toolCalls": calls},
        {"id": "m3", "type": "gemini", "content": "ok", "toolCalls": 7},
    )
    path.write_text(text.replace('"args": null', '"args": NaN'))
    (session,), source = read(path)
    assert [c.call_id for c in steps(session, ToolCall)] == ["c1", "c2", "call_3"]
    assert [r.call_id for r in steps(session, ToolResult)] == ["c2", "call_3"]
    assert [m.text for m in steps(session, Message)] == ["hi", "ok"]
    assert source.problems


def test_a_cut_off_document_gives_what_came_before(tmp_path: Path) -> None:
    text = (CASES / "case.json").read_text()
    path = tmp_path / "session-x.json"
    path.write_text(text[: text.index('"m4"')])
    assert gemini.sniff(Source(path).head)
    (session,), source = read(path)
    assert len(steps(session, ToolResult)) == 4
    assert session.end_reason == "cancelled"
    assert "the JSON is cut off" in [p.reason for p in source.problems]


@needs_corpus
@pytest.mark.parametrize("path", sorted((CORPUS / "gemini_cli").glob("*")), ids=lambda p: p.name)
def test_real_sessions_lose_nothing(path: Path) -> None:
    if path.suffix == ".jsonl":
        messages = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        document = json.loads(path.read_text())
        messages = document.get("messages") or document["history"]
    calls = [call for message in messages for call in message.get("toolCalls", ())]
    spoken = [
        m
        for m in messages
        if (m.get("type") or m.get("role")) in ("user", "gemini", "model") and (m.get("content") or m.get("parts"))
    ]
    assert gemini.sniff(Source(path).head)
    (session,), source = read(path)
    assert len(steps(session, ToolCall)) == len(calls)
    assert len(steps(session, ToolResult)) == len([c for c in calls if c.get("result")])
    assert len(steps(session, Message)) == len(spoken)
    assert source.problems == []
