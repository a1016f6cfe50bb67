"""Fields of records, read without relying on their type: one strange field never costs the record."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from warmstart.model import Arguments

COUNT_LIMIT = 1 << 50  # no session has so many tokens or dollars
Count = Annotated[int, msgspec.Meta(ge=0, lt=COUNT_LIMIT)]  # a number of tokens in a decoded struct
_HIDDEN_PARTS = ("thinking", "redacted_thinking", "reasoning")  # a tuple: the compared value may be unhashable
_LATEST = 1e14  # milliseconds, about the year 5100
_MILLISECONDS = 1e11  # larger times are milliseconds, smaller ones seconds

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def string_of(value: Any) -> str:
    """Return a name or an id, which some writers leave as a number; "" for anything else."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else ""


def dict_of(value: Any) -> dict[str, Any]:
    """Return an object, or {} for anything else."""
    return value if isinstance(value, dict) else {}


def text_of(content: Any) -> str:
    """Return the text of a `content`: a string, the joined texts of its parts, or else JSON."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if not isinstance(content, list):
        return msgspec.json.encode(content).decode()
    parts: list[str] = []
    for part in content:
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, dict) and part.get("type") not in _HIDDEN_PARTS:
            text = part.get("text", part.get("content", part.get("refusal")))
            parts.append(text if isinstance(text, str) else f"[{part.get('type', 'data')}]")
    return "\n".join(parts)


def count_of(value: Any) -> int | None:
    """Return a number of tokens; None where the value cannot be one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < COUNT_LIMIT else None


def dollars_of(value: Any) -> float | None:
    """Return a cost in dollars; None where the value cannot be one."""
    is_cost = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < COUNT_LIMIT
    return float(value) if is_cost else None


def without_cached(prompt: int | None, cached: int | None) -> int | None:
    """Return the input tokens of a prompt whose count includes those read from the cache."""
    return None if prompt is None else max(0, prompt - (cached or 0))


def parse_arguments(text: Any) -> Arguments:
    """Return arguments given as JSON text: an object, or the text itself where it is not one."""
    if isinstance(text, dict):
        return text
    if not isinstance(text, str):
        return {} if text is None else str(text)
    if not text.strip():
        return {}
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text


def parse_time(value: Any) -> float | None:
    """Return seconds since the epoch from ISO text, seconds or milliseconds. A time without a zone is UTC."""
    if type(value) is not str:
        if not isinstance(value, (int, float)) or not 0 <= value < _LATEST:
            return None
        return value / 1000 if value > _MILLISECONDS else float(value)
    if not value:
        return None
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
