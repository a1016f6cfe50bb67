"""Tool calls as models write them: read arguments leniently, and check which tools can be offered."""

from __future__ import annotations

from typing import Any

import msgspec

from warmstart.dialects.providers import refuse
from warmstart.model import Arguments, Example

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
