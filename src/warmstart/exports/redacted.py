"""A session with every secret, person and machine replaced: one numbering of placeholders per session."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from warmstart.formats.lenient import scrub
from warmstart.model import Message, Session, Step, ToolCall, ToolResult
from warmstart.redact import Redactor, Scope


def redact_session(session: Session, redactor: Redactor) -> Session:
    """Return the session as it may leave the machine. The address of its transcript is left out."""
    scope = redactor.scope()
    return structs.replace(
        session,
        id=_identify(session.id, scope),
        source_uri="",
        agent=_identify(session.agent, scope),
        model=_identify(session.model, scope) if session.model else None,
        project=_identify(session.project, scope) if session.project else None,
        parent=_identify(session.parent, scope) if session.parent else None,
        steps=tuple(_redact_step(step, scope) for step in session.steps),
    )


def _redact_step(step: Step, scope: Scope) -> Step:
    if isinstance(step, Message):
        return structs.replace(step, text=scope.text(scrub(step.text)))
    call_id = _identify(step.call_id, scope)
    if isinstance(step, ToolResult):
        return structs.replace(step, call_id=call_id, text=scope.text(scrub(step.text)))
    arguments: Any = scope.value(scrub(step.arguments))
    return ToolCall(call_id, _identify(step.tool, scope), arguments, step.at)


def _identify(name: str, scope: Scope) -> str:
    return scope.identifier(str(scrub(name)))
