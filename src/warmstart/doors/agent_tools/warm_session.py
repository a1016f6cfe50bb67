"""The tool `warm_session`: build, list, load and delete the conversations that sessions start with.

One function serves every door. It answers `{"success": true, ...}` or `{"success": false, "error": ...}` and never raises
for an agent's mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import structs

from warmstart.dialects.compose import compose
from warmstart.dialects.tokens import estimate
from warmstart.doors.render.terminal import format_iso
from warmstart.errors import WarmstartError
from warmstart.model import Pick, Template
from warmstart.pipeline import Warmstart
from warmstart.scopes import SHARED, Border
from warmstart.store import SessionRow, TemplateRow

ACTIONS = ("build", "list", "load", "delete")
NAME = "warm_session"
DESCRIPTION = (
    "Keep tool calls that worked in past sessions as a warm session, and look such ones up. Use 'list' to see what is "
    "there, 'load' to read one before similar work, 'build' after work that went well, 'delete' to remove one."
)
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": list(ACTIONS), "description": "What to do."},
        "name": {"type": "string", "description": "The warm session's name. Needed for build, load and delete."},
        "description": {"type": "string", "description": "build: what it is good for."},
        "min_messages": {
            "type": "integer",
            "minimum": 0,
            "description": "build: only from sessions with as many messages. Default 4.",
        },
        "max_sessions": {
            "type": "integer",
            "minimum": 1,
            "description": "build: from as many of the latest sessions at most. Default 20.",
        },
        "source_filter": {
            "type": "string",
            "description": "build: only sessions of this agent (hermes, claude-code ...) or source (cli, telegram ...).",
        },
        "tags": {"type": "array", "items": {"type": "string"}, "description": "build: words to find it by."},
    },
    "required": ["action"],
}

_MIN_MESSAGES, _MAX_SESSIONS = 4, 20
_MOST_SESSIONS = 500  # a tool call may take seconds, not minutes
_PREVIEW = 160  # characters of each message


class WarmSessionHost(Protocol):
    """The program that an agent calls the tool in."""

    @property
    def agent(self) -> str | None:
        """The agent whose sessions are used by default; None: all agents'."""

    def refresh(self) -> str | None:
        """Read the newest sessions first; return a warning or None."""

    def list_sessions(self, source: str) -> Collection[str] | None:
        """Return the ids of the sessions from a source that only the program knows; None if there is no such source."""


class _Wrong(Exception):
    """The agent's mistake; the message says what to do."""


def warm_session(
    ws: Warmstart, arguments: Mapping[str, Any], door: WarmSessionHost | None = None, border: Border | None = None
) -> dict[str, Any]:
    """Run the action that the agent names. Nothing beyond the border exists for it; None: the machine's owner asks."""
    try:
        action = arguments.get("action")
        if not isinstance(action, str) or action not in ACTIONS:
            raise _Wrong(f"unknown action {action!r}; there are: {', '.join(ACTIONS)}")
        return {"success": True, "action": action} | _DO[action](_Request(ws, arguments, door, border))
    except (_Wrong, WarmstartError) as error:
        return {"success": False, "error": str(error)}


class _Request(NamedTuple):
    """One call of the tool."""

    ws: Warmstart
    arguments: Mapping[str, Any]
    door: WarmSessionHost | None
    border: Border | None

    def list_sessions(self, agent: str | None = None) -> list[SessionRow]:
        """Return the sessions within the border, the latest first."""
        rows = self.ws.sessions(limit=None, agent=agent)
        return [row for row in rows if self.border is None or self.border.admits(row.scope, row.project or "")]


def _build(request: _Request) -> dict[str, Any]:
    from warmstart.templates.build import BuildRequest  # loads all of mining, which a host may never need

    ws, arguments, door, _border = request
    name = _read_name(arguments)
    least = _number(arguments, "min_messages", _MIN_MESSAGES, 0)
    most = min(_number(arguments, "max_sessions", _MAX_SESSIONS, 1), _MOST_SESSIONS)
    warning = door.refresh() if door else None
    rows = [row for row in _list_candidates(request) if row.length >= least][:most]
    wanted = BuildRequest(name, description=_text(arguments, "description"), tags=_tags(arguments))
    built = ws.templates.build(rows, wanted)
    template = built.template
    return {
        "name": template.name,
        "version": template.version,
        "status": template.status,
        "reason": template.reason,
        "category": template.category,
        "examples": template.examples,
        "sessions": template.sessions,
        "considered": len(rows),
        "refused": built.refused,
        "tokens": template.tokens,
    } | ({"note": warning} if warning else {})


