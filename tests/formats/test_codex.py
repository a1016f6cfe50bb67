"""Codex rollouts and `codex exec --json` streams: shapes, outcomes and broken files."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import zstandard
from msgspec import structs

from formats.reading import Listener, judge, steps
from places import CORPUS, DATA, needs_corpus
from warmstart.formats import anthropic, atif, codex, codex_exec, gemini
from warmstart.formats.source import Source
from warmstart.ingest.records import session_key
from warmstart.model import Message, Session, Signal, ToolCall, ToolResult, Usage


def item(**payload: Any) -> str:
    return json.dumps({"timestamp": "2026-02-03T09:00:00Z", "type": "response_item", "payload": payload})


def event(**payload: Any) -> str:
    return json.dumps({"timestamp": "2026-02-03T09:00:01Z", "type": "event_msg", "payload": payload})


META = json.dumps({"timestamp": "2026-02-03T09:00:00Z", "type": "session_meta", "payload": {"id": "s1", "cwd": "/w"}})
ASKED = item(type="message", role="user", content=[{"type": "input_text", "text": "go"}])


def read(path: Path, module: ModuleType = codex) -> tuple[list[Session], Source]:
    source = Source(path)
    return list(module.read(source, judge)), source


def written(folder: Path, *lines: str) -> Path:
    path = folder / "rollout-x.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_packed_rollout_reads_like_the_plain_one(tmp_path: Path) -> None:
    plain = DATA / "codex" / "case.jsonl"
    packed = tmp_path / "case-zst.jsonl.zst"
    packed.write_bytes(zstandard.ZstdCompressor().compress(plain.read_bytes()))
    assert codex.sniff(Source(packed).head)
    (one,), (other,) = read(plain)[0], read(packed)[0]
    assert (one.id, one.steps, one.usage) == (other.id, other.steps, other.usage)


def test_a_cut_off_zst_gives_what_came_before(tmp_path: Path) -> None:
    lines = [META, ASKED] + [
        line
        for n in range(20_000)
        for line in (
            item(type="function_call", name="shell", arguments="{}", call_id=f"c{n}"),
            item(type="function_call_output", call_id=f"c{n}", output=f"{n * 7919:x}"),
        )
    ]
    packed = zstandard.ZstdCompressor(level=1).compress("\n".join(lines).encode())
    path = tmp_path / "rollout-x.jsonl.zst"
    path.write_bytes(packed[: len(packed) // 2])
    (session,), source = read(path)
    assert session.id == "s1"
    assert 0 < len(steps(session, ToolResult)) < 20_000
    assert source.problems


def test_a_cut_off_line_is_reported_and_the_rest_kept(tmp_path: Path) -> None:
    text = (DATA / "codex" / "case.jsonl").read_text()
    path = tmp_path / "rollout-x.jsonl"
    path.write_text(text[: text.index("turn_aborted") + 5])
    (session,), source = read(path)
    assert len(steps(session, ToolCall)) == 4
    assert session.end_reason is None
    assert [p.reason for p in source.problems] == ["the JSON is cut off"]


def test_wrong_types_cost_the_field_not_the_session(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        META,
        item(type="message", role="user", content=None),
        item(type="message", role="user", content=[None, 3, {"text": 4}, {"type": "input_text", "text": "go"}]),
        item(type="function_call", name=7, arguments=[1], call_id="c1"),
        item(type="function_call_output", call_id="c1", output=17),
        event(type="token_count", info={"total_token_usage": {"input_tokens": "many"}}),
        '{"timestamp": NaN, "type": "response_item", "payload": {"type": "function_call", "name": "f", "call_id": "c2"}}',
        '{"type": "response_item", "payload": "text"}',
        "[1, 2]",
        "not json",
    )
    (session,), source = read(path)
    assert [(c.call_id, c.tool) for c in steps(session, ToolCall)] == [("c1", "function"), ("c2", "f")]
    assert session.task == "go"
    assert {p.line for p in source.problems} >= {4, 6, 10}


def test_results_find_their_calls_in_any_order(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        META,
        item(type="function_call_output", call_id="late", output="before its call"),
        item(type="function_call", name="a", arguments="{}", call_id="c1"),
        item(type="function_call", name="b", arguments="{}", call_id="c2"),
        item(type="function_call", name="never", arguments="{}", call_id="c3"),
        item(type="function_call_output", call_id="c2", output="two"),
        item(type="function_call_output", call_id="c1", output="one"),
    )
    listener = Listener()
    (session,) = codex.read(Source(path), listener)
    assert [call and call.call_id for call in listener.calls] == [None, "c2", "c1"]
    assert [r.call_id for r in steps(session, ToolResult)] == ["late", "c2", "c1"]
    assert len(steps(session, ToolCall)) == 3


@pytest.mark.parametrize(
    ("output", "text", "signal"),
    [
        ('{"output":"x\\n","metadata":{"exit_code":2,"duration_seconds":0.1}}', "x\n", Signal(exit_code=2)),
        ('{"output":"{\\"a\\": 1}"}', '{"output":"{\\"a\\": 1}"}', None),
        ("Exit code: 1\nWall time: 0.2 seconds\nOutput:\nno", "no", Signal(exit_code=1)),
        ("Exit code: 1\nWall time: 0.2 seconds\nTotal output lines: 9\nOutput:\nno", "no", Signal(exit_code=1)),
        ("Chunk ID: a\nWall time: 1 seconds\nProcess exited with code 0\nOutput:\n", "", Signal(exit_code=0)),
        ("Wall time: 1 seconds\nProcess running with session ID 3\nOutput:\n", None, None),
        ("failed in sandbox X with execution error: denied, exit code: 2, stdout: ", None, Signal(exit_code=2)),
        ("it printed\nExit code: 3\n", None, None),
        ("patch rejected by user", None, Signal(status="rejected", basis="text")),
        ("aborted", None, Signal(status="cancelled", basis="text")),
        ("aborted by user after 5.0s", None, Signal(status="cancelled", basis="text")),
        ("Wall time: 2.0 seconds\naborted by user", None, Signal(status="cancelled", basis="text")),
        ("the build aborted", None, None),
        ([{"type": "input_text", "text": "Exit code: 0\nWall time: 1\nOutput:\nok"}], "ok", Signal(exit_code=0)),
        ({"type": "input_text", "text": "ok"}, "ok", None),
        ({"content": "no", "success": False}, "no", Signal(failed=True)),
        ({"stdout": "a", "stderr": "b", "exitCode": 1}, "a\nb", Signal(exit_code=1)),
        (None, "", None),
    ],
)
def test_the_outcome_is_taken_out_of_its_wrapping(
    tmp_path: Path, output: Any, text: str | None, signal: Signal | None
) -> None:
    path = written(
        tmp_path,
        META,
        item(type="function_call", name="shell", arguments="{}", call_id="c"),
        item(type="function_call_output", call_id="c", output=output),
    )
    listener = Listener()
    list(codex.read(Source(path), listener))
    assert (listener.texts, listener.signals) == ([output if text is None else text], [signal])


def test_tokens_leave_the_cached_ones_out_of_the_input() -> None:
    (session,), _ = read(DATA / "codex" / "case.jsonl")
    assert session.usage == Usage(input=1200, output=300, cache_read=4000, reasoning=120)
    assert session.project == "/home/ada/tide"
    assert session.started is not None


def test_an_abort_is_forgotten_when_the_work_goes_on(tmp_path: Path) -> None:
    aborted = event(type="turn_aborted", reason="interrupted")
    note = item(
        type="message", role="user", content=[{"type": "input_text", "text": "<turn_aborted>\n</turn_aborted>"}]
    )
    (session,), _ = read(written(tmp_path, META, ASKED, aborted, note))
    assert session.end_reason == "aborted:interrupted"
    (session,), _ = read(written(tmp_path, META, ASKED, aborted, note, ASKED))
    assert session.end_reason is None


def ran(call_id: str, command: Any, **more: Any) -> str:
    return event(type="item_completed", item={"type": "CommandExecution", "id": call_id, "command": command} | more)


def test_a_corrected_command_is_the_one_that_ran(tmp_path: Path) -> None:
    """As Codex 0.166 records it: the model's own words, our hook's, and then what ran."""
    told = [{"type": "input_text", "text": "[warmstart] corrected the call: `a.yml` is not here; `a.yaml` is"}]
    lines = (
        item(type="function_call", name="exec_command", arguments='{"cmd": "cat a.yml"}', call_id="c1"),
        item(type="message", role="developer", content=told),
        ran("c1", ["/bin/bash", "-lc", "cat a.yaml"]),
        item(type="function_call_output", call_id="c1", output="Exit code: 0\nWall time: 0 s\nOutput:\nx"),
        ran("c1", ["/bin/bash", "-lc", "late"]),
        item(type="function_call", name="exec_command", arguments='{"cmd": "ls"}', call_id="c2"),
        *(ran("c2", odd) for odd in (None, "ls", ["ls"], ["bash", "-lc", 1], ["python", "-c", "x"], [[], {}, ""])),
        event(type="item_completed", item="odd"),
        event(type="item_completed"),
    )
    (session,), source = read(written(tmp_path, META, ASKED, *lines))
    assert [step.arguments for step in session.steps if isinstance(step, ToolCall)] == [
        {"cmd": "cat a.yaml"},
        {"cmd": "ls"},
    ]
    assert source.problems == []
    (untold,), _ = read(written(tmp_path, META, ASKED, lines[0], *lines[2:]))
    assert next(step.arguments for step in untold.steps if isinstance(step, ToolCall)) == {"cmd": "cat a.yml"}


def test_only_the_first_session_meta_counts(tmp_path: Path) -> None:
    (session,), _ = read(written(tmp_path, META, META.replace("s1", "parent"), ASKED))
    assert session.id == "s1"


def test_exec_usage_counts_from_the_start_of_the_thread() -> None:
    sessions, _ = read(DATA / "codex_exec" / "case-runs.jsonl", codex_exec)
    assert sessions[0].usage == Usage(input=160, output=12, cache_read=100)
    assert sessions[1].usage is None


def test_exec_outcomes() -> None:
    listener = Listener()
    list(codex_exec.read(Source(DATA / "codex_exec" / "case.jsonl"), listener))
    assert [call and call.call_id for call in listener.calls] == ["item_2", "item_1", "item_4", "item_5"]
    assert listener.texts == ["no such port", "make: *** No rule\n", "", "completed"]
    signals = [Signal(failed=True), Signal(exit_code=2), Signal(status="rejected"), Signal(failed=False)]
    assert listener.signals == signals


def test_exec_survives_broken_lines(tmp_path: Path) -> None:
    path = tmp_path / "stream.jsonl"
    path.write_text(
        '{"type":"thread.started","thread_id":"t"}\n'
        '{"type":"item.completed","item":null}\n'
        '{"type":"item.completed","item":{"id":3,"type":"command_execution","command":["ls"],"exit_code":"x"}}\n'
        '{"type":"item.started","item":{"id":"i","type":"command_execution","command":"sleep 9"}}\n'
        '{"type":"turn.completed","usage":{"input_tokens":NaN,"output_tokens":4}}\n'
        '{"type":"item.compl'
    )
    (session,), source = read(path, codex_exec)
    assert [c.tool for c in steps(session, ToolCall)] == ["shell", "shell"]
    assert len(steps(session, ToolResult)) == 1
    assert session.usage == Usage(output=4)
    assert "the JSON is cut off" in [p.reason for p in source.problems]


def test_a_single_line_stream_is_a_session_without_steps(tmp_path: Path) -> None:
    path = tmp_path / "stream.jsonl"
    path.write_text('{"type":"thread.started","thread_id":"t"}\n')
    assert codex_exec.sniff(Source(path).head)
    (session,), source = read(path, codex_exec)
    assert (session.id, session.steps, source.problems) == ("t", (), [])


@needs_corpus
@pytest.mark.parametrize("path", sorted((CORPUS / "codex").glob("*.jsonl")), ids=lambda p: p.name[:32])
def test_real_rollouts_lose_nothing(path: Path) -> None:
    calls = results = messages = 0
    for line in path.read_text().splitlines():
        if not line.strip():
            continue
        record = json.loads(line)
        if record.get("type") not in ("response_item", None, "function_call", "function_result"):
            continue
        payload = record.get("payload", record)
        kind = payload.get("type", "message")
        calls += kind in ("function_call", "custom_tool_call", "tool_call", "web_search_call", "tool_search_call",
                          "image_generation_call")  # fmt: skip
        results += kind in ("function_call_output", "custom_tool_call_output", "tool_result", "function_result",
                            "tool_search_output")  # fmt: skip
        texts = [payload] if not isinstance(payload.get("content"), list) else payload["content"]
        injected = any(str(t.get("text", "")).startswith("<environment_context>") for t in texts)
        messages += kind == "message" and payload.get("role") in ("user", "assistant") and not injected
    assert codex.sniff(Source(path).head)
    (session,), source = read(path)
    assert (len(steps(session, ToolCall)), len(steps(session, ToolResult))) == (calls, results)
    assert len(steps(session, Message)) == messages
    assert source.problems == []


@needs_corpus
@pytest.mark.parametrize("path", sorted((CORPUS / "codex_exec").glob("*.jsonl")), ids=lambda p: p.name)
def test_real_streams_lose_nothing(path: Path) -> None:
    records = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    done = [r["item"]["type"] for r in records if r["type"] == "item.completed"]
    assert codex_exec.sniff(Source(path).head)
    sessions, source = read(path, codex_exec)
    assert len(sessions) == len({r["thread_id"] for r in records if r["type"] == "thread.started"})
    acted = sum(kind in ("command_execution", "file_change", "mcp_tool_call") for kind in done)
    assert sum(len(steps(s, ToolCall)) for s in sessions) == acted
    assert sum(len(steps(s, ToolResult)) for s in sessions) == acted
    assert sum(len(steps(s, Message)) for s in sessions) == done.count("agent_message")
    assert source.problems == []


@pytest.mark.parametrize("module", [anthropic, atif, codex, codex_exec, gemini])
def test_odd_records_do_not_upset_a_sniff(tmp_path: Path, module: ModuleType) -> None:
    odd: list[Any] = [[], {}, None, 7, "x", [{}], {"role": []}]
    names = (
        "type",
        "payload",
        "item",
        "role",
        "content",
        "messages",
        "history",
        "sessionId",
        "startTime",
        "schema_version",
    )
    path = tmp_path / "odd.jsonl"
    for value in odd:
        record = dict.fromkeys(names, value)
        for text in (json.dumps(record), json.dumps([record]), f"{json.dumps(record)}\n{json.dumps(record)}\n"):
            path.write_text(text)
            assert module.sniff(Source(path).head) is False


def test_a_list_of_plugins_is_not_the_request(tmp_path):
    """Codex 0.144 puts it in front of the request; the session keeps the key that it had while it was taken for one."""
    said = "<recommended_plugins>\nHere is a list of plugins that are available\n</recommended_plugins>"
    lines = [
        {"type": "session_meta", "payload": {"id": "s-1", "cwd": "/w"}},
        *(
            {
                "type": "response_item",
                "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]},
            }
            for text in (said, "fix the parser")
        ),
    ]
    path = tmp_path / "rollout-1.jsonl"
    path.write_text("".join(json.dumps({"timestamp": "2026-10-01T10:00:00Z"} | line) + "\n" for line in lines))
    (session,) = codex.read(Source(path), judge)
    assert session.task == "fix the parser"
    assert session_key(session) == session_key(structs.replace(session, task=said, opening=None))
