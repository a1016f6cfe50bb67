"""Render one example in each provider's format: the request, the calls that met it with their results, a last word.

Every example is a complete exchange that ends on the assistant's turn, so any of them can be left out. The last word is the
agent's own; where none was recorded it is a mark in brackets, because nobody said the last result and a made-up sentence
would be imitated. Recorded text is data: the user's turn says so, and in the text dialect no recorded line starts at the
margin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, assert_never

import msgspec

from warmstart import lazy_regex as re
from warmstart.digests import blake2b
from warmstart.excerpt import before_gap, first
from warmstart.model import Arguments, Dialect, Example, ExampleCall

Messages = list[dict[str, Any]]

EXAMPLE_MARK = "[Example from an earlier session, for reference only; not a request]"
NO_OUTPUT = "(no output)"  # providers refuse empty content
UNSIGNED = "skip_thought_signature_validator"  # Gemini's documented stand-in for a signature that was never made

_INTENT_LIMIT = 700
_CLOSING_LIMIT = 200
_ECHO_LIMIT = 60
_JSON_SIGNS = str.maketrans("", "", '"{}')
_PLACEHOLDER = "{{SECRET:"
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
_DATA = re.compile(r'\{\s*"|\[\s*[\["{]')  # the beginning of JSON, not of a link or a list
_NINE_CHARACTER_IDS = re.compile(r"mistral|codestral|magistral|devstral|ministral|pixtral|mixtral|voxtral", re.I)
_BEFORE_SIGNATURES = re.compile(r"gemini-?[12](?!\d)", re.I)


class _ShownCall(NamedTuple):
    """A call made safe to send."""

    call_id: str
    tool: str
    arguments: dict[str, Any]
    result: str

    @property
    def written(self) -> str:
        return _encode(self.arguments)


class _Shown(NamedTuple):
    """An example made safe to send."""

    asked: str  # the user's turn
    calls: list[_ShownCall]
    closing: str  # the assistant's last turn


def render(example: Example, dialect: Dialect, *, model: str | None = None, thinking: bool = False) -> Messages | str:
    """Render one example as messages, or as a block of text."""
    if dialect == "text":
        return _write_text(example)
    if dialect == "anthropic" and thinking:
        return remark(f"{EXAMPLE_MARK}\n{_write_text(example)}", write_closing(example), dialect)
    calls = [
        _ShownCall(
            call_id=call_id(example, model=model, place=place),
            tool=call.tool,
            arguments=_wrap_arguments(call.arguments),
            result=_write_result(call),
        )
        for place, call in enumerate(example.shown)
    ]
    shown = _Shown(_write_request(example), calls, write_closing(example))
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
    for call in example.shown:
        if not _NAMES[dialect].fullmatch(call.tool):
            return f"tool name {clean(first(call.tool, 80))!r} is not allowed in the {dialect} dialect"
        if _PLACEHOLDER in _encode(_simplify(call.arguments)):
            return "a secret was masked in its call, and nobody could say what belongs there"
    return None


def call_id(example: Example, *, model: str | None = None, place: int = 0) -> str:
    """Return a stable id made from the call itself, not from its place in the seed. `place`: among the example's calls."""
    parts: list[Any] = [example.tool, example.arguments, example.intent, example.correction]
    parts += [[call.tool, call.arguments] for call in example.calls]
    content = msgspec.json.encode([_simplify(part) for part in parts])
    if not wants_nine_characters(model):
        return f"warm_{blake2b(content, digest_size=6).hexdigest()}_{place}"
    number = int.from_bytes(blake2b(b"%d " % place + content, digest_size=8).digest(), "big")
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


def write_closing(example: Example) -> str:
    """Return the assistant's last turn: its own words, else the last result in brackets.

    Strict servers want a turn there. A fixed mark was repeated by small models as their last words; who repeats this form
    names the result of the own last call.
    """
    result = " ".join(before_gap(_write_result(example.shown[-1])).split())
    plain = result if _PLACEHOLDER in result else result.translate(_JSON_SIGNS)
    return clean(first(_read_words(example), _CLOSING_LIMIT)) or f"[result: {first(plain, _ECHO_LIMIT)}]"