def _list_candidates(request: _Request) -> list[SessionRow]:
    """Return the sessions to build from, the latest first."""
    source, door = _text(request.arguments, "source_filter"), request.door
    if not source:
        return request.list_sessions(door.agent if door else None)
    if of_agent := request.list_sessions(source):
        return of_agent
    ids = door.list_sessions(source) if door else None
    if not ids:
        known = ", ".join(sorted({row.agent for row in request.list_sessions()})) or "none yet"
        raise _Wrong(f"no sessions of the source {source!r}; agents with sessions: {known}")
    return [row for row in request.list_sessions() if row.id in ids]


def _list(request: _Request) -> dict[str, Any]:
    latest: dict[str, tuple[TemplateRow, Template]] = {}
    for row, template in request.ws.templates.find(border=request.border):
        if row.name not in latest or latest[row.name][0].version < row.version:
            latest[row.name] = (row, template)
    listed = [_brief(row, template) for row, template in latest.values()]
    return {"count": len(listed), "sessions": listed}


def _load(request: _Request) -> dict[str, Any]:
    ws = request.ws
    row, template, _decisions = ws.templates.show(_read_name(request.arguments), border=request.border)
    picks = [Pick(template=row.name, version=row.version, example=example) for example in template.examples]
    addenda = [(row.name, template.addendum)] if template.addendum else []
    conversation = compose(picks, dialect="openai", budget=ws.settings.budget, count=estimate, addenda=addenda)
    return _brief(row, template) | {
        "messages": conversation.messages,
        "message_count": len(conversation.messages),
        "tokens": conversation.tokens,
        "preview": "\n".join(filter(None, map(_preview, conversation.messages))),
        "omitted": [structs.asdict(omitted) for omitted in conversation.omitted],
    }


def _delete(request: _Request) -> dict[str, Any]:
    ws, border, name = request.ws, request.border, _read_name(request.arguments)
    row = ws.templates.find_version(name, border)
    if border is not None and row.scope == SHARED:
        raise _Wrong(
            f"{row.name} is shared with others; a person takes it back: warmstart templates unshare {row.name}"
        )
    return {"deleted": ws.templates.delete(name if border is None else row.name)}


_DO: dict[str, Callable[[_Request], dict[str, Any]]] = {
    "build": _build,
    "list": _list,
    "load": _load,
    "delete": _delete,
}


def _brief(row: TemplateRow, template: Template) -> dict[str, Any]:
    return {
        "name": row.name,
        "version": row.version,
        "status": row.status,
        "category": row.category,
        "description": template.description,
        "tags": list(template.tags),
        "examples": len(template.examples),
        "created": format_iso(row.created),
        "used": row.used,
    }


def _preview(message: Mapping[str, Any]) -> str:
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    parts = [message.get("content") or "", *(f"{call['name']} {call['arguments']}" for call in calls)]
    text = " ".join(" ".join(parts).split())
    return f"{message['role']}: {text[:_PREVIEW]}{'...' if len(text) > _PREVIEW else ''}"


# Arguments: an agent may send anything


def _read_name(arguments: Mapping[str, Any]) -> str:
    name = _text(arguments, "name")
    if not name:
        raise _Wrong("a name is missing; give the warm session's name (see the action list)")
    return name


def _text(arguments: Mapping[str, Any], key: str) -> str:
    value = arguments.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _Wrong(f"{key} must be text, not {msgspec.json.encode(value, enc_hook=repr).decode()[:80]}")
    return value.strip()


def _number(arguments: Mapping[str, Any], key: str, otherwise: int, least: int) -> int:
    value = arguments.get(key)
    if value is None:
        return otherwise
    try:
        number = msgspec.convert(value, int, strict=False)
    except msgspec.ValidationError:
        raise _Wrong(f"{key} must be a whole number") from None
    if number < least:
        raise _Wrong(f"{key} must be at least {least}, not {number}")
    return number


def _tags(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    value = arguments.get("tags")
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    if value is not None and not isinstance(value, str | list):
        raise _Wrong("tags must be a list of words")
    return tuple(str(part).strip() for part in parts if str(part).strip())
