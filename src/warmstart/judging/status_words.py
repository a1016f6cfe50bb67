"""The status that a result names: of the call, which was stopped, or of the thing that the call changed or read."""

from __future__ import annotations

import re
from typing import Any

from warmstart.calls import tools
from warmstart.judging.stops import stopped_by
from warmstart.judging.text import answer_failed
from warmstart.model import ToolCall

_STOPPED = {"cancelled": "cancelled", "canceled": "cancelled", "aborted": "cancelled", "interrupted": "cancelled",
            "blocked": "denied", "denied": "rejected", "rejected": "rejected", "declined": "rejected",
            "approval_required": "rejected", "pending_approval": "rejected"}  # fmt: skip
_ENDS = "(?:cancel|delete|remove|unsubscribe|end(?![a-z])|terminat|withdraw|void(?![a-z]))"
_SHUTS = "(?:block(?!chain)|freeze|lock(?![a-z])|suspend|ban(?![a-z]))"
_VERBS = {"cancelled": _ENDS, "canceled": _ENDS, "aborted": "abort", "interrupted": "interrupt", "blocked": _SHUTS,
          "denied": "den(?:y|ied|ial)", "rejected": "reject", "declined": "declin(?:e|ing)"}  # fmt: skip
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_READS = re.compile(
    r"(?:^|[_.-])(?:get|list|search|find|read|view|show|query|look_?up|fetch|check|retrieve|describe)(?![a-z])"
)
_NAMES_STATUS = re.compile(r"(?:^|[_.-])stat(?:us|e)(?![a-z])")
_EXPLAINS = ("error", "message", "approval", "reason")
_OF_CALLS = frozenset((*_EXPLAINS, "status", "output", "stdout", "stderr", "exit_code", "result"))
_CALL_ID = re.compile(r"(tool|call|tool_?call|tool_?use|run|task|execution|request|session|trace)_?id", re.I)


def find_stop(call: ToolCall | None, value: dict[str, Any]) -> str | None:
    """Return "rejected", "denied" or "cancelled" where a result's status says so of the call itself, else None."""
    status = value.get("status")
    if not isinstance(status, str) or len(value) > 8 or "reservation_id" in value:
        return None
    explained = next((value[name] for name in _EXPLAINS if value.get(name)), None)
    if not explained and len(value) > 2 and "exit_code" not in value:
        return None
    word = _STOPPED.get(status.lower())
    if word and call is not None and _is_of_thing(call, status.lower(), value):
        return None
    return "rejected" if word == "denied" and "user" in str(explained).lower() else word


def _is_of_thing(call: ToolCall, status: str, value: dict[str, Any]) -> bool:
    """Return whether a status is what the call brought about or read. Of a shell or a file tool it never is."""
    if tools.base_tool(call.tool) is not None or value.get("error") or value.get("approval") or value.get("exit_code"):
        return False
    if _is_refused(status, str(value.get("message") or ""), str(value.get("reason") or "")):
        return False
    name = _CAMEL.sub("_", call.tool.rpartition("__")[2]).lower()
    return _asks_for(call, name, status) or _reads_thing(name, value)


def _is_refused(status: str, message: str, reason: str) -> bool:
    """Return whether a message or a reason says that the call was stopped or failed; the status word says neither.

    A reason is often the thing's own ("no longer needed"), so it has to name the stop.
    """
    if stopped_by(message) or stopped_by(reason):
        return True
    return answer_failed(re.sub(re.escape(status), "", message, flags=re.I), quotes=False)


def _asks_for(call: ToolCall, name: str, status: str) -> bool:
    """Return whether a tool's name (`cancel_order`) or a whole argument (`action: cancel`) is the verb of a status."""
    verb = _VERBS.get(status)
    if verb is None:
        return False
    if re.search(rf"(?<![a-z]){verb}", name):
        return True
    values = call.arguments.values() if isinstance(call.arguments, dict) else ()
    return any(re.fullmatch(rf"{verb}(?:l?e?d)?", text.lower()) for text in values if isinstance(text, str))


def _reads_thing(name: str, value: dict[str, Any]) -> bool:
    """Return whether a reading tool answers with a thing's status: it is asked for that, or a field of the thing is beside it."""
    if _READS.search(name) is None:
        return False
    return _NAMES_STATUS.search(name) is not None or not all(_is_of_call(field, name) for field in value)


def _is_of_call(field: str, name: str) -> bool:
    """Return whether a field belongs to the report of a call: `task_id` does, unless the tool is called `get_task`."""
    identified = _CALL_ID.fullmatch(field)
    return field in _OF_CALLS or (identified is not None and identified[1].lower() not in name)
