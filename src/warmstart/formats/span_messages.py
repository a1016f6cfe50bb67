"""Messages inside of spans and runs: of OTel GenAI (`parts`), OpenAI, Anthropic and LangChain."""

from __future__ import annotations

from typing import Any, NamedTuple

from warmstart.formats.fields import dict_of, parse_arguments, string_of, text_of
from warmstart.model import Arguments

_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "AIMessageChunk": "assistant", "generic": "user"}
_CLASSES = {"HumanMessage": "user", "AIMessage": "assistant", "AIMessageChunk": "assistant", "SystemMessage": "system",
            "ToolMessage": "tool", "FunctionMessage": "tool"}  # fmt: skip
_MAX_DEPTH = 6


class SpanCall(NamedTuple):
    """A tool call that a model wrote."""

    id: str
    tool: str
    arguments: Arguments


class SpanMessage(NamedTuple):
    """A message of a model's input or output."""

    role: str
    text: str
    calls: tuple[SpanCall, ...] = ()
    answers: str = ""  # id of the call that this message answers


def list_messages(value: Any, role: str, depth: int = 0) -> list[SpanMessage]:
    """Return the messages in a model's input or output; `role` is that of a text without one."""
    if depth > _MAX_DEPTH or value is None:
        return []
    if isinstance(value, str):
        return [SpanMessage(role, value)]
    if isinstance(value, list):
        return [message for item in value for message in list_messages(item, role, depth + 1)]
    if not isinstance(value, dict):
        return []
    if "messages" in value:
        return list_messages(value["messages"], role, depth + 1)
    if "generations" in value:
        return list_messages(value["generations"], role, depth + 1)[:1]
    if "choices" in value:
        return list_messages(value["choices"], role, depth + 1)[:1]
    if isinstance(value.get("message"), dict):
        return list_messages(value["message"], role, depth + 1)
    if "role" in value or "content" in value or "parts" in value or "kwargs" in value or "data" in value:
        return [_read_message(value, role)]
    text = next(
        (value[key] for key in ("output", "text", "input", "question") if isinstance(value.get(key), str)), None
    )
    return [SpanMessage(role, text)] if text is not None else []


def _read_message(message: dict[str, Any], default: str) -> SpanMessage:
    inner = dict_of(message.get("kwargs")) or dict_of(message.get("data")) or message
    path = message.get("id")
    named = string_of(path[-1]) if isinstance(path, list) and path else ""
    kind = string_of(inner.get("role")) or _CLASSES.get(named) or string_of(message.get("type")) or default
    parts = inner.get("parts", inner.get("content"))
    calls = [_read_call(call) for call in _list(inner.get("tool_calls"))]
    answers = string_of(inner.get("tool_call_id"))
    answer: list[str] = []
    for part in _list(parts):
        if part.get("type") == "tool_call":
            calls.append(_read_call(part))
        elif part.get("type") == "tool_use" and not inner.get("tool_calls"):
            calls.append(_read_call({**part, "arguments": part.get("input")}))
        elif part.get("type") in ("tool_call_response", "tool_result"):
            answers = string_of(part.get("id", part.get("tool_use_id")))
            answer.append(text_of(part.get("response", part.get("result", part.get("content")))))
    text = "\n".join(answer) if answer else join_parts(parts)
    return SpanMessage(_ROLES.get(kind, kind), text, tuple(calls), answers)


def _read_call(call: dict[str, Any]) -> SpanCall:
    function = dict_of(call.get("function")) or call
    given = function.get("arguments", function.get("args"))
    return SpanCall(string_of(call.get("id")), string_of(function.get("name")), parse_arguments(given))


def _list(value: Any) -> list[dict[str, Any]]:
    return [dict_of(item) for item in value] if isinstance(value, list) else []


def join_parts(parts: Any) -> str:
    """Return the text of a content or of its parts."""
    if not isinstance(parts, list):
        return text_of(parts)
    texts = (part.get("content", part.get("text")) for part in _list(parts) if part.get("type", "text") == "text")
    return "\n".join(text_of(text) for text in texts)
