"""tau2: the agent's calls and not the user's; flags, rewards, and facts that follow the simulations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from formats.reading import judge, steps
from places import CORPUS, DATA, NO_CORPUS
from warmstart.formats import openai_chat, tau2
from warmstart.formats.source import Source
from warmstart.model import Message, Session, ToolCall, ToolResult

CASE = DATA / "tau2" / "case.json"


def read(path: Path) -> tuple[list[Session], list[str]]:
    source = Source(path)
    assert tau2.sniff(source.head) and not openai_chat.sniff(source.head)
    return list(tau2.read(source, judge)), [problem.reason for problem in source.problems]


def simulation(messages: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "s", "task_id": "1", "trial": 0, "reward_info": {"reward": 1.0}, "messages": messages, **fields}


def write(tmp_path: Path, value: Any) -> Path:
    path = tmp_path / "runs.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def test_the_case() -> None:
    (first, second), problems = read(CASE)
    assert problems == []
    assert [r.outcome.status for r in steps(first, ToolResult)] == ["error", "unknown"]
    assert (first.model, first.project) == ("gpt-4.1-mini", "garden")  # both stand after the simulations
    assert first.usage is not None and (first.usage.input, first.usage.output, first.usage.cost) == (120, 11, 0.02)
    assert (
        second.usage is not None and second.usage.basis == "estimated" and second.source_uri.endswith("#/simulations/1")
    )


def test_facts_before_the_simulations_and_a_bare_list(tmp_path: Path) -> None:
    whole = json.loads(CASE.read_text())
    turned = {"info": whole["info"], "simulations": whole["simulations"]}
    assert [s.steps for s in read(write(tmp_path, turned))[0]] == [s.steps for s in read(CASE)[0]]
    sessions, problems = read(write(tmp_path, whole["simulations"]))
    assert [s.id for s in sessions] == ["sim-a", "sim-b"] and sessions[0].model is None and problems == []


def test_several_results_in_one_message(tmp_path: Path) -> None:
    messages = [
        {
            "role": "assistant",
            "tool_calls": [{"id": "a", "name": "x", "arguments": {}}, {"id": "b", "name": "y", "arguments": {}}],
        },
        {
            "role": "tool",
            "tool_messages": [
                {"role": "tool", "id": "b", "content": "2", "requestor": "assistant", "error": True},
                {"role": "tool", "id": "a", "content": "1", "requestor": "assistant", "error": False},
                "junk",
            ],
        },
        {"role": "user", "tool_calls": [{"id": "u", "name": "z", "arguments": {}}]},
        {"role": "tool", "id": "u", "content": "mine"},
    ]
    (session,), _ = read(write(tmp_path, [simulation(messages)]))
    assert [(r.call_id, r.outcome.status) for r in steps(session, ToolResult)] == [("b", "error"), ("a", "unknown")]
    assert [c.tool for c in steps(session, ToolCall)] == ["x", "y"]


def test_strange_values_cost_only_themselves(tmp_path: Path) -> None:
    good = [{"role": "user", "content": "Hi"}]
    odd: list[Any] = [
        None,
        4,
        {"role": "tool", "id": "early", "content": None, "error": "maybe"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": 1, "name": None, "arguments": "text"}, []]},
        {"role": "judge", "content": "?"},
        *good,
    ]
    text = json.dumps(
        {
            "simulations": [
                simulation(odd, reward_info={"reward": float("nan")}, start_time=5, agent_cost="much"),
                simulation("none", id="t"),
                simulation([], id="u"),
                simulation(good, id=None, reward_info=None, termination_reason=["x"]),
            ],
            "info": {"agent_info": 3, "environment_info": None},
        }
    )
    sessions, problems = read(write(tmp_path, text))
    assert [s.id for s in sessions] == ["s", "1-0"] and [s.label for s in sessions] == [None, None]
    assert [c.call_id for c in steps(sessions[0], ToolCall)] == ["1"]
    assert steps(sessions[0], ToolResult)[0].outcome.status == "unknown"
    assert any("not a list" in problem for problem in problems)


def test_a_cut_off_file_gives_the_simulations_before(tmp_path: Path) -> None:
    text = CASE.read_text()
    sessions, problems = read(write(tmp_path, text[: text.index("max_steps")]))
    assert [s.id for s in sessions] == ["sim-a"]
    assert set(problems) == {"the JSON is cut off"}


@pytest.mark.parametrize("text", ["[]", '{"simulations": []}', '{"simulations": 3}', '[{"task_id": 1}]'])
def test_a_file_without_runs_is_not_claimed(tmp_path: Path, text: str) -> None:
    source = Source(write(tmp_path, text))
    assert not tau2.sniff(source.head)
    assert list(tau2.read(source, judge)) == []


@pytest.mark.parametrize("name", ["toolorchestra_airline_gpt-5_1trial", "toolorchestra_retail_gpt-5_1trial"])
def test_corpus(name: str) -> None:
    path = CORPUS / "tau2" / f"{name}.json"
    if not path.exists():
        pytest.skip(NO_CORPUS)
    sessions, problems = read(path)
    runs = json.loads(path.read_text())["simulations"]
    assert problems == [] and len(sessions) == len(runs)
    for session, run in zip(sessions, runs, strict=True):
        calls = [c["id"] for m in run["messages"] for c in m.get("tool_calls") or () if c["requestor"] == "assistant"]
        assert session.id == run["id"] and session.label is (run["reward_info"]["reward"] == 1.0)
        assert [c.call_id for c in steps(session, ToolCall)] == calls
        assert len(steps(session, ToolResult)) == sum(m["role"] == "tool" for m in run["messages"])
        assert len(steps(session, Message)) == sum(bool(m["content"]) and m["role"] != "tool" for m in run["messages"])
