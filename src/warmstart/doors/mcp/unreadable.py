"""Input lines that the SDK cannot read. It drops them, and their sender would wait for ever.

Half a character (a lone surrogate, which models do write) is replaced and the message passed on; anything else is
answered with a protocol error.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Awaitable, Callable, Iterator
from typing import Any

import mcp_types as types
from anyio.streams.memory import MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

Incoming = SessionMessage | Exception


async def mend_messages(
    incoming: AsyncIterable[Incoming],
    onward: MemoryObjectSendStream[Incoming],
    answer: Callable[[SessionMessage], Awaitable[None]],
) -> None:
    """Pass messages on until the input ends."""
    async with onward:
        async for item in incoming:
            mended = mend(item) if isinstance(item, ValidationError) else item
            if isinstance(mended, types.JSONRPCError):
                await answer(SessionMessage(mended))
            elif mended is not None:
                await onward.send(mended)


def mend(error: ValidationError) -> SessionMessage | types.JSONRPCError | None:
    """Return the repaired message, or the error answer to an unreadable line; None for an empty line."""
    if _is_blank(error):
        return None
    values = list(_decode_all(error))
    for value in values:
        whole = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        try:
            return SessionMessage(types.jsonrpc_message_adapter.validate_json(whole, by_name=False))
        except ValidationError:
            continue
    code, reason = (types.INVALID_REQUEST, "not a JSON-RPC message") if values else (types.PARSE_ERROR, "not JSON")
    ids = (value.get("id") for value in values if isinstance(value, dict))
    request_id = next((id for id in ids if isinstance(id, str | int) and not isinstance(id, bool)), None)
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=types.ErrorData(code=code, message=reason))


def _is_blank(error: ValidationError) -> bool:
    line = error.errors(include_url=False, include_context=False)[0]["input"]
    return isinstance(line, str) and not line.strip()


def _decode_all(error: ValidationError) -> Iterator[Any]:
    """Yield the values that an error is about: parsed lines that the SDK takes for invalid JSON, and objects."""
    for detail in error.errors(include_url=False, include_context=False):
        subject = detail["input"]
        if detail["type"] == "json_invalid":
            try:
                yield json.loads(subject)
            except (ValueError, RecursionError):
                continue
        elif isinstance(subject, dict):
            yield subject
