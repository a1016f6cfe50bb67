"""Rules of providers whose messages consist of blocks: Anthropic messages and Gemini contents."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from warmstart.dialects.lint_calls import (
    Finding,
    Findings,
    LintContext,
    Message,
    lint_answer,
    lint_id,
    lint_name,
    report_open,
    show,
)

_ANTHROPIC_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")
_GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_GEMINI_3 = re.compile(r"gemini-?([3-9]|[1-9]\d)(?!\d)", re.I)
_OWNERS = {"tool_result": "user", "tool_use": "assistant", "thinking": "assistant", "redacted_thinking": "assistant"}
_GEMINI_FUNCTIONS = (
    ("functionCall", "function_call", "args", "model"),
    ("functionResponse", "function_response", "response", "user"),
)


# Anthropic messages


class _Turn(NamedTuple):
    role: Any
    blocks: list[tuple[int, Message]]


def lint_anthropic(messages: list[tuple[int, Message]], context: LintContext) -> Findings:
    if messages and messages[0][1].get("role") != "user":
        yield Finding(messages[0][0], "first_role", "the first message must have the role user")
    turns: list[_Turn] = []
    last = messages[-1][0] if messages else -1
    for index, message in messages:
        role = message.get("role")
        if role not in ("user", "assistant", "system"):
            yield Finding(index, "role", f"{show(role)} is not a role")
        if not turns or turns[-1].role != role:
            turns.append(_Turn(role, []))
        yield from _lint_blocks(index, message, turns[-1], is_last=index == last)
    used: set[str] = set()
    asked: dict[str, int] = {}  # calls of the previous turn
    has_thought = False  # whether a thinking block opened the current loop of calls
    for turn in turns:
        results = [(index, block) for index, block in turn.blocks if block.get("type") == "tool_result"]
        answered: set[str] = set()
        for index, block in results if turn.role == "user" else ():
            yield from lint_answer(index, block.get("tool_use_id"), asked, answered)
        if answered and any(block.get("type") != "tool_result" for _, block in turn.blocks[: len(results)]):
            yield Finding(turn.blocks[0][0], "result_not_first", "tool_result blocks must come first")
        yield from report_open(asked, "in the next user message")
        if turn.role == "user" and not results:
            has_thought = False
        if turn.role != "assistant":
            continue
        kinds = [block.get("type") for _, block in turn.blocks]
        has_thought = has_thought or (bool(kinds) and kinds[0] in ("thinking", "redacted_thinking"))
        for index, block in turn.blocks:
            if block.get("type") != "tool_use":
                continue
            yield from _lint_tool_use(index, block, context, used)
            if isinstance(block.get("id"), str):
                asked[block["id"]] = index
            if context.thinking and not has_thought:
                has_thought = True  # report it once per loop
                yield Finding(index, "thinking", "with thinking on, a turn that calls tools must start with thinking")
    yield from report_open(asked, "in the next user message")


def _lint_blocks(index: int, message: Message, turn: _Turn, *, is_last: bool) -> Findings:
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list | tuple):
        yield Finding(index, "content", "content must be a string or a list of blocks")
        return
    is_prefill = is_last and turn.role == "assistant"
    if not content and not is_prefill:
        yield Finding(index, "empty_content", "a message needs content")
    for block in content:
        if not isinstance(block, Mapping) or not isinstance(block.get("type"), str):
            yield Finding(index, "content", "a block must be an object with a type")
            continue
        turn.blocks.append((index, block))
        kind, text = block["type"], block.get("text")
        if kind == "text" and (not isinstance(text, str) or not text.strip()) and not (is_prefill and text == ""):
            yield Finding(index, "empty_text", "a text block needs text")
        elif kind == "text" and is_prefill and block is content[-1] and isinstance(text, str) and text != text.rstrip():
            yield Finding(index, "trailing_space", "the last assistant message must not end with white space")
        if turn.role != _OWNERS.get(kind, turn.role):
            yield Finding(index, "block_role", f"a {kind} block belongs to the {_OWNERS[kind]}")


def _lint_tool_use(index: int, block: Message, context: LintContext, used: set[str]) -> Findings:
    call, name = block.get("id"), block.get("name")
    yield from lint_id(index, call, None, context, used)
    if isinstance(call, str) and call and not _ANTHROPIC_ID.fullmatch(call):
        yield Finding(index, "id", f"id {show(call)} may contain only letters, digits, _ and -")
    yield from lint_name(index, name, _ANTHROPIC_NAME)
    if not isinstance(block.get("input"), Mapping):
        yield Finding(index, "arguments", "input must be an object")
    if context.tools is not None and isinstance(name, str) and name not in context.tools:
        yield Finding(index, "undeclared_tool", f"tool {show(name)} is not declared")


# Gemini contents


def lint_gemini(contents: list[tuple[int, Message]], context: LintContext) -> Findings:
    is_signed = context.model is not None and _GEMINI_3.search(context.model) is not None
    asked: tuple[int, list[Message]] | None = None  # the calls of the previous content
    before = None
    for index, content in contents:
        role = content.get("role") or "user"
        parts = content.get("parts")
        if role not in ("user", "model", "function"):
            yield Finding(index, "role", f"{show(role)} is not a role")
        if not isinstance(parts, list | tuple) or not parts:
            yield Finding(index, "empty_content", "a content needs parts")
            parts = []
        by_part = [_read_part(part, "functionCall", "function_call") for part in parts]
        calls = [call for call in by_part if call is not None]
        responses = [_read_part(part, "functionResponse", "function_response") for part in parts]
        answers = [response for response in responses if response is not None]
        yield from _lint_gemini_parts(index, role, parts)
        if asked is not None or answers:
            yield from _lint_gemini_answers(index, asked, answers)
        if calls and before not in ("user", "function"):
            yield Finding(index, "call_position", "a call must come right after the user or a function's response")
        if calls and is_signed:
            holder = next(part for part, call in zip(parts, by_part, strict=True) if call is not None)
            if not (holder.get("thoughtSignature") or holder.get("thought_signature")):
                yield Finding(index, "thought_signature", "Gemini 3 needs a thoughtSignature on a turn's first call")
        asked = (index, calls) if calls else None
        before = role
    if asked is not None:
        yield Finding(asked[0], "unanswered_call", "the call has no response in the next content")


def _lint_gemini_parts(index: int, role: Any, parts: Sequence[Any]) -> Findings:
    for part in parts:
        if not isinstance(part, Mapping) or not part:
            yield Finding(index, "content", "a part must be an object that is not empty")
            continue
        if part.get("text") == "":
            yield Finding(index, "empty_text", "a text part needs text")
        for camel, snake, body, owner in _GEMINI_FUNCTIONS:
            function = _read_part(part, camel, snake)
            if function is None:
                continue
            if (role == "model") != (owner == "model"):
                yield Finding(index, "block_role", f"a {camel} belongs to the {owner}")
            yield from lint_name(index, function.get("name"), _GEMINI_NAME)
            value = function.get(body)
            if not isinstance(value, Mapping) and not (body == "args" and value is None):
                yield Finding(index, "arguments", f"{body} must be an object")


def _lint_gemini_answers(index: int, asked: tuple[int, list[Message]] | None, answers: list[Message]) -> Findings:
    if asked is None:
        yield Finding(index, "result_without_call", "a response must come right after its call")
    elif not answers:
        yield Finding(asked[0], "unanswered_call", "the call has no response in the next content")
    elif len(answers) != len(asked[1]):
        yield Finding(index, "response_count", f"{len(answers)} responses to {len(asked[1])} calls")
    else:
        wanted, got = ([(str(part.get("id")), str(part.get("name"))) for part in side] for side in (asked[1], answers))
        if all(call.get("id") for call in asked[1]):
            wanted, got = sorted(wanted), sorted(got)
        else:
            wanted, got = [("", name) for _, name in wanted], [("", name) for _, name in got]
        if wanted != got:
            yield Finding(index, "response_order", "responses are not in the order of their calls")


def _read_part(part: Any, camel: str, snake: str) -> Message | None:
    if not isinstance(part, Mapping):
        return None
    value = part.get(camel, part.get(snake))
    return value if isinstance(value, Mapping) else None
