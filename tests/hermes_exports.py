"""Exports of Hermes sessions, made for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Step = tuple[str, str, int]  # command, output, exit code
STEPS: tuple[Step, ...] = (
    ("ls /srv/backup", "daily weekly", 0),
    ("tar czf /srv/backup/daily/home.tgz /home", "done", 0),
    ("sha256sum /srv/backup/daily/home.tgz", "9f86d081884c7d65 home.tgz", 0),
)


def hermes_session(session: str, *steps: Step, answer: str | None = "Done.", **facts: Any) -> dict[str, Any]:
    """Return the record of a Hermes session of these commands. `answer`: its last words; None: it ends with a result."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "make the backup of the home folders", "timestamp": 1.0}
    ]
    for n, (command, output, code) in enumerate(steps):
        arguments = json.dumps({"command": command})
        call = {"id": f"{session}-{n}", "type": "function", "function": {"name": "terminal", "arguments": arguments}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call], "timestamp": 2.0 + n})
        result = json.dumps({"output": output, "exit_code": code, "error": None})
        messages.append({"role": "tool", "content": result, "tool_call_id": call["id"], "timestamp": 2.5 + n})
    if answer is not None:
        messages.append({"role": "assistant", "content": answer, "timestamp": 99.0})
    common = {"source": "cli", "started_at": 1.0, "ended_at": 100.0, "parent_session_id": None, "cwd": "/srv/ops"}
    return common | {"id": session, "messages": messages} | facts


def write_export(path: Path, *sessions: dict[str, Any], labels: dict[str, bool] | None = None) -> Path:
    """Write an export, and its labels beside it; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(session) + "\n" for session in sessions))
    if labels:
        (path.parent / "labels.json").write_text(json.dumps(labels))
    return path
