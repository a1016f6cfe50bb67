"""ATIF trajectories: results by id and by order, labels beside the file, continuations, and broken files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from formats.reading import judge, steps
from places import CORPUS, DATA, needs_corpus
from warmstart.formats import atif
from warmstart.formats.source import Source
from warmstart.model import Message, Session, ToolCall, ToolResult, Usage

CASE = DATA / "atif" / "case.json"


def read(path: Path) -> tuple[list[Session], Source]:
    source = Source(path)
    return list(atif.read(source, judge)), source


def written(folder: Path, *steps: Any, name: str = "trajectory.json", **more: Any) -> Path:
    path = folder / name
    path.write_text(
        json.dumps({"schema_version": "ATIF-v1.5", "session_id": "s", "agent": {"name": "a"}, "steps": steps, **more})
    )
    return path


def agent_step(calls: list[str], results: list[tuple[str | None, Any]], **more: Any) -> dict[str, Any]:
    return {
        "source": "agent",
        "message": "",
        "tool_calls": [{"tool_call_id": c, "function_name": "f", "arguments": {}} for c in calls],
        "observation": {"results": [{"source_call_id": i, "content": content} for i, content in results]},
        **more,
    }


def test_results_answer_by_id_and_else_in_order(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        agent_step(["c1", "c2", "c3"], [(None, "one"), ("c1", "by id"), (None, "two"), (None, "nobody's")]),
    )
    (session,), _ = read(path)
    assert [(r.call_id, r.text) for r in steps(session, ToolResult)] == [
        ("c2", "one"),
        ("c1", "by id"),
        ("c3", "two"),
        ("step_1.result_4", "nobody's"),
    ]


def test_a_result_may_come_in_a_later_or_an_earlier_step(tmp_path: Path) -> None:
    path = written(
        tmp_path, agent_step([], [("c1", "early")]), agent_step(["c1"], []), agent_step([], [("c1", "late")])
    )
    (session,), _ = read(path)
    assert [r.text for r in steps(session, ToolResult)] == ["early", "late"]


def test_totals_win_over_sums(tmp_path: Path) -> None:
    metrics = {"prompt_tokens": 10, "completion_tokens": 2, "cached_tokens": 4, "cost_usd": 0.5}
    two = (agent_step([], [], metrics=metrics), agent_step([], [], metrics=metrics))
    (session,), _ = read(written(tmp_path, *two))
    assert session.usage == Usage(input=12, output=4, cache_read=8, cost=1.0)
    (session,), _ = read(written(tmp_path, *two, final_metrics={"total_prompt_tokens": 90}))
    assert session.usage == Usage(input=82, output=4, cache_read=8, cost=1.0)


@pytest.mark.parametrize(
    ("result", "label"),
    [
        ({"verifier_result": {"rewards": {"reward": 1.0}}}, True),
        ({"verifier_result": {"rewards": {"reward": 0.5}}}, False),
        ({"verifier_result": {"reward": 1}}, True),
        ({"verifier_result": None}, None),
        ({"verifier_result": {"rewards": {"other": 1}}}, None),
    ],
)
def test_the_label_lies_beside_the_file(tmp_path: Path, result: Any, label: bool | None) -> None:
    (tmp_path / "result.json").write_text(json.dumps(result))
    (session,), source = read(written(tmp_path, agent_step(["c"], [])))
    assert session.label is label
    assert source.problems == []
    (tmp_path / "agent").mkdir()
    (session,), _ = read(written(tmp_path / "agent", agent_step(["c"], [])))
    assert session.label is label


def test_a_broken_label_is_reported(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text('{"verifier_result": {"rewards": {"reward": "hi')
    (session,), source = read(written(tmp_path, agent_step(["c"], [])))
    assert session.label is None
    assert len(source.problems) == 1


def test_a_continuation_is_a_session_of_its_own(tmp_path: Path) -> None:
    copied = agent_step(["c1"], [("c1", "seen before")], is_copied_context=True)
    path = written(tmp_path, copied, agent_step(["c2"], [("c2", "new")]), name="trajectory.cont-1.json")
    (session,), _ = read(path)
    assert (session.id, session.parent) == ("s/cont-1", "s")
    assert [c.call_id for c in steps(session, ToolCall)] == ["c2"]


def test_the_flag_that_harbor_keeps_becomes_a_signal(tmp_path: Path) -> None:
    path = written(tmp_path, agent_step(["c"], [("c", "x")], extra={"tool_result_is_error": True}))
    (session,), _ = read(path)
    assert steps(session, ToolResult)[0].outcome.status == "error"


def test_wrong_types_cost_the_field_not_the_session(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"source": "user", "message": "go"},
        agent_step(["c1"], [("c1", None), ("c1", 7)], message=None, metrics={"prompt_tokens": "x"}),
        {"source": "agent", "message": {"odd": 1}, "tool_calls": "none", "observation": []},
        7,
        final_metrics=[],
    )
    path.write_text(path.read_text().replace('"go"', '"go", "timestamp": NaN'))
    (session,), source = read(path)
    assert session.task == "go"
    assert [r.text for r in steps(session, ToolResult)] == ["", "7"]
    assert source.problems


def test_a_cut_off_document_gives_what_came_before(tmp_path: Path) -> None:
    text = CASE.read_text()
    path = tmp_path / "trajectory.json"
    path.write_text(text[: text.index('"c5"')])
    assert atif.sniff(Source(path).head)
    (session,), source = read(path)
    assert len(steps(session, ToolCall)) == 4
    assert "the JSON is cut off" in [p.reason for p in source.problems]


@needs_corpus
@pytest.mark.parametrize("path", sorted((CORPUS / "atif").glob("*.json")), ids=lambda p: p.name)
def test_real_trajectories_lose_nothing(path: Path) -> None:
    recorded = json.loads(path.read_text())["steps"]
    results = [r for s in recorded for r in (s.get("observation") or {}).get("results", ()) if "content" in r]
    (session,), source = read(path)
    assert atif.sniff(source.head)
    assert len(steps(session, ToolCall)) == sum(len(s.get("tool_calls") or ()) for s in recorded)
    assert len(steps(session, ToolResult)) == len(results)
    assert len(steps(session, Message)) == sum(bool(s["message"].strip()) for s in recorded)
    assert source.problems == []
