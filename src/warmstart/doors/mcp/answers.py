"""Answers as JSON that fits a context window: always valid, and with a note about what was cut."""

from __future__ import annotations

from typing import Any

import msgspec

from warmstart.dialects.providers import EXAMPLE_MARK
from warmstart.excerpt import cut
from warmstart.model import Example, Template
from warmstart.store import TemplateRow

MAX_ANSWER = 20_000  # characters: some 5,000 tokens
_WHOLE = ("messages", "text")  # never cut: a seed has its own budget
_TIGHTER = (
    (2_000, 100),
    (800, 50),
    (400, 20),
    (200, 10),
    (80, 5),
    (40, 3),
    (20, 1),
)  # characters per text, items per list

_encode = msgspec.json.Encoder(enc_hook=str).encode


def write_answer(value: Any) -> str:
    """Return the value as JSON, shortened step by step until it fits."""
    body = _encode(value).decode()
    if len(body) <= MAX_ANSWER:
        return body
    plain = msgspec.json.decode(body)
    for characters, items in _TIGHTER:
        shorter = _shorten(plain, characters, items)
        shorter = shorter if isinstance(shorter, dict) else {"items": shorter}
        shorter["cut"] = f"too long: lists are cut to {items} items, texts to {characters} characters; ask for less"
        body = _encode(shorter).decode()
        if len(body) <= MAX_ANSWER:
            break
    return body


def _shorten(value: Any, characters: int, items: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= characters else cut(value, characters)
    if isinstance(value, dict):
        kept = list(value.items())[: 10 * items]
        return {key[:200]: inner if key in _WHOLE else _shorten(inner, characters, items) for key, inner in kept}
    if isinstance(value, list):
        return [_shorten(inner, characters, items) for inner in value[:items]]
    return value


def write_template(row: TemplateRow, template: Template) -> str:
    """Return a template as a page of Markdown."""
    parts = [
        f"# {row.name}@{row.version}",
        template.description,
        f"{row.category}/{row.task_type}, {row.status}: {row.reason}",
        EXAMPLE_MARK,
        *([template.addendum] if template.addendum else []),
        *(_write_example(number, example) for number, example in enumerate(template.examples, 1)),
    ]
    return cut("\n\n".join(filter(None, parts)), MAX_ANSWER)


def _write_example(number: int, example: Example) -> str:
    tools = ", ".join(dict.fromkeys(call.tool for call in example.shown))
    lines = [f"## {number}. {tools}", f"Wanted: {example.intent}" if example.intent else ""]
    for call in example.shown:
        arguments = call.arguments if isinstance(call.arguments, str) else _encode(call.arguments).decode()
        if call.correction:
            lines.append(f"Mends: {call.correction}")
        if len(example.shown) > 1:
            lines.append(f"Call: {call.tool}")
        lines += [_fence("json", arguments), _fence("", call.result)]
    if example.closing:
        lines.append(f"Closed: {example.closing}")
    return "\n\n".join(filter(None, lines))


def _fence(language: str, text: str) -> str:
    """Return a code block whose text cannot close it."""
    marks = "```"
    while marks in text:
        marks += "`"
    return f"{marks}{language}\n{text}\n{marks}"
