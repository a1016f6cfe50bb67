"""The three protocols: what is added to a conversation, and how an answer is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import structs

from warmstart.dialects.lint import lint
from warmstart.endpoints.chat import AskedCall, EndpointError, Reply
from warmstart.endpoints.forms import FORMS

CALL = AskedCall("c1", "memory", '{"action": "add"}')
ANSWERS: dict[str, dict[str, Any]] = {
    "openai": {
        "choices": [
            {
                "message": {
                    "content": "Hm.",
                    "tool_calls": [{"id": "c1", "function": {"name": "memory", "arguments": '{"action": "add"}'}}],
                }
            }
        ],
        "usage": {"prompt_tokens": 30, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 20}},
    },
    "anthropic": {
        "content": [
            {"type": "thinking", "thinking": "..."},
            {"type": "text", "text": "Hm."},
            {"type": "tool_use", "id": "c1", "name": "mcp__memory", "input": {"action": "add"}},
        ],
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 20, "output_tokens": 4},
    },
    "responses": {
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hm."}]},
            {"type": "function_call", "call_id": "c1", "name": "memory", "arguments": '{"action": "add"}'},
        ],
        "usage": {"input_tokens": 30, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 20}},
    },
}


@pytest.mark.parametrize("dialect", FORMS)
def test_an_answer_is_read(dialect: str) -> None:
    reply = FORMS[dialect].read_reply(json.dumps(ANSWERS[dialect]).encode())
    thoughts = {"anthropic": ("thinking",), "responses": ("reasoning",)}.get(dialect, ())
    assert tuple(thought["type"] for thought in reply.thoughts) == thoughts
    said = structs.replace(reply, thoughts=())
    assert said == Reply(text="Hm.", calls=(CALL,), prompt_tokens=30, cached_tokens=20, answer_tokens=4)
    written = json.dumps(FORMS[dialect].write_calls(reply, reply.calls))
    assert all(f'"{thought}"' in written for thought in thoughts), "providers refuse calls without their thoughts"


@pytest.mark.parametrize("dialect", FORMS)
@pytest.mark.parametrize("data", [b"", b"[]", b"nonsense"])
def test_anything_else_is_an_error_of_the_endpoint(dialect: str, data: bytes) -> None:
    with pytest.raises(EndpointError):
        FORMS[dialect].read_reply(data)


@pytest.mark.parametrize("dialect", FORMS)
def test_what_is_added_is_valid_and_the_same_as_chat(dialect: Any) -> None:
    form = FORMS[dialect]
    messages = [form.write_message("user", "Look back"), *form.write_calls(Reply(text="Hm."), [CALL])]
    messages += [*form.write_results([("c1", '{"success": true}')]), form.write_message("assistant", "Done.")]
    assert lint(messages, dialect) == []
    system = {"system": "S"} if dialect == "anthropic" else {"instructions": "S"} if dialect == "responses" else {}
    chat = [message for message in form.to_chat(messages, system) if message["role"] != "system"]
    calls = [call["function"]["name"] for message in chat for call in message.get("tool_calls") or ()]
    assert calls == ["memory"]
    assert [message["role"] for message in chat if not message.get("tool_calls")][-2:] == ["tool", "assistant"]
    assert chat[0] == {"role": "user", "content": "Look back"}
    assert not system or form.to_chat(messages, system)[0] == {"role": "system", "content": "S"}


def test_keys_go_where_each_provider_wants_them() -> None:
    assert FORMS["openai"].write_headers("k") == {"Authorization": "Bearer k"} == FORMS["responses"].write_headers("k")
    assert FORMS["anthropic"].write_headers("k")["x-api-key"] == "k"
    subscription = FORMS["anthropic"].write_headers("sk-ant-oat01-x")
    assert subscription["Authorization"] == "Bearer sk-ant-oat01-x" and "x-api-key" not in subscription
