"""The attributes of a span about a model's answer or a tool's run: OpenInference, OTel GenAI and OpenLLMetry."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from warmstart.formats.fields import count_of, dict_of, dollars_of, parse_arguments, string_of, text_of, without_cached
from warmstart.formats.lenient import DECODE_ERRORS
from warmstart.formats.span_messages import SpanCall, SpanMessage, join_parts, list_messages
from warmstart.formats.spans import TraceSpan
from warmstart.model import Arguments, Usage

Kind = Literal["model", "tool", "agent", "other"]
_KINDS: dict[str, Kind] = {"LLM": "model", "TOOL": "tool", "AGENT": "agent"}
_OPERATIONS: dict[str, Kind] = {
    "chat": "model",
    "text_completion": "model",
    "generate_content": "model",
    "execute_tool": "tool",
    "invoke_agent": "agent",
}
_MARKS = ("openinference.span.kind", "gen_ai.operation.name", "traceloop.span.kind", "gen_ai.system", "llm.model_name")
_MAX_LISTED = 10_000
_any = msgspec.json.Decoder(Any)


def kind_of(span: TraceSpan) -> Kind:
    """Return what a span stands for."""
    own = span.attributes
    if kind := _KINDS.get(string_of(own.get("openinference.span.kind")).upper()):
        return kind
    if kind := _OPERATIONS.get(string_of(own.get("gen_ai.operation.name"))):
        return kind
    traced = string_of(own.get("traceloop.span.kind"))
    if traced in ("tool", "agent"):
        return "tool" if traced == "tool" else "agent"
    asked = "gen_ai.request.model" in own and ("gen_ai.prompt.0.role" in own or "gen_ai.completion.0.role" in own)
    return "model" if asked else "other"


def speaks_of_models(attributes: dict[str, Any]) -> bool:
    """Return whether the attributes are of a program that calls language models."""
    return any(mark in attributes for mark in _MARKS)


def read_messages(span: TraceSpan, side: Literal["input", "output"]) -> list[SpanMessage]:
    """Return the messages that went into a model, or came out of it."""
    own = span.attributes
    written = own.get(f"gen_ai.{side}.messages")
    if written is not None:
        parsed = _parse(written)
        return list_messages(parsed, "user" if side == "input" else "assistant")
    if f"llm.{side}_messages.0.message.role" in own:
        return _of_indexed(own, f"llm.{side}_messages.", "message.")
    return _of_indexed(own, "gen_ai.prompt." if side == "input" else "gen_ai.completion.", "")


def read_instructions(span: TraceSpan) -> str:
    """Return the system prompt that OTel GenAI keeps beside the messages."""
    return join_parts(_parse(span.attributes.get("gen_ai.system_instructions")))


def _of_indexed(own: dict[str, Any], prefix: str, inner: str) -> list[SpanMessage]:
    """Return messages whose fields have numbers in their names, such as `llm.input_messages.0.message.role`."""
    messages: list[SpanMessage] = []
    for number in range(_MAX_LISTED):
        start = f"{prefix}{number}.{inner}"
        role = own.get(start + "role")
        if role is None:
            break
        text = text_of(own.get(start + "content"))
        if not text:
            pieces = (own.get(f"{start}contents.{n}.message_content.text") for n in range(_MAX_LISTED))
            listed: list[str] = []
            for piece in pieces:
                if piece is None:
                    break
                listed.append(text_of(piece))
            text = "\n".join(listed)
        messages.append(
            SpanMessage(string_of(role), text, _indexed_calls(own, start), string_of(own.get(start + "tool_call_id")))
        )
    return messages


def _indexed_calls(own: dict[str, Any], start: str) -> tuple[SpanCall, ...]:
    calls: list[SpanCall] = []
    for number in range(_MAX_LISTED):
        one = f"{start}tool_calls.{number}."
        for name, inner in (("tool_call.function.name", "tool_call."), ("name", "")):
            tool = own.get(one + name)
            if tool is not None:
                written = own.get(one + inner + ("function.arguments" if inner else "arguments"))
                calls.append(SpanCall(string_of(own.get(f"{one}{inner}id")), string_of(tool), parse_arguments(written)))
                break
        else:
            break
    return tuple(calls)


def read_run(span: TraceSpan) -> tuple[str, SpanCall, str]:
    """Return a tool's name, its call and its result."""
    own = span.attributes
    names = ("gen_ai.tool.name", "tool.name", "tool_call.function.name", "traceloop.entity.name")
    tool = next((text for name in names if (text := string_of(own.get(name)))), span.name)
    ids = ("gen_ai.tool.call.id", "tool_call.id", "tool.id")
    call_id = next((text for name in ids if (text := string_of(own.get(name)))), "")
    inputs = ("gen_ai.tool.call.arguments", "tool_call.function.arguments", "input.value", "traceloop.entity.input")
    given = next((own[name] for name in inputs if own.get(name) is not None), None)
    outputs = ("gen_ai.tool.call.result", "output.value", "traceloop.entity.output")
    result = next((own[name] for name in outputs if own.get(name) is not None), None)
    return tool, SpanCall(call_id, tool, _unwrap(parse_arguments(given))), text_of(result)


def _unwrap(arguments: Arguments) -> Arguments:
    """Return a Python call's `{args, kwargs}` as its keywords, where it has nothing else."""
    if isinstance(arguments, dict) and arguments.keys() >= {"args", "kwargs"}:
        positional, named = arguments["args"], dict_of(arguments["kwargs"])
        if not positional:
            return named
        return {"args": positional, **named}
    return arguments


def read_usage(span: TraceSpan) -> Usage:
    """Return the tokens of a model's answer."""
    own = span.attributes

    def count(*names: str) -> int | None:
        for name in names:
            value = own.get(name)
            if isinstance(value, str) and value.isdecimal() and len(value) < 16:
                value = int(value)
            if (number := count_of(value)) is not None:
                return number
        return None

    cached = count("llm.token_count.prompt_details.cache_read", "gen_ai.usage.cache_read.input_tokens")
    written = count("llm.token_count.prompt_details.cache_write", "gen_ai.usage.cache_creation.input_tokens")
    prompt = count("llm.token_count.prompt", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
    return Usage(
        input=without_cached(prompt, (cached or 0) + (written or 0)),
        output=count("llm.token_count.completion", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        cache_read=cached,
        cache_write=written,
        reasoning=count("llm.token_count.completion_details.reasoning"),
        cost=dollars_of(own.get("llm.cost.total")),
    )


def find_text(span: TraceSpan, *names: str) -> str:
    """Return the first of the attributes that has a text."""
    return next((text for name in names if (text := string_of(span.attributes.get(name)))), "")


def _parse(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return _any.decode(value)
    except (*DECODE_ERRORS, UnicodeEncodeError):
        return value
