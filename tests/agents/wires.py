"""How model providers stream an answer, as agents expect it: the events of each protocol.

Every function gives the events of one answer: a text, or calls of tools. `number` makes the ids of its parts unique.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Json = dict[str, Any]


class ScriptedCall(NamedTuple):
    """A tool call that the model makes."""

    tool: str
    arguments: Mapping[str, Any]


Answer = str | Sequence[ScriptedCall]


def stream_message(turn: Answer, number: str, model: str) -> Iterator[Json]:
    """Give the events of an answer by Anthropic's Messages."""
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "content": []}
    usage = {"input_tokens": 10, "output_tokens": 1}
    yield {"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None, "usage": usage}}
    for index, (block, delta) in enumerate(_list_message_blocks(turn, number)):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = "end_turn" if isinstance(turn, str) else "tool_use"
    delta = {"stop_reason": stop, "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}
    yield {"type": "message_stop"}


def _list_message_blocks(turn: Answer, number: str) -> Iterator[tuple[Json, Json]]:
    if isinstance(turn, str):
        yield {"type": "text", "text": ""}, {"type": "text_delta", "text": turn}
        return
    for at, call in enumerate(turn):
        block = {"type": "tool_use", "id": f"toolu_{number}{at}", "name": call.tool, "input": {}}
        yield block, {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}


def stream_response(turn: Answer, number: str) -> Iterator[Json]:
    """Give the events of an answer by OpenAI's Responses."""
    answer = {"id": f"resp_{number}", "object": "response", "status": "in_progress", "output": []}
    yield {"type": "response.created", "response": answer}
    items = list(_list_response_items(turn, number))
    for index, item in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    }
    yield {"type": "response.completed", "response": answer | {"status": "completed", "output": items, "usage": usage}}


def _list_response_items(turn: Answer, number: str) -> Iterator[Json]:
    if isinstance(turn, str):
        text = {"type": "output_text", "text": turn, "annotations": []}
        yield {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [text]}
        return
    for at, call in enumerate(turn):
        namespace, _dot, name = call.tool.rpartition(".")
        yield {
            "type": "function_call",
            "id": f"fc_{number}{at}",
            "call_id": f"call_{number}{at}",
            "name": name,
            "arguments": json.dumps(call.arguments),
            "status": "completed",
        } | ({"namespace": namespace} if namespace else {})


def stream_chat(turn: Answer, number: str, model: str, prompt_tokens: int = 10) -> Iterator[Json]:
    """Give the chunks of an answer by OpenAI's Chat Completions."""
    head = {"id": f"chatcmpl_{number}", "object": "chat.completion.chunk", "created": 1_760_000_000, "model": model}
    if isinstance(turn, str):
        deltas: list[Json] = [{"role": "assistant", "content": turn}]
    else:
        calls = [_make_chat_call(call, at, number) for at, call in enumerate(turn)]
        deltas = [{"role": "assistant", "content": None}, *({"tool_calls": [call]} for call in calls)]
    for delta in deltas:
        yield head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    finish = "stop" if isinstance(turn, str) else "tool_calls"
    yield head | {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 5, "total_tokens": prompt_tokens + 5}
    yield head | {"choices": [], "usage": usage}


def make_chat(turn: Answer, number: str, model: str) -> Json:
    """Return the same answer whole, for a request that does not stream."""
    message: Json = {"role": "assistant", "content": turn if isinstance(turn, str) else None}
    if not isinstance(turn, str):
        message["tool_calls"] = [_make_chat_call(call, at, number) for at, call in enumerate(turn)]
    finish = "stop" if isinstance(turn, str) else "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    head = {"id": f"chatcmpl_{number}", "object": "chat.completion", "created": 1_760_000_000, "model": model}
    return head | {"choices": [choice], "usage": _CHAT_USAGE}


_CHAT_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def _make_chat_call(call: ScriptedCall, at: int, number: str) -> Json:
    function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
    return {"index": at, "id": f"call_{number}{at}", "type": "function", "function": function}


def make_gemini(turn: Answer, number: str, model: str) -> Json:
    """Return the answer by Gemini's generateContent; streamed, it is a single chunk."""
    if isinstance(turn, str):
        parts: list[Json] = [{"text": turn}]
    else:
        parts = [
            {"functionCall": {"id": f"call_{number}{at}", "name": call.tool, "args": dict(call.arguments)}}
            for at, call in enumerate(turn)
        ]
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    head = {"responseId": f"response_{number}", "modelVersion": model}
    return head | {"candidates": [candidate], "usageMetadata": usage}
