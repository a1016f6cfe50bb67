"""Qwen Code sessions: statuses, the person's words, subagents, broken files, and the corpus counted a second way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from formats.reading import Listener, judge, steps
from places import CORPUS, DATA, needs_corpus
from warmstart.formats import qwen
from warmstart.formats.source import Source
from warmstart.judging.outcome import judge_result
from warmstart.model import Message, Session, Signal, ToolCall, ToolResult, Usage

CASES = DATA / "qwen_code"
SAMPLES = sorted((CORPUS / "other_agents" / "qwen").glob("*.jsonl"))


def read(path: Path) -> tuple[list[Session], Source]:
    source = Source(path)
    return list(qwen.read(source, judge)), source


def make_record(kind: str, *parts: Any, **fields: Any) -> dict[str, Any]:
    return {"uuid": "u", "sessionId": "s", "type": kind, "message": {"parts": list(parts)}} | fields


def make_call(call_id: str, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"functionCall": {"id": call_id, "name": tool, "args": arguments}}


def make_result(call_id: str, tool: str, response: Any, **outcome: Any) -> dict[str, Any]:
    part = {"functionResponse": {"id": call_id, "name": tool, "response": response}}
    return make_record("tool_result", part, toolCallResult={"callId": call_id} | outcome)


def write(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_statuses_and_exit_codes_become_signals() -> None:
    listener = Listener()
    list(qwen.read(Source(CASES / "case.jsonl"), listener))
    assert listener.signals == [
        Signal(failed=True),
        Signal(exit_code=2),
        Signal(status="ok"),
        Signal(status="rejected"),
        Signal(status="denied"),
    ]


def test_outcomes_are_those_that_a_person_would_name() -> None:
    (session,) = qwen.read(Source(CASES / "case.jsonl"), judge_result)
    outcomes = [result.outcome.status for result in steps(session, ToolResult)]
    assert outcomes == ["error", "error", "ok", "rejected", "denied"]


def test_a_note_of_ours_is_no_part_of_a_result() -> None:
    (session,), _ = read(CASES / "case.jsonl")
    assert steps(session, ToolResult)[0].text == "File not found: /home/ann/shop/settings.yml"


def test_only_what_the_person_typed_is_the_users() -> None:
    (session,), _ = read(CASES / "case.jsonl")
    said = [message.text for message in steps(session, Message) if message.role == "user"]
    assert said == ["show the settings", "keep the data"]
    assert (session.task, session.project, session.model) == ("show the settings", "/home/ann/shop", "qwen3-coder-plus")


def test_records_of_one_message_are_paid_once_and_thoughts_are_not_added_twice() -> None:
    (session,), _ = read(CASES / "case.jsonl")
    assert session.usage == Usage(input=300, output=50, cache_read=200, reasoning=20)


def test_thoughts_beside_the_output_are_added(tmp_path: Path) -> None:
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "thoughtsTokenCount": 3, "totalTokenCount": 18}
    path = write(tmp_path / "a.jsonl", make_record("assistant", {"text": "hi"}, usageMetadata=usage))
    (session,), _ = read(path)
    assert (session.usage.output, session.usage.reasoning) == (8, 3)


def test_a_subagent_has_an_id_of_its_own_and_knows_its_parent() -> None:
    (session,) = qwen.read(Source(CASES / "case-subagent.jsonl"), judge_result)
    assert session.id == f"{session.parent}/general-purpose-c9" and session.parent
    assert [result.outcome.status for result in steps(session, ToolResult)] == ["error"]
    assert session.task == "look at the settings"


@pytest.mark.parametrize(
    ("command", "code", "expected"),
    [("grep nothing a.txt", 1, "ok"), ("grep x nowhere", 2, "error"), ("make", 0, "ok")],
)
def test_a_command_is_judged_by_its_exit_code_whatever_the_status(
    tmp_path: Path, command: str, code: int, expected: str
) -> None:
    output = "grep: nowhere: No such file or directory" if code == 2 else "(empty)"
    printed = (
        f"Command: {command}\nDirectory: (root)\nOutput: {output}\nError: (none)\nExit Code: {code}\nSignal: (none)"
    )
    path = write(
        tmp_path / "a.jsonl",
        make_record("assistant", make_call("c", "run_shell_command", command=command)),
        make_result("c", "run_shell_command", {"output": printed}, status="success"),
    )
    (session,) = qwen.read(Source(path), judge_result)
    (result,) = steps(session, ToolResult)
    assert (result.outcome.status, result.outcome.basis) == (expected, "exit_code")


def test_strange_and_hostile_fields_cost_themselves_only(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(
        path,
        make_record("user", {"text": "hi"}, 5, None, {"text": 7}, systemPayload=[1]),
        make_record("assistant", {"functionCall": "x"}, {"functionCall": {"id": 1, "name": 2, "args": "3"}}),
        make_record("assistant", make_call("c1", "a"), usageMetadata={"promptTokenCount": "x", "totalTokenCount": -1}),
        make_result("c1", "a", {"output": {"deep": [1]}}, status=["x"]),
        make_record("tool_result", {"functionResponse": None}, {"functionResponse": {"response": "bare"}}),
        {"uuid": "u", "sessionId": "s", "type": "assistant", "message": "text"},
        {"uuid": "u", "sessionId": "s", "type": "nonsense"},
    )
    broken = b'{"uuid": "u", "sessionId": "s", "type": "user", "message": {"parts": [{"text": "cut'
    glued = json.dumps(make_record("assistant", {"text": "one"})) + json.dumps(
        make_record("assistant", {"text": "two"})
    )
    path.write_bytes(path.read_bytes() + b"\xff\xfe rubbish\n" + glued.encode() + b"\n" + broken)
    assert qwen.sniff(Source(path).head)
    (session,), source = read(path)
    assert [call.call_id for call in steps(session, ToolCall)] == ["1", "c1"]
    assert [message.text for message in steps(session, Message)][:3] == ["hi", "one", "two"]
    assert source.problems


def count_plainly(path: Path) -> tuple[int, int, int]:
    """Count calls, results and failures as a script without our readers would."""
    decoder, calls, results, failures = json.JSONDecoder(), 0, 0, 0
    text = path.read_text()
    at = 0
    while at < len(text):
        record, at = decoder.raw_decode(text, at)
        parts = record.get("message", {}).get("parts", [])
        calls += sum("functionCall" in part for part in parts)
        results += sum("functionResponse" in part for part in parts if record["type"] == "tool_result")
        failures += record.get("toolCallResult", {}).get("status") in ("error", "cancelled")
        at += len(text[at:]) - len(text[at:].lstrip())
    return calls, results, failures


@needs_corpus
def test_the_corpus_is_there() -> None:
    assert len(SAMPLES) == 6


@needs_corpus
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_samples_lose_nothing(path: Path) -> None:
    assert qwen.sniff(Source(path).head)
    source = Source(path)
    (session,) = qwen.read(source, judge_result)
    answers = steps(session, ToolResult)
    failed = [answer for answer in answers if answer.outcome.status not in ("ok", "unknown")]
    assert (len(steps(session, ToolCall)), len(answers), len(failed)) == count_plainly(path)
