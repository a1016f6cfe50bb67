"""OpenAI chat: the many wrappers, plain Python messages, and broken files."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from formats.reading import Listener, judge, steps
from places import CORPUS, NO_CORPUS
from warmstart.formats import openai_chat
from warmstart.formats.source import Source
from warmstart.model import Message, Session, ToolCall, ToolResult, Usage


def call(call_id: Any, name: str = "look", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "Find it"},
    {"role": "assistant", "content": None, "tool_calls": [call("a", arguments='{"x": 1}')]},
    {"role": "tool", "tool_call_id": "a", "content": "found"},
    {"role": "assistant", "content": "There."},
]


@pytest.fixture
def read(tmp_path: Path) -> Iterator[Any]:
    def go(text: str | bytes, name: str = "chat.json") -> tuple[list[Session], list[str]]:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        source = Source(path)
        assert openai_chat.sniff(source.head)
        return list(openai_chat.read(source, judge)), [problem.reason for problem in source.problems]

    yield go


LAYOUTS = {
    "list": json.dumps(TALK),
    "pretty list": json.dumps(TALK, indent=2),
    "list, one message a line": "[\n" + ",\n".join(map(json.dumps, TALK)) + "\n]\n",
    "lines": "\n".join(map(json.dumps, TALK)),
    "wrapper": json.dumps({"messages": TALK}),
    "pretty wrapper": json.dumps({"model": "m", "messages": TALK}, indent=1),
    "wrapper in lines": json.dumps({"messages": TALK}) + "\n",
    "list of wrappers": json.dumps([{"conversation": TALK}], indent=2),
    "history": json.dumps({"history": TALK}, indent=2),
    "byte order mark": "\ufeff" + json.dumps({"messages": TALK}),
    "with a strange neighbour": json.dumps([{"traj": TALK, "task_id": 1, "reward": 0.0, "trial": 0}]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_steps(read: Any, layout: str) -> None:
    sessions, problems = read(LAYOUTS[layout])
    assert problems == []
    (session,) = sessions
    assert session.task == "Find it"
    assert steps(session, ToolCall) == [ToolCall("a", "look", {"x": 1})]
    assert [(r.call_id, r.text) for r in steps(session, ToolResult)] == [("a", "found")]
    assert len(steps(session, Message)) == 2


def test_lists_in_lines_are_sessions_of_their_own(read: Any) -> None:
    sessions, problems = read("\n".join(json.dumps([*TALK, {"role": "user", "content": str(n)}]) for n in range(3)))
    assert len(sessions) == 3 and len({s.id for s in sessions}) == 3 and problems == []


def test_long_lines_are_still_lines(read: Any) -> None:
    big = [{"role": "user", "content": "word " * 30_000}, *TALK]
    sessions, problems = read("\n".join(json.dumps({"messages": big, "id": n}) for n in range(3)), "x.jsonl")
    assert [s.id for s in sessions] == ["0", "1", "2"] and problems == []


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({"resolved": True}, True),
        ({"success": 0}, False),
        ({"reward": 1.0}, True),
        ({"score": 0.4}, None),
        ({"reward": "1"}, None),
        ({}, None),
    ],
)
def test_a_wrapper_may_carry_a_label(read: Any, fields: dict[str, Any], label: bool | None) -> None:
    (session,), _ = read(json.dumps({"messages": TALK, "model": "m1", **fields}))
    assert (session.label, session.model) == (label, "m1")


@pytest.mark.parametrize(
    ("usage", "known"),
    [
        ({"prompt_tokens": 90, "completion_tokens": 7}, Usage(input=90, output=7)),
        (
            {"prompt_tokens": 90, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}},
            Usage(input=30, output=7, cache_read=60),
        ),
        ({"prompt_tokens": -1, "completion_tokens": 7}, None),
        ({"prompt_tokens": "many"}, None),
        ("much", None),
        (None, None),
    ],
)
def test_a_wrapper_may_sum_up_its_tokens(read: Any, usage: Any, known: Usage | None) -> None:
    (session,), problems = read(json.dumps({"messages": TALK, "usage": usage, "project": "shop"}))
    assert (session.project, problems) == ("shop", [])
    if known is None:
        assert session.usage is not None and session.usage.basis == "estimated"
    else:
        assert session.usage == known


@pytest.mark.parametrize(("reward", "label"), [(1.0, True), (0.9999999, True), (0.5, False), (0, False), (None, None)])
def test_tau_bench_rewards(read: Any, reward: Any, label: bool | None) -> None:
    record = {"task_id": 3, "trial": 2, "reward": reward, "traj": TALK, "info": {"model": "gpt-4o"}}
    (session,), _ = read(json.dumps([record]))
    assert session.label is label
    assert session.id.startswith("3-2-") and session.source_uri.endswith("#/0")
    assert session.model == "gpt-4o"


def test_nan_and_wrong_types_cost_only_themselves(read: Any) -> None:
    messages = [
        *TALK,
        "junk",
        None,
        {"role": 5, "content": "x"},
        {"role": "assistant", "content": 7, "tool_calls": "no list"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [3, call(4, "numbered", {"y": 2}), call(None, "bare", "{")],
        },
        {"role": "tool", "tool_call_id": 4, "content": {"rows": 1}},
        {"role": "tool", "content": "without an id"},
    ]
    text = json.dumps({"messages": messages, "reward": float("nan")})
    (session,), problems = read(text)
    calls, results = steps(session, ToolCall), steps(session, ToolResult)
    assert [(c.tool, c.arguments) for c in calls] == [("look", {"x": 1}), ("numbered", {"y": 2}), ("bare", "{")]
    assert [r.text for r in results] == ["found", '{"rows":1}', "without an id"]
    assert [r.call_id for r in results][1:] == [c.call_id for c in calls][1:]
    assert session.label is None and problems


@pytest.mark.parametrize("text", [json.dumps(TALK), json.dumps({"messages": TALK}), json.dumps(TALK, indent=1)])
def test_a_cut_off_file_gives_what_is_there(read: Any, text: str) -> None:
    sessions, problems = read(text[: text.index("There") + 2])
    assert len(steps(sessions[0], ToolResult)) == 1
    assert any("cut off" in problem for problem in problems)


def test_cut_off_lines(read: Any) -> None:
    text = "\n".join(json.dumps({"id": f"s{n}", "messages": TALK}) for n in range(3))
    sessions, problems = read(text[:-20])
    assert [s.id for s in sessions] == ["s0", "s1"] and len(problems) == 1


@pytest.mark.parametrize("text", ["[]", "{}", "[[]]", "", '{"messages": []}', "null", '[{"role": "user"}]'])
def test_a_file_without_messages_is_not_claimed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    source = Source(path)
    assert not openai_chat.sniff(source.head)
    assert list(openai_chat.read(source, judge)) == []


# ---- from_messages ----


def test_from_messages_takes_a_plain_list_and_leaves_it_alone() -> None:
    before = copy.deepcopy(TALK)
    session = openai_chat.from_messages(TALK, judge, id="mine")
    assert before == TALK
    assert (session.id, session.source_uri, session.format) == ("mine", "memory:", "openai_chat")
    assert [type(step) for step in session.steps] == [Message, ToolCall, ToolResult, Message]
    assert openai_chat.from_messages(TALK, judge).id.startswith("h")


def test_the_result_is_judged_with_its_call() -> None:
    listener = Listener()
    talk = [
        {"role": "tool", "tool_call_id": "b", "content": "too early"},
        {"role": "assistant", "tool_calls": [call("b", "first")]},
        {"role": "tool", "tool_call_id": "b", "content": "one"},
        {"role": "assistant", "tool_calls": [call("b", "second"), call("c", "third")]},
        {"role": "tool", "tool_call_id": "c", "content": "three"},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
    ]
    openai_chat.from_messages(talk, listener)
    assert [call and call.tool for call in listener.calls] == [None, "first", "third", "second"]
    assert listener.texts == ["too early", "one", "three", "two"]


def test_anthropic_blocks() -> None:
    talk = [
        {"role": "user", "content": "Go"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}},
                {"type": "tool_use", "id": "t2", "name": "read", "input": {"path": "b"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "no such file", "is_error": True},
                {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "b's text"}]},
                {"type": "text", "text": "Go on."},
            ],
        },
    ]
    session = openai_chat.from_messages(talk, judge)
    assert [m.text for m in steps(session, Message)] == ["Go", "I look.", "Go on."]
    assert [c.arguments for c in steps(session, ToolCall)] == [{"path": "a"}, {"path": "b"}]
    assert [(r.text, r.outcome.status) for r in steps(session, ToolResult)] == [
        ("no such file", "error"),
        ("b's text", "unknown"),
    ]


class Dumped:
    """An object as an SDK returns it."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self) -> dict[str, Any]:
        return self.fields


