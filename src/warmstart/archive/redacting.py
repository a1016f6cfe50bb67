"""A transcript with its secrets replaced, in the same format: JSON stays JSON, and calls keep their results.

A record without a secret keeps its bytes. Ids by which the records of a transcript refer to each other are kept, unless
a part of one has the form of a secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.errors import Refused
from warmstart.formats.lenient import DECODE_ERRORS, MAX_VALUE
from warmstart.formats.source import Source
from warmstart.redact import Scope

_LARGEST = 64 << 20  # bytes of a document or a text
_LONGEST_ID = 200
_MAGIC = (b"\x28\xb5\x2f\xfd", b"SQLite format 3\x00", b"PK\x03\x04")
_ID_KEYS = frozenset(
    """
    id uuid sessionId session_id sessionID parentUuid logicalParentUuid leafUuid messageId message_id messageID requestId
    request_id tool_use_id toolUseID tool_call_id toolCallId call_id callID source_call_id sourceToolAssistantUUID
    parentId parent_id parentID agentId turn_id conversation_id promptId trace_id span_id traceId spanId parentSpanId
    trajectory_id instance_id task_id timestamp type role model cwd gitBranch version name function_name kind status
    """.split()
)
_PAYLOADS = frozenset(("input", "arguments", "args", "parameters", "output", "result", "toolUseResult", "tool_input"))
_decode = msgspec.json.Decoder(Any).decode
_encode = msgspec.json.Encoder().encode


def redact_transcript(source: Source, scope: Scope) -> Iterator[bytes]:
    """Yield a redacted transcript. Raises Refused for a packed file or a database, and for one that is too large."""
    with source.path.open("rb") as stream:
        beginning = stream.read(16)
    if beginning.startswith(_MAGIC):
        raise Refused("a packed file or a database cannot be redacted; archive it as it is, or not at all")
    if source.head.root == "lines":
        yield from _redact_lines(source, scope)
    else:
        yield from _redact_whole(source, scope)


def _redact_lines(source: Source, scope: Scope) -> Iterator[bytes]:
    with source.path.open("rb") as stream:
        while line := stream.readline(MAX_VALUE):
            if len(line) == MAX_VALUE:
                raise Refused(f"a line of more than {MAX_VALUE >> 20} MB cannot be redacted")
            body = line.removesuffix(b"\n")
            yield _redact_piece(body, scope) + line[len(body) :] if line.strip() else line


def _redact_whole(source: Source, scope: Scope) -> Iterator[bytes]:
    with source.path.open("rb") as stream:
        data = stream.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise Refused(f"a document of more than {_LARGEST >> 20} MB cannot be redacted")
    yield _redact_piece(data, scope)


def _redact_piece(data: bytes, scope: Scope) -> bytes:
    """Redact a JSON value; text that is no JSON is redacted as text."""
    try:
        value = _decode(data)
        redacted = _keep_ids(value, scope.value(value), scope)
        return data if redacted == value else _encode(redacted)
    except DECODE_ERRORS:
        return scope.text(data.decode("utf-8", "replace")).encode()


def _keep_ids(value: Any, redacted: Any, scope: Scope) -> Any:
    """Put the ids of the first value into the second, which is its redacted copy."""
    work = [(value, redacted)]  # an explicit stack: nesting may be hostile
    while work:
        before, after = work.pop()
        if isinstance(before, dict) and len(before) == len(after):
            for (key, old), (name, new) in zip(before.items(), list(after.items()), strict=True):
                if isinstance(old, str):
                    if key in _ID_KEYS and old != new and len(old) <= _LONGEST_ID and not any(map(str.isspace, old)):
                        after[name] = scope.identifier(old)
                elif key not in _PAYLOADS:
                    work.append((old, new))
        elif isinstance(before, list):
            work.extend(pair for pair in zip(before, after, strict=True) if isinstance(pair[0], (dict, list)))
    return redacted
