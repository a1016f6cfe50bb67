"""The three protocols that models are asked in: how a conversation goes on in each, and how an answer is read.

A conversation stays in its own protocol, byte for byte, because providers cache by prefix; only what is added to it is
written here. `to_chat` gives the same conversation as chat messages, for readers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from warmstart.dialects.providers import text_of_content
from warmstart.endpoints.chat import AskedCall, EndpointError, Reply, read_reply

_MARK = "mcp__"  # before every tool's name under a Claude subscription
_SUBSCRIPTION = "sk-ant-oat"  # beginning of a subscription's token


class WireForm(Protocol):
    """One protocol."""

    field: str  # of the request that holds the conversation
    path: str  # below the endpoint's address

    def write_headers(self, key: str) -> dict[str, str]: ...
    def write_message(self, role: str, text: str) -> dict[str, Any]: ...
    def write_calls(self, reply: Reply, calls: Sequence[AskedCall]) -> list[dict[str, Any]]: ...
    def write_results(self, results: Sequence[tuple[str, str]]) -> list[dict[str, Any]]: ...
    def read_reply(self, data: bytes) -> Reply: ...
    def to_chat(self, messages: Sequence[Mapping[str, Any]], request: Mapping[str, Any]) -> list[dict[str, Any]]: ...


class ChatForm:
    """OpenAI's chat completions, which most servers speak."""

    field = "messages"
    path = "/chat/completions"

    def write_headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def write_message(self, role: str, text: str) -> dict[str, Any]:
        return {"role": role, "content": text}

    def write_calls(self, reply: Reply, calls: Sequence[AskedCall]) -> list[dict[str, Any]]:
        described = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in calls
        ]
        return [{"role": "assistant", "content": reply.text or None, "tool_calls": described}]

    def write_results(self, results: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
        return [{"role": "tool", "tool_call_id": id, "content": content} for id, content in results]

    def read_reply(self, data: bytes) -> Reply:
        return read_reply(data)

    def to_chat(self, messages: Sequence[Mapping[str, Any]], request: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [dict(message) for message in messages]


class AnthropicForm:
    """Anthropic's messages."""

    field = "messages"
    path = "/messages"

    def write_headers(self, key: str) -> dict[str, str]:
        version = {"anthropic-version": "2023-06-01"}
        if key.startswith(_SUBSCRIPTION):
            return version | {"Authorization": f"Bearer {key}", "anthropic-beta": "oauth-2025-04-20"}
        return version | ({"x-api-key": key} if key else {})

    def write_message(self, role: str, text: str) -> dict[str, Any]:
        return {"role": role, "content": [{"type": "text", "text": text}]}

    def write_calls(self, reply: Reply, calls: Sequence[AskedCall]) -> list[dict[str, Any]]:
        blocks = list(reply.thoughts)
        blocks += [{"type": "text", "text": reply.text}] if reply.text else []
        blocks += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": _read_object(call.arguments)}
            for call in calls
        ]
        return [{"role": "assistant", "content": blocks}]

    def write_results(self, results: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
        blocks = [{"type": "tool_result", "tool_use_id": id, "content": content} for id, content in results]
        return [{"role": "user", "content": blocks}]

    def read_reply(self, data: bytes) -> Reply:
        answer = _decode(data)
        blocks = [block for block in _list(answer.get("content")) if isinstance(block, Mapping)]
        usage = _mapping(answer.get("usage"))
        cached = _count(usage, "cache_read_input_tokens")
        written = _count(usage, "cache_creation_input_tokens") or 0
        sent = _count(usage, "input_tokens")
        return Reply(
            text="".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text"),
            calls=tuple(
                AskedCall(
                    str(block.get("id") or ""),
                    str(block.get("name") or "").removeprefix(_MARK),
                    json.dumps(block.get("input") or {}, ensure_ascii=False),
                )
                for block in blocks
                if block.get("type") == "tool_use"
            ),
            thoughts=tuple(block for block in blocks if block.get("type") in ("thinking", "redacted_thinking")),
            prompt_tokens=None if sent is None else sent + (cached or 0) + written,
            cached_tokens=cached,
            answer_tokens=_count(usage, "output_tokens"),
        )

    def to_chat(self, messages: Sequence[Mapping[str, Any]], request: Mapping[str, Any]) -> list[dict[str, Any]]:
        system = text_of_content(request.get("system"))
        chat: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        for message in messages:
            chat += _split_blocks(str(message.get("role") or "user"), message.get("content"))
        return chat


class ResponsesForm:
    """OpenAI's responses."""

    field = "input"
    path = "/responses"

    def write_headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def write_message(self, role: str, text: str) -> dict[str, Any]:
        return {"role": role, "content": text}

    def write_calls(self, reply: Reply, calls: Sequence[AskedCall]) -> list[dict[str, Any]]:
        said = [*reply.thoughts, *([self.write_message("assistant", reply.text)] if reply.text else [])]
        return said + [
            {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
            for call in calls
        ]

    def write_results(self, results: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
        return [{"type": "function_call_output", "call_id": id, "output": content} for id, content in results]

    def read_reply(self, data: bytes) -> Reply:
        answer = _decode(data)
        items = [item for item in _list(answer.get("output")) if isinstance(item, Mapping)]
        usage = _mapping(answer.get("usage"))
        return Reply(
            text="".join(text_of_content(item.get("content")) for item in items if item.get("type") == "message"),
            calls=tuple(
                AskedCall(
                    str(item.get("call_id") or ""), str(item.get("name") or ""), str(item.get("arguments") or "{}")
                )
                for item in items
                if item.get("type") == "function_call"
            ),
            thoughts=tuple(item for item in items if item.get("type") == "reasoning"),
            prompt_tokens=_count(usage, "input_tokens"),
            cached_tokens=_count(_mapping(usage.get("input_tokens_details")), "cached_tokens"),
            answer_tokens=_count(usage, "output_tokens"),
        )

    def to_chat(self, messages: Sequence[Mapping[str, Any]], request: Mapping[str, Any]) -> list[dict[str, Any]]:
        system = text_of_content(request.get("instructions"))
        chat: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        for item in messages:
            if item.get("type") == "function_call":
                function = {"name": item.get("name"), "arguments": item.get("arguments")}
                call = {"id": item.get("call_id"), "type": "function", "function": function}
                chat.append({"role": "assistant", "content": None, "tool_calls": [call]})
            elif item.get("type") == "function_call_output":
                content = text_of_content(item.get("output"))
                chat.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": content})
            elif item.get("role"):
                chat.append({"role": item["role"], "content": text_of_content(item.get("content"))})
        return chat


CHAT = ChatForm()
FORMS: dict[str, WireForm] = {"openai": CHAT, "anthropic": AnthropicForm(), "responses": ResponsesForm()}


def _split_blocks(role: str, content: Any) -> Iterator[dict[str, Any]]:
    """Yield the chat messages of one message of blocks: results first, as their calls come before the next words."""
    blocks = [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []
    for block in blocks:
        if block.get("type") == "tool_result":
            yield {
                "role": "tool",
                "tool_call_id": block.get("tool_use_id"),
                "content": text_of_content(block.get("content")),
            }
    text = text_of_content([block for block in blocks if block.get("type") == "text"] if blocks else content)
    calls = [
        {
            "id": block.get("id"),
            "type": "function",
            "function": {"name": block.get("name"), "arguments": json.dumps(block.get("input") or {})},
        }
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    if calls:
        yield {"role": role, "content": text or None, "tool_calls": calls}
    elif text:
        yield {"role": role, "content": text}


def _decode(data: bytes) -> Mapping[str, Any]:
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise EndpointError("the endpoint's answer is not JSON") from error
    if not isinstance(answer, dict):
        raise EndpointError("the endpoint's answer is not an object")
    return answer


def _read_object(arguments: str) -> dict[str, Any]:
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _count(usage: Mapping[str, Any], name: str) -> int | None:
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
