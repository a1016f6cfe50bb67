"""Anthropic message lists, Cline and Roo tasks with native and with XML calls, and broken files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from formats.reading import Listener, judge, steps
from places import DATA
from warmstart.formats import anthropic
from warmstart.formats.source import Source
from warmstart.model import Message, Session, Signal, ToolCall, ToolResult, Usage

CASES = DATA / "anthropic"

CALL = {"type": "tool_use", "id": "t1", "name": "ls", "input": {"path": "."}}
ANSWER = {"type": "tool_result", "tool_use_id": "t1", "content": "a"}


def read(path: Path) -> tuple[list[Session], Source]:
    source = Source(path)
    return list(anthropic.read(source, judge)), source


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": c} if isinstance(c, str) else c for c in content]}


def assistant(*content: Any) -> dict[str, Any]:
    return {**user(*content), "role": "assistant"}


def written(folder: Path, value: Any, name: str = "messages.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(json.dumps(value))
    return path


TALK = [{"role": "user", "content": "list"}, assistant("I look.", CALL), user(ANSWER), assistant("Only a.")]


@pytest.mark.parametrize("wrap", ["list", "object", "lines"])
def test_every_wrapping_reads_the_same(tmp_path: Path, wrap: str) -> None:
    path = tmp_path / "m.json"
    if wrap == "list":
        path.write_text(json.dumps(TALK, indent=2))
    elif wrap == "object":
        path.write_text(json.dumps({"model": "claude-x", "messages": TALK}))
    else:
        path.write_text("\n".join(json.dumps(m) for m in TALK))
    assert anthropic.sniff(Source(path).head)
    (session,), source = read(path)
    assert [type(step) for step in session.steps] == [Message, Message, ToolCall, ToolResult, Message]
    assert session.task == "list"
    assert source.problems == []


@pytest.mark.parametrize(
    ("folder", "agent"),
    [("saoudrizwan.claude-dev", "cline"), ("rooveterinaryinc.roo-cline", "roo-code"), ("elsewhere", "anthropic")],
)
def test_a_task_folder_names_session_and_agent(tmp_path: Path, folder: str, agent: str) -> None:
    place = tmp_path / folder / "tasks" / "1738000000000"
    path = written(place, [{**m, "ts": 1738000000000 + n} for n, m in enumerate(TALK)], "api_conversation_history.json")
    assert anthropic.sniff(Source(path).head)
    (session,), _ = read(path)
    assert (session.id, session.agent, session.started) == ("1738000000000", agent, 1738000000.0)
    for other, value in (("ui_messages.json", [{"ts": 1, "type": "say", "say": "text", "text": "list"}]),
                         ("task_metadata.json", {"files_in_context": [], "model_usage": []})):  # fmt: skip
        assert not anthropic.sniff(Source(written(place, value, other)).head)


def test_plain_openai_lists_are_not_claimed(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    chat = [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    ]
    assert not anthropic.sniff(Source(written(tmp_path, chat)).head)
    assert not anthropic.sniff(Source(written(tmp_path, {"messages": chat})).head)


def test_only_a_flag_that_is_there_becomes_a_signal(tmp_path: Path) -> None:
    listener = Listener()
    results = [{**ANSWER, **flag} for flag in ({"is_error": True}, {"is_error": False}, {}, {"is_error": None})]
    list(anthropic.read(Source(written(tmp_path, [assistant(CALL), user(*results)])), listener))
    assert listener.signals == [Signal(failed=True), Signal(failed=False), None, None]


def test_an_xml_call_carries_its_parameters() -> None:
    (session,), _ = read(CASES / "case-xml.json")
    first, second = steps(session, ToolCall)
    assert first.arguments == {"command": "ls hives", "requires_approval": "false"}
    assert second.arguments == {"path": "hives.html", "content": "<ul>\n<li>north</li>\n</ul>"}
    assert [r.text for r in steps(session, ToolResult)] == [
        "Command executed.\nOutput:\nnorth\nsouth",
        "The user denied this operation.",
    ]
    assert steps(session, Message)[1].text.endswith("I list them.\n\n")


def test_xml_without_its_answer_stays_text(tmp_path: Path) -> None:
    text = "Use <b>x</b>\n<read_file><path>a</path></read_file>"
    path = written(tmp_path, [assistant(text), user("[write_to_file for 'a'] Result:", "x"), assistant(CALL)])
    (session,), _ = read(path)
    assert [c.tool for c in steps(session, ToolCall)] == ["ls"]
    assert [m.text for m in steps(session, Message)] == [text, "[write_to_file for 'a'] Result:", "x"]


def test_details_go_and_the_task_is_unwrapped(tmp_path: Path) -> None:
    first = user("<task>\nDo it\n</task>\n<environment_details>\ntabs\n</environment_details>")
    (session,), _ = read(written(tmp_path, [first, assistant(CALL)]))
    assert session.task == "Do it"


def test_usage_of_raw_responses_is_summed(tmp_path: Path) -> None:
    usage = {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 3}
    answer = {**assistant(CALL), "model": "claude-y", "usage": usage}
    (session,), _ = read(written(tmp_path, [answer, user(ANSWER), answer]))
    assert session.usage == Usage(input=10, output=4, cache_read=6)
    assert session.model == "claude-y"


def test_results_in_any_order_and_calls_never_answered(tmp_path: Path) -> None:
    second, third = {**CALL, "id": "t2"}, {**CALL, "id": "t3"}
    path = written(
        tmp_path,
        [
            user({**ANSWER, "tool_use_id": "t0"}),
            assistant(CALL, second, third),
            user({**ANSWER, "tool_use_id": "t2"}, ANSWER),
        ],
    )
    (session,), _ = read(path)
    assert [r.call_id for r in steps(session, ToolResult)] == ["t0", "t2", "t1"]
    assert len(steps(session, ToolCall)) == 3


def test_wrong_types_cost_the_field_not_the_session(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        [
            {"role": "user", "content": None},
            {"role": "user", "content": 5},
            user("go"),
            assistant({**CALL, "input": None}, {**CALL, "id": 4, "name": "odd"}),
            user({**ANSWER, "content": None}, {**ANSWER, "is_error": "maybe"}),
            3,
        ],
    )
    path.write_text(path.read_text().replace('"go"', '"go", "score": NaN'))
    (session,), source = read(path)
    assert session.task == "go"
    assert [c.tool for c in steps(session, ToolCall)] == ["ls", "odd"]
    assert [r.text for r in steps(session, ToolResult)] == ["", "a"]
    assert source.problems


def test_a_cut_off_list_gives_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    text = json.dumps(TALK)
    path.write_text(text[: text.index("Only a")])
    assert anthropic.sniff(Source(path).head)
    (session,), source = read(path)
    assert len(steps(session, ToolResult)) == 1
    assert "the JSON is cut off" in [p.reason for p in source.problems]
