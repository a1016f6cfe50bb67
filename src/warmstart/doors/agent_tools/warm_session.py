"""The tool `warm_session`: build, list, load and delete the conversations that sessions start with.

One function serves every door. It answers `{"success": true, ...}` or `{"success": false, "error": ...}` and never raises
for an agent's mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import structs

from warmstart.dialects.compose import compose
from warmstart.dialects.tokens import estimate
from warmstart.doors.render.terminal import format_iso
from warmstart.errors import NotFound, Refused, WarmstartError
from warmstart.model import Pick, Template
from warmstart.pipeline import Warmstart
from warmstart.scopes import SHARED, Border
from warmstart.store import TemplateRow

ACTIONS = ("build", "list", "load", "delete")
NAME = "warm_session"
DESCRIPTION = "Tool calls that worked in past sessions: load one before such work, build after success."
PARAMETERS: dict[str, Any] = {  # short: every request of a session pays for it; the values are checked below
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": list(ACTIONS)},
        "name": {"type": "string"},
        "description": {"type": "string", "description": "work to build from"},
        "source_filter": {"type": "string", "description": "cli, telegram..."},
        "tags": {"type": "array", "items": {"type": "string"}},
        "min_messages": {"type": "integer"},
        "max_sessions": {"type": "integer"},
    },
    "required": ["action"],
}

_MOST_SESSIONS = 500  # a tool call may take seconds, not minutes
_PREVIEW = 160  # characters of each message


class WarmSessionHost(Protocol):
    """The program that an agent calls the tool in."""

    @property
    def agent(self) -> str | None:
        """The agent whose sessions are used by default; None: all agents'."""

    def refresh(self) -> str | None:
        """Read the newest sessions first; return a warning or None."""


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


def _name_next_step(error: WarmstartError, step: str) -> _Wrong:
    """Return an error of the library for the agent, with the action that helps: it has no shell of ours."""
    return _Wrong(f"{str(error).partition('; see: warmstart')[0].partition('; run: warmstart')[0]}; {step}")


class _Request(NamedTuple):
    """One call of the tool."""

    ws: Warmstart
    arguments: Mapping[str, Any]
    door: WarmSessionHost | None
    border: Border | None


def _build(request: _Request) -> dict[str, Any]:
    from warmstart.templates.build import BuildRequest  # loads all of mining, which a host may never need
    from warmstart.templates.build_sources import MAX_SESSIONS, MIN_MESSAGES, BuildSources

    ws, arguments, door, border = request
    wanted = BuildRequest(_read_name(arguments), _text(arguments, "description"), _tags(arguments))
    sources = BuildSources(
        source=_text(arguments, "source_filter"),
        agent=door.agent if door else None,
        min_messages=_number(arguments, "min_messages", MIN_MESSAGES, 0),
        max_sessions=min(_number(arguments, "max_sessions", MAX_SESSIONS, 1), _MOST_SESSIONS),
        border=border,
    )
    warning = door.refresh() if door else None
    try:
        rows = ws.templates.find_sessions(sources, wanted.description)
    except NotFound as error:
        step = "call build again with another description, source_filter or a lower min_messages"
        raise _name_next_step(error, step) from None
    try:
        built = ws.templates.build(rows, wanted)
    except Refused as error:
        raise _name_next_step(error, "call build again after work that went well, or list for what is there") from None
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


def _list(request: _Request) -> dict[str, Any]:
    latest: dict[str, tuple[TemplateRow, Template]] = {}
    for row, template in request.ws.templates.find(border=request.border):
        if row.name not in latest or latest[row.name][0].version < row.version:
            latest[row.name] = (row, template)
    listed = [_brief(row, template) for row, template in latest.values()]
    return {"count": len(listed), "sessions": listed}


def _load(request: _Request) -> dict[str, Any]:
    ws = request.ws
    name = _read_name(request.arguments)
    try:
        row, template, _decisions = ws.templates.show(name, border=request.border)
    except NotFound:
        raise _no_such(name) from None
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
    try:
        row = ws.templates.find_version(name, border)
    except NotFound:
        raise _no_such(name) from None
    if border is not None and row.scope == SHARED:
        raise _Wrong(
            f"{row.name} is shared with others, and only a person takes it back; the action load still reads it"
        )
    return {"deleted": ws.templates.delete(name if border is None else row.name)}


def _no_such(name: str) -> _Wrong:
    return _Wrong(f"no warm session {name}; the action list shows those there are")


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
    listed = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    parts = [part for text in listed for part in str(text).split(",")]  # hosts wrap a text in a list
    if value is not None and not isinstance(value, str | list):
        raise _Wrong("tags must be a list of words, or words separated by commas")
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
