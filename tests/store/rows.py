"""Sessions and calls for the tests of this folder."""

from __future__ import annotations

from typing import Any

from warmstart.store import CallRow, SessionRow


def make_session(key: str = "k1", **changes: Any) -> SessionRow:
    facts: dict[str, Any] = {
        "key": key, "id": f"id-{key}", "format": "claude_code", "agent": "claude-code", "source_uri": "/a.jsonl",
        "started": 1.0, "messages": 2, "calls": 2, "results": 2, "errors": 0, "verdict": "success", "quality": 0.5,
        "confidence": 0.5, "category": "coding", "task_type": "code", "score": "{}", "digest": "d1",
        "first_seen": 10.0, "updated": 10.0,
    }  # fmt: skip
    return SessionRow(**(facts | changes))


def make_calls(key: str = "k1", count: int = 2, **changes: Any) -> list[CallRow]:
    facts: dict[str, Any] = {"session_key": key, "tool": "Bash", "arguments": "{}", "status": "ok", "basis": "flag"}
    return [CallRow(ordinal=n, call_id=f"c{n}", **(facts | changes)) for n in range(count)]
