"""Render one example in each provider's format: the user's request, the call that worked, its result, a closing word.

Every example is a complete exchange that ends on the assistant's turn, so any of them can be left out. Recorded text is
data: the user's turn says so, and in the text dialect no recorded line starts at the margin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, assert_never

import msgspec

from warmstart import lazy_regex as re
from warmstart.digests import blake2b
from warmstart.excerpt import first
from warmstart.model import Arguments, Dialect, Example

Messages = list[dict[str, Any]]

EXAMPLE_MARK = "[Example from an earlier session, for reference only; not a request]"
CLOSING = "That call worked."  # it does not say that all is done: most requests take several calls
NO_OUTPUT = "(no output)"  # providers refuse empty content
UNSIGNED = "skip_thought_signature_validator"  # Gemini's documented stand-in for a signature that was never made

_INTENT_LIMIT = 500
_CORRECTION_LIMIT = 300
_MAX_DEPTH = 40
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_NAMES: dict[Dialect, re.Pattern[str]] = {
    "openai": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "responses": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "anthropic": re.compile(r"[a-zA-Z0-9_-]{1,128}"),
    "gemini": re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}"),
    "text": re.compile(r"(?s).*\S.*"),
}
_NINE_CHARACTER_IDS = re.compile(r"mistral|codestral|magistral|devstral|ministral|pixtral|mixtral|voxtral", re.I)
_BEFORE_SIGNATURES = re.compile(r"gemini-?[12](?!\d)", re.I)


class _Shown(NamedTuple):
    """An example made safe to send."""

    call_id: str
    tool: str
    arguments: dict[str, Any]
    asked: str  # the user's turn
    result: str

    @property
    def written(self) -> str:
        return _encode(self.arguments)


def render(example: Example, dialect: Dialect, *, model: str | None = None, thinking: bool = False) -> Messages | str:
    """Render one example as messages, or as a block of text."""
    if dialect == "text":
        return _write_text(example)
    if dialect == "anthropic" and thinking:
        return remark(f"{EXAMPLE_MARK}\n{_write_text(example)}", CLOSING, dialect)
    shown = _Shown(
        call_id=call_id(example, model=model),
        tool=example.tool,
        arguments=_wrap_arguments(example.arguments),
        asked=_write_request(example),
        result=_write_result(example),
    )
    match dialect:
        case "openai":
            return _render_openai(shown)
        case "anthropic":
            return _render_anthropic(shown)
        case "responses":
            return _render_responses(shown)
        case "gemini":
            return _render_gemini(shown, signed=wants_signatures(model))
        case _:
            assert_never(dialect)


def remark(text: str, reply: str, dialect: Dialect) -> Messages:
    """Return a plain exchange: a message to the assistant, and its reply."""
    match dialect:
        case "responses":
            return [_item("user", text), _item("assistant", reply)]
        case "gemini":
            return [_content("user", {"text": text}), _content("model", {"text": reply})]
        case _:
            return [{"role": "user", "content": text}, {"role": "assistant", "content": reply}]


def text_of_content(content: Any) -> str:
    """Return the text of a message's content, be it a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, Sequence) else ()
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))


def refuse(example: Example, dialect: Dialect, *, thinking: bool = False) -> str | None:
    """Return why an example cannot be shown in a dialect, or None. Tools are never renamed: no session has the new name."""
    if dialect == "anthropic" and thinking:
        dialect = "text"
    if _NAMES[dialect].fullmatch(example.tool):
        return None
    return f"tool name {clean(first(example.tool, 80))!r} is not allowed in the {dialect} dialect"


def call_id(example: Example, *, model: str | None = None) -> str:
    """Return a stable id made from the call itself, not from its place in the seed."""
    parts = [example.tool, example.arguments, example.intent, example.correction]
    content = msgspec.json.encode([_simplify(part) for part in parts])
    if not wants_nine_characters(model):
        return f"warm_{blake2b(content, digest_size=6).hexdigest()}_0"
    number = int.from_bytes(blake2b(b"0 " + content, digest_size=8).digest(), "big")
    digits = []
    for _ in range(9):
        number, digit = divmod(number, 36)
        digits.append(_ALPHABET[digit])
    return "".join(digits)


