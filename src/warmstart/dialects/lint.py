"""Find what a provider would reject in a conversation.

Each rule stands for a 400 response that the provider is known to give. Where a provider is lenient the linter is too:
Anthropic joins neighbours of one role, OpenAI's Responses pair calls and outputs over any distance. Junk is a finding, never
an exception.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from warmstart.dialects.lint_blocks import lint_anthropic, lint_gemini
from warmstart.dialects.lint_calls import (
    Finding,
    Findings,
    LintContext,
    Message,
    lint_answer,
    lint_content,
    lint_id,
    lint_name,
    lint_written,
    report_open,
    show,
)
from warmstart.model import DIALECTS, Dialect

__all__ = ["Finding", "lint"]

_CHAT_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ITEM_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_CHAT_PARTS = frozenset(("text", "refusal", "image_url", "input_audio", "file"))
_ITEM_PARTS = frozenset(
    ("input_text", "output_text", "summary_text", "refusal", "input_image", "input_audio", "input_file")
)
_ITEM_CALLS = ("function_call", "custom_tool_call")
_ITEM_OUTPUTS = ("function_call_output", "custom_tool_call_output")


def lint(
    messages: Sequence[Mapping[str, Any]],
    dialect: Dialect = "openai",
    *,
    tools: Sequence[str] | None = None,
    thinking: bool = False,
    model: str | None = None,
) -> list[Finding]:
    """Return everything that would be rejected, in the order of the messages; empty for a good conversation."""
    given: Any = messages  # callers may pass anything
    context = LintContext(None if tools is None else frozenset(map(str, tools)), thinking, model and str(model))
    if dialect == "text":
        return list(_lint_text(given))
    check = _CHECKS.get(str(dialect))
    if check is None:
        return [Finding(0, "dialect", f"{show(dialect)} is not a dialect; choose one of {', '.join(DIALECTS)}")]
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
        return [Finding(0, "shape", f"a conversation must be a list of messages, not {type(given).__name__}")]
    findings: list[Finding] = []
    sound: list[tuple[int, Message]] = []
    for index, message in enumerate(given):
        if not isinstance(message, Mapping):
            findings.append(Finding(index, "shape", f"a message must be an object, not {type(message).__name__}"))
            continue
        sound.append((index, message))
        if not _is_json(message):
            findings.append(Finding(index, "encoding", "the message cannot be written as JSON"))
    findings += check(sound, context)
    return sorted(findings, key=lambda finding: finding.index)


def _lint_text(texts: Any) -> Findings:
    listed = texts if isinstance(texts, list | tuple) else [texts]
    for index, text in enumerate(listed):
        if not isinstance(text, str):
            yield Finding(index, "shape", f"a seed of the text dialect must be a string, not {type(text).__name__}")
        elif not _is_json(text):
            yield Finding(index, "encoding", "the text cannot be written as JSON")


# OpenAI chat completions


def lint_openai(messages: list[tuple[int, Message]], context: LintContext) -> Findings:
    open_calls: dict[str, int] = {}
    answered: set[str] = set()  # ids among the latest calls
    used: set[str] = set()
    for index, message in messages:
        role = message.get("role")
        if role == "tool":
            yield from lint_answer(index, message.get("tool_call_id"), open_calls, answered)
            if not isinstance(message.get("content"), str | list | tuple):
                yield Finding(index, "empty_content", "a tool message needs content")
            continue
        yield from report_open(open_calls, "before the next message")
        answered.clear()
        if role == "assistant":
            yield from _lint_openai_calls(index, message, context, open_calls, used)
        elif role in ("system", "developer", "user", "function"):
            yield from lint_content(index, message.get("content"), _CHAT_PARTS)
        else:
            yield Finding(index, "role", f"{show(role)} is not a role")
    yield from report_open(open_calls, "before the end")


def _lint_openai_calls(
    index: int, message: Message, context: LintContext, open_calls: dict[str, int], used: set[str]
) -> Findings:
    calls = message.get("tool_calls")
    if calls is None:
        if not any(message.get(key) for key in ("function_call", "refusal", "audio")):
            yield from lint_content(index, message.get("content"), _CHAT_PARTS)
        return
    if not isinstance(calls, list | tuple) or not calls:
        yield Finding(index, "tool_calls", "tool_calls must be a list with at least one call")
        return
    for call in calls:
        if not isinstance(call, Mapping) or call.get("type") not in ("function", "custom"):
            yield Finding(index, "tool_calls", "a call must be an object of type function or custom")
            continue
        body = call.get(call["type"])
        if not isinstance(body, Mapping):
            yield Finding(index, "tool_calls", f"a {call['type']} call needs an object named {call['type']}")
            body = {}
        yield from lint_id(index, call.get("id"), 40, context, used)
        if isinstance(call.get("id"), str):
            open_calls[call["id"]] = index
        yield from lint_name(index, body.get("name"), _CHAT_NAME)
        if call["type"] == "function":
            yield from lint_written(index, body.get("arguments"))


# OpenAI Responses


def lint_responses(items: list[tuple[int, Message]], context: LintContext) -> Findings:
    open_calls: dict[str, int] = {}
    answered: set[str] = set()
    used: set[str] = set()
    has_references = any(item.get("type") == "item_reference" for _, item in items)
    for index, item in items:
        kind = item.get("type", "message" if "role" in item else None)
        if kind == "message":
            if item.get("role") not in ("user", "assistant", "system", "developer"):
                yield Finding(index, "role", f"{show(item.get('role'))} is not a role")
            yield from lint_content(index, item.get("content"), _ITEM_PARTS)
        elif kind in _ITEM_CALLS:
            call = item.get("call_id")
            yield from lint_id(index, call, 64, context, used)
            if isinstance(call, str):
                open_calls[call] = index
            yield from lint_name(index, item.get("name"), _ITEM_NAME)
            if kind == "function_call":
                yield from lint_written(index, item.get("arguments"))
                own = item.get("id")
                if own is not None and not (isinstance(own, str) and own.startswith("fc")):
                    yield Finding(index, "id", "an item's id must begin with fc; the call's own id belongs in call_id")
        elif kind in _ITEM_OUTPUTS:
            call = item.get("call_id")
            if not has_references or call in list(open_calls):
                yield from lint_answer(index, call, open_calls, answered)
            if not isinstance(item.get("output"), str | list | tuple):
                yield Finding(index, "empty_content", "an output must be a string or a list")
        elif not isinstance(kind, str):
            yield Finding(index, "shape", "an item needs a type or a role")
    yield from report_open(open_calls, "anywhere after it")


def _is_json(value: Any) -> bool:
    try:
        msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return False
    return True


_CHECKS: dict[str, Callable[[list[tuple[int, Message]], LintContext], Findings]] = {
    "openai": lint_openai,
    "anthropic": lint_anthropic,
    "responses": lint_responses,
    "gemini": lint_gemini,
}
