"""A stand-in for Claude Code: runs the hooks of ~/.claude/settings.json for one session and leaves a transcript."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SESSION = "00893aaf-19fa-41d2-8238-13269b9b3ca0"
TRANSCRIPT = Path.home() / ".claude" / "projects" / "-orders-api" / f"{SESSION}.jsonl"
PROJECT = str(Path.cwd())


def run_hooks(name: str, **facts: Any) -> list[str]:
    """Run every hook of an event and return the context that they give."""
    settings = json.loads((Path.home() / ".claude" / "settings.json").read_text())
    event = {"hook_event_name": name, "session_id": SESSION, "transcript_path": str(TRANSCRIPT), "cwd": PROJECT} | facts
    given = []
    for group in settings["hooks"].get(name, ()):
        for hook in group["hooks"]:
            done = subprocess.run(hook["command"], shell=True, input=json.dumps(event), capture_output=True, text=True)
            if done.stdout:
                given.append(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"])
    return given


def write_transcript(request: str) -> None:
    """Write one request, one call that worked, and an answer."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "uv run pytest -q"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "10 passed in 0.91s", "is_error": False}
    said = [
        ("user", request),
        ("assistant", [call]),
        ("user", [result]),
        ("assistant", [{"type": "text", "text": "Done."}]),
    ]
    lines = []
    for number, (role, content) in enumerate(said):
        message = {"role": role, "content": content} | (
            {"id": f"msg_{number}", "model": "claude"} if role == "assistant" else {}
        )
        at = datetime.now(UTC).isoformat()
        lines.append(
            {
                "sessionId": SESSION,
                "cwd": PROJECT,
                "uuid": str(number),
                "type": role,
                "timestamp": at,
                "message": message,
            }
        )
    TRANSCRIPT.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    request = sys.argv[1]
    given = run_hooks("SessionStart", source="startup", model="claude-sonnet-4-5")
    given += run_hooks("UserPromptSubmit", prompt=request)
    (Path.home() / "given.json").write_text(json.dumps(given))
    write_transcript(request)
    run_hooks("Stop")
    run_hooks("SessionEnd", reason="other")
