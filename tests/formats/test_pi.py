"""Pi's sessions: outcomes as they are flagged, our own notes, broken lines, and the counts of real files."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from formats.archives import unpack
from formats.reading import Listener, steps
from places import DATA
from warmstart.formats import pi
from warmstart.formats.source import Source
from warmstart.ingest.read import inspect
from warmstart.judging.outcome import judge_result
from warmstart.model import Message, Session, Signal, ToolCall, ToolResult

CASE = DATA / "pi" / "case.jsonl"


def read(path: Path) -> tuple[Session, list[str]]:
    source = Source(path)
    assert pi.sniff(source.head)
    (session,) = pi.read(source, judge_result)
    return session, [problem.reason for problem in source.problems]


def test_facts_and_outcomes() -> None:
    session, problems = read(CASE)
    assert (session.project, session.parent, problems) == ("/srv/harbour", None, [])
    assert [result.outcome.status for result in steps(session, ToolResult)] == ["ok", "error", "cancelled"]
    assert session.usage is not None
    usage = session.usage
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == (400, 80, 160, 12)
    assert usage.cost == pytest.approx(0.004)
    assert [message.role for message in steps(session, Message)] == ["user", "assistant", "system", "assistant"]


def test_our_note_is_no_part_of_the_result_and_the_call_is_the_one_that_ran() -> None:
    listener = Listener()
    (session,) = pi.read(Source(CASE), listener)
    assert listener.texts[0] == "Rotterdam 4:10"
    assert steps(session, ToolCall)[0].arguments == {"path": "tides.csv"}
    assert listener.signals == [
        Signal(failed=False),
        Signal(failed=True, exit_code=2),
        Signal(status="cancelled"),
    ]


def test_a_result_that_only_looks_like_our_note_is_kept(tmp_path: Path) -> None:
    text = "[warmstart] corrected the call: nothing"
    lines = [json.loads(line) for line in CASE.read_text().splitlines()]
    lines[5]["message"] |= {"content": [{"type": "text", "text": text}], "details": {"warmstart": {"note": "else"}}}
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    listener = Listener()
    list(pi.read(Source(path), listener))
    assert listener.texts[0] == text


def test_broken_cut_and_glued_lines_cost_only_themselves(tmp_path: Path) -> None:
    lines = CASE.read_text().splitlines()
    lines[1] = '{"type": "model_change", "modelId": '  # broken
    lines[2] += lines[3]  # two on a line
    lines[3] = '{"type": "message", "message": {"role": "user", "content": ' + "[" * 5_000
    lines.insert(4, '{"type": "message", "message": 7, "timestamp": {}}')
    lines.insert(4, '["no entry"]')
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines)[:-40])
    session, problems = read(path)
    assert [result.outcome.status for result in steps(session, ToolResult)] == ["ok", "error", "cancelled"]
    assert session.task == "Print the tide table of Rotterdam" and len(problems) >= 3


def test_the_real_files_are_counted_like_a_plain_script_counts_them(tmp_path: Path) -> None:
    folder = unpack("formats", tmp_path) / "pi"
    expected: Counter[str] = Counter()
    for path in folder.glob("*.jsonl"):
        expected["sessions"] += 1
        for line in path.read_text().splitlines():
            message = json.loads(line).get("message") or {}
            blocks = message.get("content") if isinstance(message.get("content"), list) else []
            expected["calls"] += sum(block["type"] == "toolCall" for block in blocks)
            expected["results"] += message.get("role") == "toolResult"
            expected["flagged"] += message.get("isError") is True
    assert expected == {"sessions": 2, "calls": 845, "results": 821, "flagged": 31}
    read_back: Counter[str] = Counter()
    inspection = inspect(folder)
    for scored in inspection.sessions:
        read_back["sessions"] += 1
        read_back["calls"] += len(steps(scored.session, ToolCall))
        results = steps(scored.session, ToolResult)
        read_back["results"] += len(results)
        read_back["flagged"] += sum(r.outcome.basis == "flag" and r.outcome.status != "ok" for r in results)
    assert read_back == expected and inspection.problems == ()
