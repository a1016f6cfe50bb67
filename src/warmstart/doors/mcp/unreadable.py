"""Lines on standard input that the SDK cannot read. It drops them, and whoever sent one would wait for ever.

Half a character (a lone surrogate, which models do write) is replaced and the message goes on; anything else is
answered with an error of the protocol.
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
    """Hand messages on until there are no more."""
    async with onward:
        async for item in incoming:
            mended = mend(item) if isinstance(item, ValidationError) else item
            if isinstance(mended, types.JSONRPCError):
                await answer(SessionMessage(mended))
            elif mended is not None:
                await onward.send(mended)


def mend(error: ValidationError) -> SessionMessage | types.JSONRPCError | None:
    """The message that was meant, or the answer to what is none; None for an empty line."""
    if _is_blank(error):
        return None
    values = list(_decode_all(error))
    for value in values:
        whole = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        try:
            return SessionMessage(types.jsonrpc_message_adapter.validate_json(whole, by_name=False))
        except ValidationError:
            continue
    code, said = (types.INVALID_REQUEST, "no message of the protocol") if values else (types.PARSE_ERROR, "no JSON")
    ids = (value.get("id") for value in values if isinstance(value, dict))
    known = next((one for one in ids if isinstance(one, str | int) and not isinstance(one, bool)), None)
    return types.JSONRPCError(jsonrpc="2.0", id=known, error=types.ErrorData(code=code, message=said))


def _is_blank(error: ValidationError) -> bool:
    given = error.errors(include_url=False, include_context=False)[0]["input"]
    return isinstance(given, str) and not given.strip()


def _decode_all(error: ValidationError) -> Iterator[Any]:
    """What the error speaks of: the line where it is no JSON to the SDK, else the value that was in it."""
    for detail in error.errors(include_url=False, include_context=False):
        found = detail["input"]
        if detail["type"] == "json_invalid":
            try:
                yield json.loads(found)
            except (ValueError, RecursionError):
                continue
        elif isinstance(found, dict):
            yield found
