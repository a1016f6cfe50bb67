"""Chat messages of the OpenAI shape, into a draft: several formats are these messages in some wrapper.

Anthropic's `tool_use` and `tool_result` blocks are understood too. Nothing in a message can be relied on, so every
field is looked at before it is used; one strange field never costs the message.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec

from warmstart.formats.lenient import DECODE_ERRORS, loose_values, scrub
from warmstart.formats.session_builder import SessionBuilder, parse_arguments, parse_time
from warmstart.formats.source import Source
from warmstart.model import Role, Signal

T = TypeVar("T")

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
}
RESULT_ROLES = frozenset(("tool", "function"))
_UNSAID = ("thinking", "redacted_thinking", "reasoning")  # a tuple: what is compared may be unhashable
_MAX_TOLD = 20
_FAR_OFF = 1e14  # milliseconds, some three thousand years on: not a time


class ChatMessage(msgspec.Struct, gc=False):
    role: Any = None
    content: Any = None
    tool_calls: Any = None
    tool_call_id: Any = None
    function_call: Any = None
    timestamp: Any = None


class Chat:
    """Puts the messages of one session into its draft."""

    def __init__(self, draft: SessionBuilder, report: Callable[[str], None]) -> None:
        self._draft = draft
        self._report = report
        self._open: dict[str, None] = {}  # calls without a result yet, oldest first
        self._told: set[str] = set()

    def take(self, message: ChatMessage) -> None:
        role = message.role
        at = time_of(message.timestamp)
        if role == "tool" or role == "function":
            self.result(message.tool_call_id, text_of(message.content), at)
            return
        speaker = ROLES.get(role) if isinstance(role, str) else None
        if speaker is None:
            self._tell_once(f"a message of the unknown role {str(role)[:40]!r} was left out")
            return
        if isinstance(message.content, str):
            self._draft.message(speaker, message.content, at)
        else:
            self._blocks(speaker, message.content, at)
        if isinstance(message.tool_calls, list):
            for call in message.tool_calls:
                self.call(call, at)
        if isinstance(message.function_call, dict):
            self.call({"function": message.function_call}, at)

    def call(self, call: Any, at: float | None) -> None:
        """`{id, function: {name, arguments}}` or flat `{id, name, arguments}`; arguments are JSON text or an object."""
        if not isinstance(call, dict):
            self._tell_once("a tool call that is no object was left out")
            return
        function = call.get("function")
        inner = function if isinstance(function, dict) else call
        name = function if isinstance(function, str) else inner.get("name")
        call_id = string_of(call.get("id"))
        if call_id:
            self._open.pop(call_id, None)
            self._open[call_id] = None
        self._draft.call(call_id, string_of(name), parse_arguments(inner.get("arguments")), at)

    def result(self, call_id: Any, text: str, at: float | None, signal: Signal | None = None) -> None:
        """Without an id it answers the oldest call that is still open."""
        known = string_of(call_id) or next(iter(self._open), "")
        self._open.pop(known, None)
        self._draft.result(known, text, at, signal)

    def _blocks(self, speaker: Role, content: Any, at: float | None) -> None:
        said: list[Any] = []
        for block in content if isinstance(content, list) else (content,):
            kind = block.get("type") if isinstance(block, dict) else None
            if kind != "tool_use" and kind != "tool_result":
                said.append(block)
                continue
            self._draft.message(speaker, text_of(said), at)
            said.clear()
            if kind == "tool_use":
                self.call({"id": block.get("id"), "name": block.get("name"), "arguments": block.get("input")}, at)
            else:
                flag = block.get("is_error")
                signal = Signal(failed=flag) if isinstance(flag, bool) else None
                self.result(block.get("tool_use_id"), text_of(block.get("content")), at, signal)
        self._draft.message(speaker, text_of(said), at)

    def _tell_once(self, reason: str) -> None:
        if reason not in self._told and len(self._told) < _MAX_TOLD:
            self._told.add(reason)
            self._report(reason)


def digest(data: bytes | msgspec.Raw) -> str:
    """An id for a record that has none: of the record as it stands, so that no two different ones share it."""
    return "h" + blake2b(bytes(data).strip(), digest_size=8).hexdigest()


def string_of(value: Any) -> str:
    """A name or id, which some writers leave as a number."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else ""


def time_of(value: Any) -> float | None:
    if isinstance(value, (int, float)):
        return parse_time(value) if abs(value) < _FAR_OFF else None
    return parse_time(value) if isinstance(value, str) else None


def text_of(content: Any) -> str:
    """The words of a `content`: a string, parts of which the texts are joined, or JSON where it is something else."""
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
        elif isinstance(part, dict) and part.get("type") not in _UNSAID:
            text = part.get("text", part.get("content", part.get("refusal")))
            parts.append(text if isinstance(text, str) else f"[{part.get('type', 'data')}]")
    return "\n".join(parts)


def decode_whole(
    source: Source, data: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T], line: int | None
) -> list[T]:
    """A record with raw pieces in it. Where a strict parser stumbles (NaN, lone surrogates, glued objects) the record
    is read loosely and written anew, because raw pieces can only be taken from JSON text."""
    try:
        return [decoder.decode(data)]
    except DECODE_ERRORS:
        values, wrong = loose_values(bytes(data))
    if wrong:
        source.report(wrong, line)
    found: list[T] = []
    for value in values:
        try:
            found.append(decoder.decode(msgspec.json.encode(scrub(value))))
        except DECODE_ERRORS:
            source.report(f"no session: a JSON {type(value).__name__}", line)
    return found
