"""Messages of the OpenAI chat shape: several formats are these messages in some wrapper.

Anthropic's `tool_use` and `tool_result` blocks are understood too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec

from warmstart.formats.fields import dict_of, parse_arguments, parse_time, string_of, text_of
from warmstart.formats.lenient import DECODE_ERRORS, loose_values, scrub
from warmstart.formats.outcomes import read_outcome
from warmstart.formats.session_builder import SessionBuilder
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
_MAX_REPORTED = 20

_raw = msgspec.json.Decoder(msgspec.Raw)


class ChatMessage(msgspec.Struct, gc=False):
    """A chat message, untyped: any writer may leave anything in a field."""

    role: Any = None
    content: Any = None
    tool_calls: Any = None
    tool_call_id: Any = None
    function_call: Any = None
    timestamp: Any = None


class Chat:
    """Adds the messages of one session to its builder."""

    def __init__(self, draft: SessionBuilder, report: Callable[[str], None], marks: Any = None) -> None:
        """`marks`: times and outcomes of the messages, which `sessions export` writes beside them."""
        self._draft = draft
        self.marks: Iterator[Any] | None = iter(marks) if isinstance(marks, list) else None
        self._report = report
        self._open: dict[str, None] = {}  # calls without a result yet, oldest first
        self._reported: set[str] = set()

    def take(self, message: ChatMessage) -> None:
        """Add a message with its calls, or a result."""
        role, content, time = message.role, message.content, message.timestamp
        signal = None
        if self.marks is not None:
            mark = dict_of(next(self.marks, None))
            time = mark.get("at") if time is None else time
            signal = read_outcome(mark.get("outcome"))
        at = None if time is None else parse_time(time)
        if role == "tool" or role == "function":
            self.result(message.tool_call_id, text_of(content), at, signal)
            return
        speaker = ROLES.get(role) if isinstance(role, str) else None
        if speaker is None:
            self._report_once(f"left out a message of the unknown role {str(role)[:40]!r}")
            return
        if isinstance(content, str):
            self._draft.message(speaker, content, at)
        elif content is not None:
            self._take_blocks(speaker, content, at)
        if isinstance(message.tool_calls, list):
            for call in message.tool_calls:
                self.call(call, at)
        if isinstance(message.function_call, dict):
            self.call({"function": message.function_call}, at)

    def call(self, call: Any, at: float | None) -> None:
        """Add `{id, function: {name, arguments}}` or flat `{id, name, arguments}`; arguments are JSON text or an object."""
        if not isinstance(call, dict):
            self._report_once("left out a tool call that is not an object")
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
        """Add a result. Without an id it answers the oldest open call."""
        known = string_of(call_id) or next(iter(self._open), "")
        self._open.pop(known, None)
        self._draft.result(known, text, at, signal)

    def _take_blocks(self, speaker: Role, content: Any, at: float | None) -> None:
        texts: list[Any] = []
        for block in content if isinstance(content, list) else (content,):
            kind = block.get("type") if isinstance(block, dict) else None
            if kind != "tool_use" and kind != "tool_result":
                texts.append(block)
                continue
            self._draft.message(speaker, text_of(texts), at)
            texts.clear()
            if kind == "tool_use":
                self.call({"id": block.get("id"), "name": block.get("name"), "arguments": block.get("input")}, at)
            else:
                flag = block.get("is_error")
                signal = Signal(failed=flag) if isinstance(flag, bool) else None
                self.result(block.get("tool_use_id"), text_of(block.get("content")), at, signal)
        self._draft.message(speaker, text_of(texts), at)

    def _report_once(self, reason: str) -> None:
        if reason not in self._reported and len(self._reported) < _MAX_REPORTED:
            self._reported.add(reason)
            self._report(reason)


def digest(data: bytes | msgspec.Raw) -> str:
    """Make an id for a record that has none, from its bytes, so that no two different records share one."""
    return "h" + blake2b(bytes(data).strip(), digest_size=8).hexdigest()


def split_records(source: Source) -> Iterator[tuple[bytes | msgspec.Raw, str, int | None]] | None:
    """Return the records of a file as `(data, fragment, line)`; None where the file is one object."""
    if _is_line_by_line(source):
        return ((line, f"L{number}", number) for number, line in source.lines())
    if source.head.root == "object":
        return None
    return ((raw, f"/{index}", line) for index, (_key, raw, line) in enumerate(source.walk()))


def _is_line_by_line(source: Source) -> bool:
    """Return whether each line is a record of its own; otherwise the file is one JSON document."""
    lines = (line.strip() for _number, line in source.reopen().lines())
    first = next(lines, b"").removeprefix(b"\xef\xbb\xbf")
    if first.startswith(b"["):
        return next(lines, b"").startswith(b"[") and _is_json(first)
    return source.head.root == "lines" or _is_json(first)


def _is_json(data: bytes) -> bool:
    try:
        _raw.decode(data)
    except DECODE_ERRORS:
        return False
    return True


def decode_whole(
    source: Source, data: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T], line: int | None
) -> list[T]:
    """Decode a record that has raw pieces in it.

    Raw pieces can only be taken from valid JSON text. Where the strict parser fails (NaN, lone surrogates, glued
    objects) the record is read leniently and encoded again.
    """
    try:
        return [decoder.decode(data)]
    except DECODE_ERRORS:
        values, problem = loose_values(bytes(data))
    if problem:
        source.report(problem, line)
    records: list[T] = []
    for value in values:
        try:
            records.append(decoder.decode(msgspec.json.encode(scrub(value))))
        except DECODE_ERRORS:
            source.report(f"not a session: a JSON {type(value).__name__}", line)
    return records