def test_sdk_objects_and_junk() -> None:
    loop: list[Any] = []
    loop.append(loop)
    talk: list[Any] = [
        MappingProxyType({"role": "user", "content": "Go \ud800"}),
        Dumped(
            role="assistant", content=None, tool_calls=[Dumped(**call("a", arguments={"n": float("nan"), "l": loop}))]
        ),
        {"role": "assistant", "tool_calls": (Dumped(**call("b")),), "content": object()},
        None,
        17,
        "text",
        Dumped,
        [],
        {"role": "user", "content": loop},
    ]
    session = openai_chat.from_messages(talk, judge)
    assert session.task == "Go �"
    assert [c.call_id for c in steps(session, ToolCall)] == ["a", "b"]
    assert steps(session, ToolCall)[0].arguments == {"n": None, "l": ["[...]"]}
    assert openai_chat.from_messages([], judge).steps == ()


# ---- the corpus ----


def test_tau_bench_corpus() -> None:
    path = CORPUS / "openai_chat" / "tau-bench-gpt-4o-airline.json"
    if not path.exists():
        pytest.skip(NO_CORPUS)
    source = Source(path)
    assert openai_chat.sniff(source.head)
    sessions = list(openai_chat.read(source, judge))
    runs = json.loads(path.read_text())
    assert source.problems == []
    assert len(sessions) == len(runs) == len({s.id for s in sessions})
    for session, run in zip(sessions, runs, strict=True):
        ids = [c["id"] for m in run["traj"] for c in m.get("tool_calls") or ()]
        assert [c.call_id for c in steps(session, ToolCall)] == ids
        assert len(steps(session, ToolResult)) == sum(m["role"] == "tool" for m in run["traj"])
        assert len(steps(session, Message)) == sum(bool(m["content"]) and m["role"] != "tool" for m in run["traj"])
        assert session.label is (run["reward"] == 1.0)
        assert session.task == next(m["content"] for m in run["traj"] if m["role"] == "user")
