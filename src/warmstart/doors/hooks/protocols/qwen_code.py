"""Qwen Code, as version 0.24 behaves: the words of Claude Code, with differences.

| event | what was seen |
|---|---|
| `UserPromptSubmit` | comes after every result of a tool, too, then without a prompt: those are not answered |
| `PreToolUse` | takes a refusal; it ignores a text, and other arguments |
| `PostToolUse` | its text is added to the result, which comes in an object |
| `PostToolUseFailure` | the same; a command that exits with another code than 0 is a failure, also `grep` without a match |
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DELIVERS_LATE = True
CORRECTS = False


def translate(event: dict[str, Any]) -> dict[str, Any]:
    """Return the event in the words of Claude Code; without a name where there is nothing to answer."""
    name = event.get("hook_event_name")
    if name == "UserPromptSubmit":
        prompt = event.get("submitted_prompt") or event.get("prompt")
        return event | ({"prompt": prompt} if prompt else {"hook_event_name": ""})
    if name == "PostToolUse" and isinstance(response := event.get("tool_response"), dict):
        return event | {"tool_response": response.get("llmContent", response)}
    if name == "PostToolUseFailure" and str(event.get("error")).startswith("Command: "):
        return event | {"hook_event_name": "PostToolUse", "tool_response": event["error"], "error": None}
    return event


def encode(output: dict[str, Any], event: dict[str, Any]) -> dict[str, Any] | None:
    """Return the answer to an event."""
    return {"hookSpecificOutput": output | {"hookEventName": event["hook_event_name"]}}
