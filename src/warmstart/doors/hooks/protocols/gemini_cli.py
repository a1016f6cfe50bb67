"""Gemini CLI, as version 0.61 behaves: events under names of its own, and results in an object.

| event | what was seen |
|---|---|
| `SessionStart` | its text is put before the prompt; a resumed session then drops that prompt, so nothing is answered |
| `BeforeAgent` | its text is a part behind the prompt, which a resumed session repeats |
| `BeforeTool` | takes a refusal or other arguments, but no text |
| `AfterTool` | its text is added to the result; a tool that reports an error hides it, unless it replaces the error |
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DELIVERS_LATE = True
_EVENTS = {
    "BeforeAgent": "UserPromptSubmit",
    "BeforeTool": "PreToolUse",
    "AfterTool": "PostToolUse",
    "AfterAgent": "Stop",
}


def translate(event: dict[str, Any]) -> dict[str, Any]:
    """Return the event in the words of Claude Code."""
    name = event.get("hook_event_name")
    own = event | {"hook_event_name": _EVENTS.get(name, name) if isinstance(name, str) else name}
    if name != "AfterTool":
        return own
    if error := _find_error(event):
        return own | {"hook_event_name": "PostToolUseFailure", "error": error}
    return own | {"tool_response": _find_text(event)}


def encode(output: dict[str, Any], event: dict[str, Any]) -> dict[str, Any] | None:
    """Return the answer to an event. An error is replaced by itself and the note: there is no other way to add one."""
    name, text = event["hook_event_name"], output.get("additionalContext", "")
    if output.get("permissionDecision") == "deny":
        return {"decision": "deny", "reason": output["permissionDecisionReason"]}
    if name == "SessionStart":
        return None
    if name == "BeforeTool":
        replaced = output.get("updatedInput")
        return {"hookSpecificOutput": {"hookEventName": name, "tool_input": replaced}} if replaced else None
    if name == "AfterTool" and (error := _find_error(event)):
        return {"decision": "deny", "reason": f"{error}\n\n{text}"}
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}


def _find_error(event: dict[str, Any]) -> str:
    response = event.get("tool_response")
    error = response.get("error") if isinstance(response, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""


def _find_text(event: dict[str, Any]) -> str:
    """Return the text that the model gets: a string, or parts."""
    response = event.get("tool_response")
    content = response.get("llmContent") if isinstance(response, dict) else response
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    text = "\n".join(text for text in texts if isinstance(text, str))
    return text.removeprefix("<untrusted_context>\n").removesuffix("\n</untrusted_context>")
