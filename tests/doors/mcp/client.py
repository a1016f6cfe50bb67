"""The official MCP client, and the environment that the server is started in."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from mcp import Client

from warmstart.doors.mcp.answers import MAX_ANSWER

SCRIPT = Path(sys.executable).parent / "warmstart"


def environment() -> dict[str, str]:
    """Return the few variables that an MCP host passes on."""
    return {name: os.environ[name] for name in ("HOME", "PATH", "WARMSTART_HOME", "WARMSTART_HOLDOUT")}


async def call(client: Client, tool: str, /, **arguments: Any) -> Any:
    """Return the answer of a call that must work."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    (part,) = result.content
    assert len(part.text) <= MAX_ANSWER and result.structured_content is None
    return json.loads(part.text)


async def fail(client: Client, tool: str, arguments: dict[str, Any]) -> str:
    """Return the message of a call that must fail."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, (tool, arguments, result.content)
    (part,) = result.content
    assert 0 < len(part.text) <= 1_000 and "\n" not in part.text and "went wrong inside" not in part.text, part.text
    return part.text
