"""Sessions as the files `case.expected.json` describe them."""

from __future__ import annotations

from warmstart.model import Message, Session, ToolCall, ToolResult


def describe(session: Session) -> dict[str, object]:
    """Return a session as `case.expected.json` describes it; docs/howto/add-a-format.md explains the fields."""
    steps = session.steps
    return {
        "id": session.id,
        "agent": session.agent,
        "model": session.model,
        "label": session.label,
        "end_reason": session.end_reason,
        "calls": [{"id": s.call_id, "tool": s.tool} for s in steps if isinstance(s, ToolCall)],
        "results": sum(isinstance(s, ToolResult) for s in steps),
        "messages": sum(isinstance(s, Message) for s in steps),
        "task": session.task,
    }
