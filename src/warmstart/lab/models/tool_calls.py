"""Tool calls as models write them: read them leniently, and send them back in a form that every server accepts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from warmstart.dialects.providers import clean, refuse
from warmstart.endpoints.chat import AskedCall
from warmstart.model import Arguments, Example

_UNNAMED = "unnamed_tool"  # replaces a name that no server accepts back
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def read_arguments(text: str) -> dict[str, Any] | None:
    """Return a model's arguments, or None if they are no JSON object."""
    try:
        return _decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return None


def is_sayable(tool: str) -> bool:
    """Return whether endpoints accept a tool of this name."""
    return refuse(Example(tool=tool, arguments={}, result=""), "openai") is None


def as_object(arguments: Arguments) -> dict[str, Any]:
    """Return arguments as an object; plain text gets the name that seeds give it."""
    return arguments if isinstance(arguments, dict) else {"input": arguments}


def make_harmless(call: AskedCall) -> AskedCall:
    """Return a call that can be sent back: servers refuse a whole conversation for one call they cannot read."""
    name = call.name if is_sayable(call.name) else _UNNAMED
    return AskedCall(call.id, name, "{}" if read_arguments(call.arguments) is None else clean(call.arguments))


def write_turn(
    text: str, ids: Sequence[str], calls: Sequence[AskedCall], results: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the messages of an answer with calls and of their results."""
    asked = [
        {"id": id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for id, call in zip(ids, calls, strict=True)
    ]
    answers = [{"role": "tool", "tool_call_id": id, "content": result} for id, result in zip(ids, results, strict=True)]
    return [{"role": "assistant", "content": text or None, "tool_calls": asked}, *answers]
