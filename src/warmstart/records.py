"""A scored session as the store keeps it: facts, redacted arguments and short redacted excerpts, never a transcript."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from warmstart.excerpt import first
from warmstart.model import Message, Score, Session, ToolCall, ToolResult
from warmstart.redact import Redactor, Scope
from warmstart.store import CallRow, SessionRow

INTENT, TASK = 300, 1_200  # characters kept; results and arguments come already shortened
_encode = msgspec.json.Encoder(order="deterministic").encode


class Record(Struct, frozen=True):
    """One session with its calls, as stored."""

    session: SessionRow
    calls: tuple[CallRow, ...]


class Recorder:
    """Turns sessions into records. The secrets of the user's environment are known to it and never pass."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._redactor = Redactor(secrets)

    def name(self, text: str) -> str:
        """A path or name that is shown or kept on its own."""
        return self._redactor.scope().identifier(text)

    def record(self, session: Session, score: Score, now: float) -> Record:
        scope = self._redactor.scope()
        key = session_key(session)
        calls = tuple(_calls(session, key, scope))
        counts = score.counts
        names = {name: scope.identifier(name) for name in counts.tools}
        redacted = msgspec.structs.replace(
            score, counts=msgspec.structs.replace(counts, tools={names[k]: v for k, v in counts.tools.items()})
        )
        row = SessionRow(
            key=key,
            id=scope.identifier(session.id),
            format=session.format,
            agent=session.agent,
            model=_maybe(scope, session.model),
            project=_maybe(scope, session.project),
            source_uri=scope.identifier(session.source_uri),
            task=scope.text(first(session.task, TASK)) if session.task else None,
            started=session.started,
            ended=session.ended,
            end_reason=_maybe(scope, session.end_reason),
            label=session.label,
            parent=_maybe(scope, session.parent),
            messages=counts.total_messages,
            calls=counts.tool_calls,
            results=counts.tool_results,
            errors=counts.error_count,
            verdict=score.verdict,
            quality=score.quality,
            confidence=score.confidence,
            category=score.category,
            task_type=score.task_type,
            score=_encode(redacted).decode(),
            usage=_encode(session.usage).decode() if session.usage else None,
            digest="",
            first_seen=now,
            updated=now,
        )
        return Record(msgspec.structs.replace(row, digest=_digest(row, calls)), calls)


def session_key(session: Session) -> str:
    """Who ran it, its own id and what it was asked: the same session read from another file or format is the same."""
    said = "\0".join((session.agent, session.id, (session.task or "")[:500]))
    return hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=16).hexdigest()


def _digest(row: SessionRow, calls: tuple[CallRow, ...]) -> str:
    """Of everything that is kept but the times of keeping."""
    said = msgspec.structs.asdict(row) | {"first_seen": 0, "updated": 0, "digest": "", "source_uri": ""}
    return hashlib.blake2b(_encode([said, calls]), digest_size=16).hexdigest()


def _maybe(scope: Scope, text: str | None) -> str | None:
    return scope.identifier(text) if text else None


def _calls(session: Session, key: str, scope: Scope) -> list[CallRow]:
    answers = iter(session.calls())
    rows: list[CallRow] = []
    said, intent = "", ""
    for step in session.steps:
        if isinstance(step, Message):
            if step.role != "system":
                said, intent = step.text, ""
        elif isinstance(step, ToolCall):
            if said and not intent:
                intent = scope.text(first(said, INTENT))
            rows.append(_call(*next(answers), len(rows), key, scope, intent))
    return rows


def _call(call: ToolCall, answer: ToolResult | None, ordinal: int, key: str, scope: Scope, intent: str) -> CallRow:
    arguments: Any = scope.value(call.arguments)
    return CallRow(
        session_key=key,
        ordinal=ordinal,
        call_id=scope.identifier(call.call_id[:200]),
        tool=scope.identifier(call.tool[:200]),
        arguments=_encode(arguments).decode(),
        intent=intent or None,
        excerpt=scope.text(answer.text) if answer else None,
        status=answer.outcome.status if answer else "unknown",
        basis=answer.outcome.basis if answer else "none",
        error_kind=answer.outcome.error_kind if answer else None,
        at=call.at,
    )
