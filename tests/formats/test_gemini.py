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
from warmstart.judging.outcome import judge_result
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
        ("dir-1", Signal(failed=True)),
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


class TestVersion061:
    """Logs as version 0.61 writes them; the fixture is one that it wrote, with other paths."""

    def test_a_resumed_log_counts_every_call_once_with_its_status(self) -> None:
        (session,) = gemini.read(Source(CASES / "case-resumed.jsonl"), judge_result)
        outcomes = [result.outcome.status for result in steps(session, ToolResult)]
        assert outcomes == ["error", "error", "ok", "denied", "ok", "error"]
        said = [message.text for message in steps(session, Message) if message.role == "user"]
        assert said == ["show the settings", "again"]

    def test_what_hooks_added_is_no_part_of_a_result(self) -> None:
        (session,), _ = read(CASES / "case-resumed.jsonl")
        assert not any("hook_context" in result.text for result in steps(session, ToolResult))

    def test_a_note_behind_an_error_is_no_part_of_it(self, tmp_path: Path) -> None:
        error = {"error": "File not found: a\n\n[warmstart] `a` is not here\n[warmstart] `b` is"}
        answer = [{"functionResponse": {"id": "c", "name": "read_file", "response": error}}]
        call = {"id": "c", "name": "read_file", "args": {}, "status": "error", "result": answer}
        path = tmp_path / "session-x.json"
        path.write_text(session_of({"id": "m", "type": "gemini", "content": "", "toolCalls": [call]}))
        (session,), _ = read(path)
        assert steps(session, ToolResult)[0].text == "File not found: a"

    def test_the_project_is_the_folder_that_is_noted_beside_the_logs(self, tmp_path: Path) -> None:
        for folder in (tmp_path / "chats", tmp_path / "chats" / "parent-1"):
            folder.mkdir()
            (folder / "session-x.json").write_text(session_of({"id": "m", "type": "user", "content": "hi"}))
        (tmp_path / ".project_root").write_text("/home/ann/shop\n")
        for folder in (tmp_path / "chats", tmp_path / "chats" / "parent-1"):
            (session,), _ = read(folder / "session-x.json")
            assert session.project == "/home/ann/shop"
        (tmp_path / ".project_root").write_bytes(b"\xff\0")
        (session,), _ = read(tmp_path / "chats" / "session-x.json")
        assert session.project == "p"

    def test_a_log_whose_first_lines_another_session_deleted_is_still_read(self, tmp_path: Path) -> None:
        path = tmp_path / "session-2026-11-17T10-12-c478ebbb.jsonl"
        path.write_text("".join((CASES / "case-resumed.jsonl").read_text().splitlines(keepends=True)[2:9]))
        assert gemini.sniff(Source(path).head)
        (session,), source = read(path)
        assert (len(steps(session, ToolCall)), source.problems) == (1, [])

    def test_an_empty_log_is_no_session(self, tmp_path: Path) -> None:
        path = tmp_path / "session-x.jsonl"
        path.write_text("".join((CASES / "case-resumed.jsonl").read_text().splitlines(keepends=True)[:2]))
        assert read(path)[0] == []


def count_plainly(messages: list[dict[str, Any]]) -> tuple[int, int, int]:
    """Count calls, results and failures as a script without our readers would."""
    calls = [call for message in messages for call in message.get("toolCalls", ())]
    printed = [json.dumps(call.get("result")) for call in calls if call.get("status") == "success"]
    failures = sum(call.get("status") in ("error", "cancelled") for call in calls)
    return (
        len(calls),
        sum(bool(call.get("result")) for call in calls),
        failures + sum("Exit Code: " in text and "Exit Code: 0" not in text for text in printed),
    )


@needs_corpus
@pytest.mark.parametrize("path", sorted((CORPUS / "gemini_cli").glob("session-*.json")), ids=lambda p: p.name)
def test_real_sessions_have_as_many_failures_as_a_plain_script_counts(path: Path) -> None:
    (session,) = gemini.read(Source(path), judge_result)
    answers = steps(session, ToolResult)
    flagged = [
        a for a in answers if a.outcome.basis in ("flag", "exit_code") and a.outcome.status not in ("ok", "unknown")
    ]
    counted = len(steps(session, ToolCall)), len(answers), len(flagged)
    assert counted == count_plainly(json.loads(path.read_text())["messages"])
