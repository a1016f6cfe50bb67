"""A conversation worth reviewing, what a review finds in it, and settings to review it with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msgspec import convert, structs

from warmstart import Warmstart, config

SYSTEM = "You are a careful agent. Always be polite. Answer in short sentences about warehouse shipments."

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Runs {name} – ünïcode",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
        },
    }
    for name in ("terminal", "read_file", "memory", "skill_manage", "clarify")
]


def tool_call(id: str, name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def conversation() -> list[dict[str, Any]]:
    """Return steps: 1 system, 2 user, 3 call, 4 result, 5 call, 6 result, 7 call, 8 result, 9 assistant, 10 user, 11 assistant."""
    old = {"success": True, "done": "Skill 'stale' created"}
    return [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "Release the billing service, please. Our registry is registry.acme.example."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [tool_call("call_1", "terminal", command="python -m build")],
        },
        {
            "role": "tool",
            "tool_call_id": "call_1",
            "content": json.dumps({"output": "bash: python: command not found", "exit_code": 127, "error": None}),
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [tool_call("call_2", "terminal", command="python3 -m build")],
        },
        {
            "role": "tool",
            "tool_call_id": "call_2",
            "content": json.dumps({"output": "Successfully built billing-2.4.0.tar.gz", "exit_code": 0, "error": None}),
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [tool_call("call_3", "skill_manage", action="create", name="stale")],
        },
        {"role": "tool", "tool_call_id": "call_3", "content": json.dumps(old)},
        {"role": "assistant", "content": "Built billing 2.4.0."},
        {
            "role": "user",
            "content": "I always want releases tagged with git tag --sign before uploading. Thanks, that works.",
        },
        {"role": "assistant", "content": "Understood."},
    ]


NOTE = "The user wants releases tagged with `git tag --sign` before uploading"

SKILL = """---
name: release
description: How the billing service is released
---
# Release
1. Build with `python3 -m build`; `python` is not found here.
2. Tag releases with `git tag --sign` before uploading.
"""


def settings(**review: Any) -> config.Settings:
    """Return the settings of the sealed home with a review policy."""
    loaded = config.load()
    return structs.replace(loaded, review=convert({"timeout": 5.0} | review, config.ReviewSettings))


def open_warmstart(**review: Any) -> Warmstart:
    return Warmstart(settings(**review))


def write_transcript(path: Path, messages: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"session_id": "s-1", "messages": messages}))
    return path
