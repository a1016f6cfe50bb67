"""The linter finds what each provider rejects, passes what it accepts, and reports junk."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmstart.dialects.lint import lint
from warmstart.model import DIALECTS, Dialect

Messages = list[dict[str, Any]]


def call(key: Any = "c1", name: Any = "ls", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*calls: Any, content: Any = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def tool(key: Any = "c1", content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": key, "content": content}


def say(role: str, content: Any = "hello") -> dict[str, Any]:
    return {"role": role, "content": content}


def use(key: Any = "c1", name: Any = "ls", given: Any = None) -> dict[str, Any]:
    return {"type": "tool_use", "id": key, "name": name, "input": {} if given is None else given}


def result(key: Any = "c1", content: Any = "ok") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": key, "content": content}


def text(value: Any = "hello") -> dict[str, Any]:
    return {"type": "text", "text": value}


def thought() -> dict[str, Any]:
    return {"type": "thinking", "thinking": "hm", "signature": "s"}


def item_call(key: Any = "c1", arguments: Any = "{}") -> dict[str, Any]:
    return {"type": "function_call", "call_id": key, "name": "ls", "arguments": arguments}


def item_output(key: Any = "c1", output: Any = "ok") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": key, "output": output}


def content(role: Any, *parts: Any) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def fcall(name: Any = "ls", **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {}}, **more}


def fresponse(name: Any = "ls", response: Any = None) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": {"output": "ok"} if response is None else response}}


USER, ANSWER = say("user"), say("assistant")
ASK, REPLY = content("user", {"text": "hello"}), content("model", {"text": "hello"})
LONE = "\ud800"

BROKEN: list[tuple[Dialect, Messages, str, int]] = [
    # openai
    ("openai", [USER, calling(call()), USER], "unanswered_call", 1),
    ("openai", [USER, calling(call())], "unanswered_call", 1),
    ("openai", [USER, calling(call("a"), call("b")), tool("a"), ANSWER], "unanswered_call", 1),
    ("openai", [USER, calling(call()), ANSWER, tool()], "unanswered_call", 1),
    ("openai", [USER, tool()], "result_without_call", 1),
    ("openai", [USER, calling(call()), tool(), ANSWER, tool()], "result_without_call", 4),
    ("openai", [USER, calling(call()), tool(), tool()], "repeated_result", 3),
    ("openai", [USER, calling(call(), call()), tool()], "repeated_id", 1),
    ("openai", [USER, calling(call()), tool(), calling(call()), tool()], "repeated_id", 3),
    ("openai", [say("robot")], "role", 0),
    ("openai", [{"content": "hello"}], "role", 0),
    ("openai", [USER, calling(call(arguments={"a": 1})), tool()], "arguments", 1),
    ("openai", [USER, calling(call(arguments="{not json")), tool()], "arguments", 1),
    ("openai", [USER, calling(call(arguments="[1]")), tool()], "arguments", 1),
    ("openai", [USER, calling(call(arguments="[" * 99_999)), tool()], "arguments", 1),
    ("openai", [say("user", "")], "empty_content", 0),
    ("openai", [say("user", None)], "empty_content", 0),
    ("openai", [USER, say("assistant", None)], "empty_content", 1),
    ("openai", [USER, calling(call()), tool(content=None)], "empty_content", 2),
    ("openai", [USER, calling()], "tool_calls", 1),
    ("openai", [USER, calling({"id": "c1"})], "tool_calls", 1),
    ("openai", [USER, calling(call(name="a b")), tool()], "name", 1),
    ("openai", [USER, calling(call(name="a" * 65)), tool()], "name", 1),
    ("openai", [USER, calling(call(key="")), tool("")], "id", 1),
    ("openai", [USER, calling(call(key="x" * 41)), tool("x" * 41)], "id", 1),
    ("openai", [USER, calling(call()), tool(None)], "id", 2),
    ("openai", [say("user", LONE)], "encoding", 0),
    ("openai", [say("user", [{"type": "tool_result", "tool_use_id": "c1"}])], "content", 0),
    # anthropic
    ("anthropic", [ANSWER, USER], "first_role", 0),
    ("anthropic", [say("system"), USER], "first_role", 0),
    ("anthropic", [USER, say("tool")], "role", 1),
    ("anthropic", [USER, say("assistant", [use()]), USER], "unanswered_call", 1),
    ("anthropic", [USER, say("assistant", [use()])], "unanswered_call", 1),
    ("anthropic", [USER, say("assistant", [use("a"), use("b")]), say("user", [result("a")])], "unanswered_call", 1),
    ("anthropic", [USER, say("assistant", [use()]), say("system"), say("user", [result()])], "unanswered_call", 1),
    ("anthropic", [USER, say("assistant", [use()]), say("user", [text(), result()])], "result_not_first", 2),
    ("anthropic", [USER, say("assistant", [use()]), USER, say("user", [result()])], "result_not_first", 2),
    ("anthropic", [say("user", [result()])], "result_without_call", 0),
    ("anthropic", [USER, say("assistant", [use()]), say("user", [result(), result()])], "repeated_result", 2),
    ("anthropic", [USER, say("assistant", [use(), use()]), say("user", [result()])], "repeated_id", 1),
    ("anthropic", [USER, say("assistant", [use("a.b")]), say("user", [result("a.b")])], "id", 1),
    ("anthropic", [USER, say("assistant", [use(name="a.b")]), say("user", [result()])], "name", 1),
    ("anthropic", [USER, say("assistant", [use(given="x")]), say("user", [result()])], "arguments", 1),
    ("anthropic", [say("user", [use()])], "block_role", 0),
    ("anthropic", [USER, say("assistant", [result()])], "block_role", 1),
    ("anthropic", [say("user", [text(" \n")])], "empty_text", 0),
    ("anthropic", [say("user", "")], "empty_text", 0),
    ("anthropic", [USER, say("assistant", ""), USER], "empty_text", 1),
    ("anthropic", [say("user", [])], "empty_content", 0),
    ("anthropic", [say("user", None)], "content", 0),
    ("anthropic", [say("user", ["hello"])], "content", 0),
    ("anthropic", [USER, say("assistant", "ends with ")], "trailing_space", 1),
    # responses
    ("responses", [USER, item_output()], "result_without_call", 1),
    ("responses", [USER, item_output(), item_call()], "result_without_call", 1),
    ("responses", [USER, item_call(), ANSWER], "unanswered_call", 1),
    ("responses", [USER, item_call(), item_output(), item_output()], "repeated_result", 3),
    ("responses", [USER, item_call(), item_call(), item_output()], "repeated_id", 2),
    ("responses", [USER, item_call(None), item_output()], "id", 1),
    ("responses", [USER, item_call(), item_output(None)], "id", 2),
    ("responses", [USER, item_call(key="c1") | {"id": "c1"}, item_output()], "id", 1),
    ("responses", [USER, item_call(arguments={}), item_output()], "arguments", 1),
    ("responses", [USER, item_call(), item_output(output=None)], "empty_content", 2),
    ("responses", [{"type": "message", "role": "tool", "content": "x"}], "role", 0),
    ("responses", [say("user", None)], "empty_content", 0),
    ("responses", [say("user", [{"type": "text", "text": "hi"}])], "content", 0),
    ("responses", [{}], "shape", 0),
    # gemini
    ("gemini", [ASK, content("model", fcall()), ASK], "unanswered_call", 1),
    ("gemini", [ASK, content("model", fcall())], "unanswered_call", 1),
    ("gemini", [content("user", fresponse())], "result_without_call", 0),
    ("gemini", [ASK, content("model", fcall()), REPLY, content("user", fresponse())], "unanswered_call", 1),
    ("gemini", [ASK, content("model", fcall(), fcall("cat")), content("user", fresponse())], "response_count", 2),
    (
        "gemini",
        [ASK, content("model", fcall(), fcall("cat")), content("user", fresponse("cat"), fresponse())],
        "response_order",
        2,
    ),
    ("gemini", [ASK, REPLY, content("model", fcall()), content("user", fresponse())], "call_position", 2),
    ("gemini", [content("model", fcall()), content("user", fresponse())], "call_position", 0),
    ("gemini", [content("assistant", {"text": "x"})], "role", 0),
    ("gemini", [content("user", fcall()), content("user", fresponse())], "block_role", 0),
    ("gemini", [content("user")], "empty_content", 0),
    ("gemini", [content("user", {"text": ""})], "empty_text", 0),
    ("gemini", [content("user", {})], "content", 0),
    ("gemini", [ASK, content("model", fcall("1x")), content("user", fresponse("1x"))], "name", 1),
    ("gemini", [ASK, content("model", fcall()), content("user", fresponse(response="x"))], "arguments", 2),
]


@pytest.mark.parametrize(("dialect", "messages", "rule", "index"), BROKEN, ids=lambda value: str(value)[:60])
def test_what_is_rejected_is_found(dialect: Dialect, messages: Messages, rule: str, index: int) -> None:
    assert (index, rule) in [(finding.index, finding.rule) for finding in lint(messages, dialect)]


GOOD: list[tuple[Dialect, Messages]] = [
    ("openai", []),
    ("openai", [say("system"), say("developer"), USER, calling(call("a"), call("b")), tool("b"), tool("a"), ANSWER]),
    ("openai", [USER, calling(call("functions.ls:0", arguments="")), tool("functions.ls:0", ""), USER]),
    ("openai", [say("user", [{"type": "text", "text": "hi"}]), {"role": "assistant", "refusal": "no"}]),
    ("openai", [USER, {"role": "assistant", "function_call": {"name": "ls", "arguments": "{}"}}]),
    ("anthropic", [USER, USER, ANSWER, ANSWER, USER]),
    ("anthropic", [USER, say("assistant", [text(), use("a"), use("b")]), say("user", [result("b"), result("a"), text()])]),
    ("anthropic", [USER, say("assistant", [use("a"), use("b")]), say("user", [result("a")]), say("user", [result("b")])]),
    ("anthropic", [USER, ANSWER, USER, say("system"), ANSWER]),
    ("anthropic", [USER, say("assistant", "")]),
    ("responses", [say("developer"), USER, item_call("a"), item_call("b"), ANSWER, item_output("b"), item_output("a")]),
    ("responses", [{"type": "item_reference", "id": "fc_1"}, item_output("not here")]),
    ("responses", [USER, {"type": "reasoning", "id": "rs_1", "summary": []}, item_call() | {"id": "fc_1"}, item_output()]),
    ("gemini", [ASK, content("model", {"text": "so"}, fcall(), fcall("cat")), content("user", fresponse(), fresponse("cat")), REPLY]),
    ("gemini", [ASK, content("model", fcall()), content("function", fresponse()), content("model", fcall()), content("user", fresponse())]),
    ("gemini", [{"parts": [{"text": "hi"}]}, content("model", {"function_call": {"name": "ls"}}), content("user", {"function_response": {"name": "ls", "response": {}}})]),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "messages"), GOOD, ids=lambda value: str(value)[:60])
def test_what_is_accepted_passes(dialect: Dialect, messages: Messages) -> None:
    assert lint(messages, dialect) == []


def rules(messages: Any, dialect: Dialect = "openai", **known: Any) -> list[str]:
    return [finding.rule for finding in lint(messages, dialect, **known)]


def test_mistral_wants_nine_characters() -> None:
    conversation = [USER, calling(call("call_1")), tool("call_1")]
    assert rules(conversation) == []
    assert rules(conversation, model="mistral-large-latest") == ["id"]
    assert rules([USER, calling(call("abcDEF123")), tool("abcDEF123")], model="codestral") == []


def test_thinking_opens_the_loop_of_calls() -> None:
    first = say("assistant", [use("a")])
    answered = say("user", [result("a")])
    assert rules([USER, first, answered], "anthropic") == []
    assert rules([USER, first, answered], "anthropic", thinking=True) == ["thinking"]
    opened = [USER, say("assistant", [thought(), use("b")]), say("user", [result("b")])]
    assert rules([*opened, first, answered], "anthropic", thinking=True) == []  # the same loop goes on
    assert rules([*opened, ANSWER, USER, first, answered], "anthropic", thinking=True) == ["thinking"]
    assert rules([USER, ANSWER, USER], "anthropic", thinking=True) == []


def test_undeclared_tools() -> None:
    conversation = [USER, say("assistant", [use()]), say("user", [result()])]
    assert rules(conversation, "anthropic", tools=["ls"]) == []
    assert rules(conversation, "anthropic", tools=["cat"]) == ["undeclared_tool"]
    assert rules(conversation, "anthropic", tools=[]) == ["undeclared_tool"]


def test_gemini_3_wants_signatures_on_the_first_call_of_a_turn() -> None:
    def conversation(*calls: dict[str, Any]) -> Messages:
        return [ASK, content("model", *calls), content("user", *(fresponse() for _ in calls)), REPLY]

    assert rules(conversation(fcall()), "gemini", model="gemini-2.5-pro") == []
    assert rules(conversation(fcall()), "gemini", model="gemini-3-pro-preview") == ["thought_signature"]
    assert rules(conversation(fcall(thoughtSignature="s"), fcall()), "gemini", model="models/gemini-3.1-pro") == []


def test_text_is_a_string() -> None:
    assert rules("a digest", "text") == rules(["a digest"], "text") == []
    assert rules([{"role": "user"}], "text") == ["shape"]
    assert rules(None, "text") == ["shape"]
    assert rules([LONE], "text") == ["encoding"]


def test_naive_seed_is_found() -> None:
    """The first 30 messages, cut where they happen to end, and two sessions put together that use the same ids."""
    session: Messages = [say("system")]
    for turn in range(10):
        ids = [f"call_{turn}_{n}" for n in range(2)]
        session += [USER, calling(*map(call, ids)), *map(tool, ids)]
    assert rules(session) == []
    cut = session[:31]
    assert rules(cut) == ["unanswered_call"] * 2
    assert "repeated_id" in rules(session + session)
    assert "result_without_call" in rules(session[3:])


def nest(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "junk",
    [None, 3, "text", b"bytes", {"role": "user"}, [None], [[]], [{"role": []}], [{1: 2}], [object()], [nest(20_000)],
     [{"role": "assistant", "tool_calls": [[], None, {"type": "function", "id": {}, "function": {"name": nest(20_000)}}]}],
     [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": []}]}],
     [{"type": "item_reference"}, {"type": "function_call_output", "call_id": []}],
     [{"role": "model", "parts": [{"functionCall": 3}, {"functionResponse": {"name": []}}]}]],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_junk_is_a_finding(junk: Any, dialect: Dialect) -> None:
    found = lint(junk, dialect)
    assert found or (dialect == "text" and junk == "text")


def test_unknown_dialect_is_a_finding() -> None:
    unknown: Any = "morse"
    assert rules([USER], unknown) == ["dialect"]


WORDS = st.sampled_from(
    ["role", "content", "type", "text", "tool_use", "tool_result", "tool_calls", "function", "id", "call_id", "parts",
     "functionCall", "functionResponse", "user", "assistant", "tool", "model", "name", "input", "arguments", "args"]
)  # fmt: skip
JUNK = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=25,
)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
@given(junk=JUNK)
def test_never_raises(dialect: Dialect, junk: Any) -> None:
    for given_ in (junk, [junk], [{"role": "assistant", "content": junk, "tool_calls": junk, "parts": junk}]):
        lint(given_, dialect, thinking=True, model="gemini-3", tools=["ls"])


def test_findings_come_in_the_order_of_the_messages() -> None:
    found = lint([say("user", ""), calling(call()), say("robot"), tool("x"), "junk"], "openai")  # type: ignore[list-item]
    assert found == sorted(found, key=lambda finding: finding.index)
    assert {finding.index for finding in found} == {0, 1, 2, 3, 4}
