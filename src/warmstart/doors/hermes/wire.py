"""Hermes' outgoing requests: find the conversation in them, read the session's opening, insert a seed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from warmstart.dialects.compose import Seed, inject
from warmstart.dialects.providers import text_of_content
from warmstart.model import Dialect

_SUMMARIES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")  # Hermes' openings of a summary of earlier turns
_SPEAKERS = ("user", "assistant")
_SUMMARY_END = "--- END OF CONTEXT SUMMARY"
_HEAD = 16  # messages among which the summary stands: behind the system prompt and the first exchange
_SUBSCRIPTION_MARK = "mcp__"  # Hermes prefixes every tool's name with it under a Claude subscription


class Form(NamedTuple):
    """The request format of one of Hermes' API modes."""

    dialect: Dialect
    field: str  # holds the conversation


FORMS = {
    "chat_completions": Form("openai", "messages"),
    "anthropic_messages": Form("anthropic", "messages"),
    "codex_responses": Form("responses", "input"),
}


class Opening(NamedTuple):
    """Facts about a session that its request shows."""

    asked: tuple[str, ...]  # the user's messages
    begun: bool  # the agent has answered before
    tools: tuple[str, ...]
    thinking: bool


class BadCall(NamedTuple):
    """A tool call whose arguments are not JSON."""

    call: str
    tool: str


def read_opening(request: Mapping[str, Any], form: Form) -> Opening:
    """Return the facts that a request shows."""
    messages = [message for message in request.get(form.field) or () if isinstance(message, Mapping)]
    asked = (text_of_content(message.get("content")) for message in messages if message.get("role") == "user")
    return Opening(
        asked=tuple(text for text in asked if text),
        begun=any(m.get("role") == "assistant" or m.get("type") == "function_call" for m in messages),
        tools=tuple(_tool_names(request, form)),
        thinking=form.dialect == "anthropic" and _thinks(request.get("thinking")),
    )


def find_summary(request: Mapping[str, Any], form: Form) -> str:
    """Return a digest of the summary that stands for compacted turns; empty if nothing was compacted."""
    for message in (request.get(form.field) or ())[:_HEAD]:
        if not isinstance(message, Mapping) or message.get("role") not in _SPEAKERS:
            continue
        content = message.get("content")
        text = content if isinstance(content, str) else text_of_content(content)
        for mark in _SUMMARIES:
            if mark in text:
                summary = text[text.index(mark) :].partition(_SUMMARY_END)[0]
                return hashlib.blake2b(summary.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return ""


def put_seed(seed: Seed, request: Mapping[str, Any], form: Form) -> dict[str, Any]:
    """Return a copy of the request with the seed; Hermes uses the original again when it retries."""
    messages: Sequence[Mapping[str, Any]] = seed.messages
    if form.dialect == "anthropic" and _is_subscription(_raw_names(request, form)):
        messages = [_mark_calls(message) for message in messages]
    elif form.dialect == "responses":
        messages = [_untyped(item) for item in messages]
    return {**request, form.field: inject(messages, request.get(form.field) or (), form.dialect)}


def find_bad_calls(response: Any) -> list[BadCall]:
    """Return the calls whose arguments Hermes will refuse. It asks the model again and keeps no trace of them.

    Arguments that were cut off do not count: the answer was too long, which is not the model's mistake.
    """
    return [
        BadCall(call, tool)
        for call, tool, arguments in _calls_in(response)
        if isinstance(arguments, str) and arguments.rstrip().endswith(("}", "]")) and not _is_json(arguments)
    ]


def _calls_in(response: Any) -> Iterator[tuple[str, str, Any]]:
    for choice in (getattr(response, "choices", None) or ())[:1]:
        for call in getattr(getattr(choice, "message", None), "tool_calls", None) or ():
            function = getattr(call, "function", None)
            yield str(getattr(call, "id", "") or ""), str(getattr(function, "name", "") or ""), _arguments(function)
    output = getattr(response, "output", None)
    for item in output if isinstance(output, list) else ():
        if getattr(item, "type", None) == "function_call":
            yield str(getattr(item, "call_id", "") or ""), str(getattr(item, "name", "") or ""), _arguments(item)


def _arguments(holder: Any) -> Any:
    return getattr(holder, "arguments", None)


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return False
    return True


def _tool_names(request: Mapping[str, Any], form: Form) -> Iterator[str]:
    """Yield the tools' names as transcripts have them, without the mark."""
    names = _raw_names(request, form)
    if form.dialect != "anthropic" or not _is_subscription(names):
        yield from names
        return
    for name in names:
        bare = name.removeprefix(_SUBSCRIPTION_MARK)
        yield from (name, bare, f"mcp_{bare}")  # all three are marked alike; one of them is the tool's own name


def _raw_names(request: Mapping[str, Any], form: Form) -> list[str]:
    names = []
    for tool in request.get("tools") or ():
        if isinstance(tool, Mapping):
            function = tool.get("function")
            names.append(function.get("name") if isinstance(function, Mapping) else tool.get("name"))
    return [name for name in names if isinstance(name, str)]


def _is_subscription(names: Sequence[str]) -> bool:
    return bool(names) and all(name.startswith(_SUBSCRIPTION_MARK) for name in names)


def _mark_calls(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    if not isinstance(content, list):
        return dict(message)
    return {**message, "content": [_mark(block) if block.get("type") == "tool_use" else block for block in content]}


def _mark(block: Mapping[str, Any]) -> dict[str, Any]:
    name = block["name"]
    if name.startswith(_SUBSCRIPTION_MARK):
        return dict(block)
    return {**block, "name": _SUBSCRIPTION_MARK + name.removeprefix("mcp_")}


def _untyped(item: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the type "message": Hermes accepts it only for an assistant's message with parts."""
    return {key: value for key, value in item.items() if (key, value) != ("type", "message")}


def _thinks(setting: Any) -> bool:
    return isinstance(setting, Mapping) and setting.get("type") not in (None, "disabled")