def _read_words(example: Example) -> str:
    """Return the assistant's own last words; none if they are only the beginning of data (`{"message":`)."""
    said = example.closing.strip()
    return "" if _DATA.match(said) and said[-1] not in "}]" else said


def _write_result(call: ExampleCall) -> str:
    return clean(call.result) if call.result.strip() else NO_OUTPUT


def _write_intent(example: Example) -> str:
    return clean(first(example.intent.strip(), _INTENT_LIMIT)) or f"Use {clean(first(example.tool, 128))}"


def _write_correction(call: ExampleCall) -> str | None:
    return clean(first(call.correction.strip(), _CORRECTION_LIMIT)) if call.correction else None


def _write_stand_ins(example: Example) -> str:
    """Return the note that some values are made up: they stand in the request or in a result before the call."""
    listed = ", ".join(clean(value) for value in example.stand_ins)
    return f"(Made up here: {listed}. Take yours from the current request and its results.)" if listed else ""


def _write_request(example: Example) -> str:
    corrections = [text for call in example.shown if (text := _write_correction(call))]
    failed = [f"(A first try had failed: {text})" for text in corrections]
    return "\n".join(filter(None, (EXAMPLE_MARK, _write_stand_ins(example), _write_intent(example), *failed)))


def _write_text(example: Example) -> str:
    """Render an example as text. Only the first line starts at the margin; recorded lines are indented below it.

    A call is written as JSON with its name and arguments, the form in which models without tool calls write calls.
    """
    lines = [f"- Wanted: {_join_lines(_write_intent(example))}"]
    if note := _write_stand_ins(example):
        lines.append(f"  {note}")
    several = len(example.shown) > 1
    for number, call in enumerate(example.shown, 1):
        if correction := _write_correction(call):
            lines.append(f"  A first try had failed: {_join_lines(correction)}")
        written = _encode({"name": clean(call.tool), "arguments": _wrap_arguments(call.arguments)})
        lines.append(f"  Call {number} that worked: {written}" if several else f"  Call that worked: {written}")
        lines.append("  Result:")
        lines += [f"    {line}" for line in _write_result(call).splitlines()]
    if _read_words(example):
        lines.append(f"  Then the agent said: {_join_lines(write_closing(example))}")
    return "\n".join(lines)


def _join_lines(text: str) -> str:
    return " ".join(text.splitlines())


def _render_openai(shown: _Shown) -> Messages:
    messages: Messages = [{"role": "user", "content": shown.asked}]
    for call in shown.calls:
        function = {"name": call.tool, "arguments": call.written}
        entry = {"id": call.call_id, "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [entry]})
        messages.append({"role": "tool", "tool_call_id": call.call_id, "content": call.result})
    return [*messages, {"role": "assistant", "content": shown.closing}]


def _render_anthropic(shown: _Shown) -> Messages:
    messages: Messages = [{"role": "user", "content": shown.asked}]
    for call in shown.calls:
        use = {"type": "tool_use", "id": call.call_id, "name": call.tool, "input": call.arguments}
        answer = {"type": "tool_result", "tool_use_id": call.call_id, "content": call.result}
        messages.append({"role": "assistant", "content": [use]})
        messages.append({"role": "user", "content": [answer]})
    return [*messages, {"role": "assistant", "content": shown.closing}]


def _item(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": text}


def _render_responses(shown: _Shown) -> Messages:
    items: Messages = [_item("user", shown.asked)]
    for call in shown.calls:
        named = {"call_id": call.call_id, "name": call.tool, "arguments": call.written}
        items.append({"type": "function_call", **named})
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": call.result})
    return [*items, _item("assistant", shown.closing)]


def _content(role: str, part: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": [part]}


def _render_gemini(shown: _Shown, *, signed: bool) -> Messages:
    """Render without call ids: Vertex refuses them as an unknown field, and a single call needs none."""
    contents = [_content("user", {"text": shown.asked})]
    for call in shown.calls:
        part: dict[str, Any] = {"functionCall": {"name": call.tool, "args": call.arguments}}
        if signed:
            part["thoughtSignature"] = UNSIGNED
        contents.append(_content("model", part))
        answer = {"name": call.tool, "response": {"output": call.result}}
        contents.append(_content("user", {"functionResponse": answer}))
    return [*contents, _content("model", {"text": shown.closing})]