def wants_nine_characters(model: str | None) -> bool:
    """Whether a model takes only call ids of nine letters and digits, as Mistral's servers do."""
    return model is not None and _NINE_CHARACTER_IDS.search(model) is not None


def wants_signatures(model: str | None) -> bool:
    """Whether a model refuses unsigned calls, as Gemini 3 and later do. An unnamed model counts too: earlier ones ignore it."""
    return model is None or _BEFORE_SIGNATURES.search(model) is None


def clean(text: str) -> str:
    """Write lone surrogates and NUL, which JSON or a server cannot carry, as escapes."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()


def _simplify(value: Any, depth: int = 0) -> Any:
    """Return the value in a form that every JSON writer can write."""
    if isinstance(value, str):
        return clean(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= _MAX_DEPTH:
        return "[...]"
    if isinstance(value, dict):
        return {clean(str(key)): _simplify(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_simplify(item, depth + 1) for item in value]
    return clean(str(value))


def _encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _wrap_arguments(arguments: Arguments) -> dict[str, Any]:
    """Return arguments as an object: providers take nothing else."""
    simple = _simplify(arguments)
    return simple if isinstance(simple, dict) else {"input": simple}


def _write_result(example: Example) -> str:
    return clean(example.result) if example.result.strip() else NO_OUTPUT


def _write_intent(example: Example) -> str:
    return clean(first(example.intent.strip(), _INTENT_LIMIT)) or f"Use {clean(first(example.tool, 128))}"


def _write_correction(example: Example) -> str | None:
    return clean(first(example.correction.strip(), _CORRECTION_LIMIT)) if example.correction else None


def _write_request(example: Example) -> str:
    correction = _write_correction(example)
    failed = f"(A first try had failed: {correction})" if correction else ""
    return "\n".join(filter(None, (EXAMPLE_MARK, _write_intent(example), failed)))


def _write_text(example: Example) -> str:
    """Render an example as text. Only the first line starts at the margin; recorded lines are indented below it."""
    lines = [f"- Wanted: {_join_lines(_write_intent(example))}"]
    if correction := _write_correction(example):
        lines.append(f"  A first try had failed: {_join_lines(correction)}")
    arguments = _encode(_simplify(example.arguments))
    lines.append(f"  Call that worked: {_join_lines(clean(example.tool))} {_join_lines(arguments)}")
    lines.append("  Result:")
    lines += [f"    {line}" for line in _write_result(example).splitlines()]
    return "\n".join(lines)


def _join_lines(text: str) -> str:
    return " ".join(text.splitlines())


def _render_openai(shown: _Shown) -> Messages:
    call = {"id": shown.call_id, "type": "function", "function": {"name": shown.tool, "arguments": shown.written}}
    return [
        {"role": "user", "content": shown.asked},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": shown.call_id, "content": shown.result},
        {"role": "assistant", "content": CLOSING},
    ]


def _render_anthropic(shown: _Shown) -> Messages:
    call = {"type": "tool_use", "id": shown.call_id, "name": shown.tool, "input": shown.arguments}
    return [
        {"role": "user", "content": shown.asked},
        {"role": "assistant", "content": [call]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": shown.call_id, "content": shown.result}],
        },
        {"role": "assistant", "content": CLOSING},
    ]


def _item(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": text}


def _render_responses(shown: _Shown) -> Messages:
    return [
        _item("user", shown.asked),
        {"type": "function_call", "call_id": shown.call_id, "name": shown.tool, "arguments": shown.written},
        {"type": "function_call_output", "call_id": shown.call_id, "output": shown.result},
        _item("assistant", CLOSING),
    ]


def _content(role: str, part: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": [part]}


def _render_gemini(shown: _Shown, *, signed: bool) -> Messages:
    """Render without call ids: Vertex refuses them as an unknown field, and a single call needs none."""
    call: dict[str, Any] = {"functionCall": {"name": shown.tool, "args": shown.arguments}}
    if signed:
        call["thoughtSignature"] = UNSIGNED
    return [
        _content("user", {"text": shown.asked}),
        _content("model", call),
        _content("user", {"functionResponse": {"name": shown.tool, "response": {"output": shown.result}}}),
        _content("model", {"text": CLOSING}),
    ]
