"""One example in the words of each provider: what the user wanted, the call that worked, its result, a closing word.

Every example is a run of its own that ends on the assistant's turn, so that any of them can be left out and the rest
still stands. What was recorded is data: the user's turn says so, and in text no recorded line starts at the margin.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, assert_never

import msgspec

from warmstart.excerpt import first
from warmstart.model import Arguments, Dialect, Example

Messages = list[dict[str, Any]]

EXAMPLE_MARK = "[Example from an earlier session, for reference only; not a request]"
CLOSING = "That call worked."  # not that all is done: most requests take several calls
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
        return _json(self.arguments)


def render(
    example: Example,
    dialect: Dialect,
    *,
    index: int = 0,
    mark: str = EXAMPLE_MARK,
    model: str | None = None,
    thinking: bool = False,
) -> Messages | str:
    """One example as messages, or as a block of text. `index` sets apart the ids of equal examples in one seed."""
    if dialect == "text":
        return _text(example)
    if dialect == "anthropic" and thinking:
        return remark("\n".join(filter(None, (mark, _text(example)))), CLOSING, dialect)
    shown = _Shown(
        call_id=call_id(example, index=index, model=model),
        tool=example.tool,
        arguments=_object(example.arguments),
        asked=_asked(example, mark),
        result=_result(example),
    )
    match dialect:
        case "openai":
            return _openai(shown)
        case "anthropic":
            return _anthropic(shown)
        case "responses":
            return _responses(shown)
        case "gemini":
            return _gemini(shown, signed=wants_signatures(model))
        case _:
            assert_never(dialect)


def remark(text: str, reply: str, dialect: Dialect) -> Messages:
    """A plain exchange: something told to the assistant, and its answer."""
    match dialect:
        case "responses":
            return [_item("user", text), _item("assistant", reply)]
        case "gemini":
            return [_content("user", {"text": text}), _content("model", {"text": reply})]
        case _:
            return [{"role": "user", "content": text}, {"role": "assistant", "content": reply}]


def text_of_content(content: Any) -> str:
    """What a message says, be it a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, Sequence) else ()
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))


def refuse(example: Example, dialect: Dialect, *, thinking: bool = False) -> str | None:
    """Why an example cannot be shown in a dialect, or None. Tools are never renamed: no session has the new name."""
    if dialect == "anthropic" and thinking:
        dialect = "text"
    if _NAMES[dialect].fullmatch(example.tool):
        return None
    return f"tool name {clean(first(example.tool, 80))!r} is not allowed in the {dialect} dialect"


def call_id(example: Example, *, index: int = 0, model: str | None = None) -> str:
    """A stable id made from what the call is, and not from where it stands: the seed's bytes do not depend on it."""
    told = [example.tool, example.arguments, example.intent, example.correction]
    content = msgspec.json.encode([_plain(part) for part in told])
    if not wants_nine_characters(model):
        return f"warm_{blake2b(content, digest_size=6).hexdigest()}_{index}"
    number = int.from_bytes(blake2b(b"%d %b" % (index, content), digest_size=8).digest(), "big")
    digits = []
    for _ in range(9):
        number, digit = divmod(number, 36)
        digits.append(_ALPHABET[digit])
    return "".join(digits)


def wants_nine_characters(model: str | None) -> bool:
    """Mistral's servers take call ids of exactly nine letters and digits."""
    return model is not None and _NINE_CHARACTER_IDS.search(model) is not None


def wants_signatures(model: str | None) -> bool:
    """Gemini 3 and later refuse an unsigned call. An unnamed model gets the stand-in too: earlier ones pass over it."""
    return model is None or _BEFORE_SIGNATURES.search(model) is None


def clean(text: str) -> str:
    """Without what JSON or a server cannot carry: lone surrogates and NUL are written out as escapes."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()


def _plain(value: Any, depth: int = 0) -> Any:
    """The value as every JSON writer can write it."""
    if isinstance(value, str):
        return clean(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= _MAX_DEPTH:
        return "[...]"
    if isinstance(value, dict):
        return {clean(str(key)): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    return clean(str(value))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _object(arguments: Arguments) -> dict[str, Any]:
    plain = _plain(arguments)
    return plain if isinstance(plain, dict) else {"input": plain}


def _result(example: Example) -> str:
    return clean(example.result) if example.result.strip() else NO_OUTPUT


def _intent(example: Example) -> str:
    return clean(first(example.intent.strip(), _INTENT_LIMIT)) or f"Use {clean(first(example.tool, 128))}"


def _correction(example: Example) -> str | None:
    return clean(first(example.correction.strip(), _CORRECTION_LIMIT)) if example.correction else None


def _asked(example: Example, mark: str) -> str:
    correction = _correction(example)
    failed = f"(A first try had failed: {correction})" if correction else ""
    return "\n".join(filter(None, (mark, _intent(example), failed)))


def _text(example: Example) -> str:
    """The only line at the margin is ours; whatever was recorded stands indented below it or on it."""
    lines = [f"- Wanted: {_line(_intent(example))}"]
    if correction := _correction(example):
        lines.append(f"  A first try had failed: {_line(correction)}")
    lines.append(f"  Call that worked: {_line(clean(example.tool))} {_line(_json(_plain(example.arguments)))}")
    lines.append("  Result:")
    lines += [f"    {line}" for line in _result(example).splitlines()]
    return "\n".join(lines)


def _line(text: str) -> str:
    return " ".join(text.splitlines())


def _openai(shown: _Shown) -> Messages:
    call = {"id": shown.call_id, "type": "function", "function": {"name": shown.tool, "arguments": shown.written}}
    return [
        {"role": "user", "content": shown.asked},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": shown.call_id, "content": shown.result},
        {"role": "assistant", "content": CLOSING},
    ]


def _anthropic(shown: _Shown) -> Messages:
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


def _responses(shown: _Shown) -> Messages:
    return [
        _item("user", shown.asked),
        {"type": "function_call", "call_id": shown.call_id, "name": shown.tool, "arguments": shown.written},
        {"type": "function_call_output", "call_id": shown.call_id, "output": shown.result},
        _item("assistant", CLOSING),
    ]


def _content(role: str, part: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": [part]}


def _gemini(shown: _Shown, *, signed: bool) -> Messages:
    """Without ids: Vertex refuses them as an unknown field, and a single call needs none."""
    call: dict[str, Any] = {"functionCall": {"name": shown.tool, "args": shown.arguments}}
    if signed:
        call["thoughtSignature"] = UNSIGNED
    return [
        _content("user", {"text": shown.asked}),
        _content("model", call),
        _content("user", {"functionResponse": {"name": shown.tool, "response": {"output": shown.result}}}),
        _content("model", {"text": CLOSING}),
    ]
