"""Droid, Kimi Code, Grok CLI, Antigravity and OpenCode's older storage: their flags, files beside them, and the corpus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from places import CORPUS, DATA, needs_corpus
from warmstart import formats
from warmstart.formats.source import Source
from warmstart.judging.outcome import judge_result
from warmstart.model import Session, ToolCall, ToolResult

OTHERS = CORPUS / "other_agents"


def read_one(path: Path) -> Session:
    (session,) = formats.read(Source(path), judge_result)
    return session


def outcomes(session: Session) -> list[str]:
    return [step.outcome.status for step in session.steps if isinstance(step, ToolResult)]


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("droid/case.jsonl", ["error", "ok"]),
        ("droid/case-stream.jsonl", ["error", "error"]),
        ("kimi/case.jsonl", ["error", "rejected"]),
        ("grok/case.jsonl", ["error", "ok"]),
        ("antigravity/case.jsonl", ["error", "ok"]),
    ],
)
def test_failures_are_read_as_each_format_shows_them(case: str, expected: list[str]) -> None:
    assert outcomes(read_one(DATA / case)) == expected


def test_kimis_folders_name_the_session_and_its_subagent(tmp_path: Path) -> None:
    found = {}
    for agent in ("main", "agent-0"):
        path = tmp_path / "wd_harbour" / "session_7f" / "agents" / agent / "wire.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes((DATA / "kimi/case.jsonl").read_bytes())
        session = read_one(path)
        found[agent] = (session.id, session.parent)
    assert found == {"main": ("7f", None), "agent-0": ("7f/agent-0", "7f")}


@pytest.mark.parametrize("summary", ['{"info": {"id": "g-1", "cwd": "/home/dev/harbour"}}', "{", "[]", None])
def test_groks_summary_names_the_session_where_it_can_be_read(tmp_path: Path, summary: str | None) -> None:
    path = tmp_path / "chat_history.jsonl"
    path.write_bytes((DATA / "grok/case.jsonl").read_bytes())
    if summary is not None:
        (tmp_path / "summary.json").write_text(summary)
    session = read_one(path)
    assert (session.id == "g-1", session.project) == (
        (True, "/home/dev/harbour") if "g-1" in (summary or "") else (False, None)
    )


class Storage:
    """OpenCode's folder of one session."""

    def __init__(self, folder: Path, *, loose: bool = False) -> None:
        self.folder, self.loose, self._parts = folder, loose, 0
        self.session = self.write(
            "session/harbour/ses_tide.json", json.loads((DATA / "opencode_storage/case.json").read_text())
        )

    def write(self, name: str, record: dict[str, Any]) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record))
        return path

    def say(self, message: str, role: str, *parts: dict[str, Any]) -> None:
        at = 1790841600000 + 1000 * self._parts
        self.write(
            f"message/ses_tide/{message}.json",
            {"id": message, "sessionID": "ses_tide", "role": role, "time": {"created": at}},
        )
        for part in parts:
            self._parts += 1
            name = f"part/{self._parts:03}.json" if self.loose else f"part/{message}/{self._parts:03}.json"
            self.write(name, {"id": f"p{self._parts}", "messageID": message} | part)

    def fill(self) -> None:
        state = {
            "status": "completed",
            "input": {"command": "python tide.py"},
            "output": "not found",
            "metadata": {"exit": 127},
        }
        self.say("m1", "user", {"type": "text", "text": "Print the tide table"})
        self.say(
            "m2",
            "assistant",
            {"type": "tool", "tool": "bash", "callID": "c1", "state": state},
            {"type": "text", "text": "No."},
        )


@pytest.mark.parametrize("loose", [False, True])
def test_messages_and_parts_of_opencode_lie_in_files_of_their_own(tmp_path: Path, loose: bool) -> None:
    storage = Storage(tmp_path, loose=loose)
    storage.fill()
    session = read_one(storage.session)
    assert (session.id, session.task, session.project) == ("ses_tide", "Print the tide table", "/home/dev/harbour")
    assert outcomes(session) == ["error"]
    pieces = [path for path in tmp_path.rglob("*.json") if path != storage.session]
    assert [list(formats.read(Source(path), judge_result)) for path in pieces] == [[]] * len(pieces)


def test_a_damaged_part_costs_only_itself(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    storage.fill()
    (tmp_path / "part/m2/002.json").write_text('{"type": "to')
    source = Source(storage.session)
    (session,) = formats.read(source, judge_result)
    assert [problem.reason for problem in source.problems] == ["m2/002.json is damaged and was left out"]
    assert (outcomes(session), session.task) == ([], "Print the tide table")


def test_the_id_of_a_session_is_no_path(tmp_path: Path) -> None:
    storage = Storage(tmp_path / "storage")
    storage.session.write_text(storage.session.read_text().replace("ses_tide", "../../secret"))
    storage.write("../secret/m1.json", {"id": "m1", "sessionID": "x", "role": "user", "time": {"created": 1}})
    assert list(formats.read(Source(storage.session), judge_result)) == []


def load(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def count_plainly(path: Path) -> tuple[int, int]:
    """Count calls and results, with nothing of Warmstart."""
    records = load(path)
    blocks = [
        b
        for r in records
        if isinstance(m := r.get("message"), dict)
        for b in m.get("content") or ()
        if isinstance(b, dict)
    ]
    events = [r.get("event") or {} for r in records]
    calls = sum(b.get("type") == "tool_use" for b in blocks) + sum(r.get("type") == "tool_call" for r in records)
    calls += sum(e.get("type") == "tool.call" for e in events) + sum(len(r.get("tool_calls") or ()) for r in records)
    results = sum(b.get("type") == "tool_result" for b in blocks) + sum(r.get("type") == "tool_result" for r in records)
    return calls, results + sum(e.get("type") == "tool.result" for e in events)


@needs_corpus
@pytest.mark.parametrize("agent", ["droid", "kimi", "grok"])
def test_counts_of_the_corpus_agree_with_a_plain_script(agent: str) -> None:
    files = sorted((OTHERS / agent).rglob("*.jsonl"))
    assert files
    for path in files:
        session = read_one(path)
        steps = session.steps
        found = (sum(isinstance(s, ToolCall) for s in steps), sum(isinstance(s, ToolResult) for s in steps))
        assert (session.format, found) == (agent, count_plainly(path)), path.name


@needs_corpus
def test_opencodes_storage_in_the_corpus() -> None:
    read = [read_one(path) for path in sorted((OTHERS / "opencode").glob("*/session/*/*.json"))]
    assert [(s.id, sum(isinstance(step, ToolCall) for step in s.steps)) for s in read] == [
        ("s_stage0_drift", 1),
        ("s_stage0_large", 1),
        ("s_stage0_small", 1),
    ]
