"""The words of GitHub Copilot CLI's hooks, as it writes them for hooks in the form of Claude Code's (seen in 1.0.102).

Events have most of Claude Code's names. A failed command is reported as a success whose text ends with its exit code. A
subagent's events have a session id of their own. Answers are plain keys, not inside `hookSpecificOutput`.

A note before a call would reach the model, but no transcript: so it is given with the call's result, which is recorded.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DELIVERS_LATE = True

_SOURCES = {"new": "startup"}
_NAMES = {
    "permissionDecision": "permissionDecision",
    "permissionDecisionReason": "permissionDecisionReason",
    "updatedInput": "modifiedArgs",
    "additionalContext": "additionalContext",
}
_EXIT = " completed with exit code "
_TRANSCRIBED = ("Stop", "SessionEnd")


def translate(event: dict[str, Any]) -> dict[str, Any]:
    """Return the event in the words of Claude Code."""
    own = dict(event)
    name, parent = event.get("hook_event_name"), event.get("parent_agent_id")
    if event.get("source") in _SOURCES:
        own["source"] = _SOURCES[event["source"]]
    if event.get("agent_id") and isinstance(parent, str):
        own["session_id"] = parent
    if name == "PostToolUse":
        _translate_result(own, event.get("tool_result"))
    if name in _TRANSCRIBED and not event.get("transcript_path"):
        own["transcript_path"] = _find_transcript(event.get("session_id"))
    return own


def encode(output: dict[str, Any], event: dict[str, Any]) -> dict[str, Any] | None:
    """Return our output as Copilot CLI takes it."""
    answer = {_NAMES[key]: value for key, value in output.items() if key in _NAMES}
    if event.get("hook_event_name") == "PreToolUse":
        answer.pop("additionalContext", None)  # it comes with the result
    return answer or None


def _translate_result(own: dict[str, Any], result: Any) -> None:
    """Turn a command that ended with another exit code than 0 into the failure that it is."""
    text = result.get("text_result_for_llm") if isinstance(result, dict) else None
    if not isinstance(text, str):
        return
    body, mark, code = text.rstrip().rpartition(_EXIT)
    if mark and code.endswith(">") and "\n" not in code and "<shellId: " in body[-220:]:
        text = body[: body.rindex("<shellId: ")].rstrip("\n")
        if code != "0>":
            own |= {"hook_event_name": "PostToolUseFailure", "error": f"Exit code {code[:-1]}\n{text}"}
    own["tool_response"] = text


def _find_transcript(session: Any) -> str | None:
    """Return where the session's events are: not every event names the file."""
    if not isinstance(session, str) or not session:
        return None
    return f"{os.environ.get('COPILOT_HOME') or '~/.copilot'}/session-state/{session}/events.jsonl"
