"""Turn a scored session into rows of the store: facts, redacted arguments, short redacted excerpts; no transcript."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, structs

from warmstart.calls.exchanges import Served, find_served, list_requests
from warmstart.calls.intents import Purposes
from warmstart.calls.prose import strip_programs
from warmstart.excerpt import first
from warmstart.model import (
    UNKNOWN,
    Message,
    Score,
    Session,
    Spent,
    ToolCall,
    ToolResult,
)
from warmstart.names import could_hide_secret
from warmstart.redact import Redactor, Scope
from warmstart.redact.gate import GATE
from warmstart.scopes import EVERYWHERE, ScopeNamer
from warmstart.store import CallRow, SessionRow, SpentRow
from warmstart.usage.amounts import Tally

_TOGETHER = 1_000  # calls that are searched for secrets together
TASK = 1_200  # maximum characters; results and arguments arrive already clipped
_CALL_ID = re.compile(  # an id that an agent generated: it reveals nothing
    r"(?:toolu_(?:vrtx_|bdrk_)?|call_(?:\d+_)?|fc_|msg_|chatcmpl-(?:tool-)?)[A-Za-z0-9]{8,40}"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)
_encode = msgspec.json.Encoder(order="deterministic").encode
_write_arguments = msgspec.json.Encoder().encode  # in the agent's own order, in which examples show them


Answered = list[tuple[ToolCall, ToolResult | None]]


class Record(Struct, frozen=True):
    """A stored session with its calls."""

    session: SessionRow
    calls: tuple[CallRow, ...]
    spent: tuple[SpentRow, ...] = ()  # usage by model and day


class Recorder:
    """Turns sessions into records, and redacts the secrets of the user's environment."""

    def __init__(self, secrets: Mapping[str, str], home: Path | None = None) -> None:
        """`home` holds the key that ids of people are hashed with; without it, scopes of people are good for nothing."""
        self._redactor = Redactor(secrets)
        self._known = tuple(secrets.values())
        self._scopes = ScopeNamer(home)
        if home is not None:
            GATE.keep_in(home)

    def name(self, text: str) -> str:
        """Redact a path or name that is shown or stored by itself."""
        if not could_hide_secret(text) and not any(value in text for value in self._known):
            return text
        return self._redactor.scope().identifier(text)

    def redact(self, text: str) -> str:
        """Redact a text that is shown."""
        return self._redactor.scope().text(text)

    def record(self, session: Session, score: Score, now: float) -> Record:
        """Return the redacted rows of a session."""
        scope = self._redactor.scope()
        key = session_key(session)
        answered = session.calls()
        turns = session.number_turns()
        request = first(find_request(session), TASK) if session.task else None
        suspect = self._find_suspect(session, answered)
        material = _Material(session, answered)
        scope.screen([*material.texts(), request or "", suspect])
        names = _Names(scope, suspect)
        calls = tuple(_calls(material, turns, key, scope, names))
        hide = scope.replaced  # what a name gave away in one place is hidden everywhere
        spent = tuple(_spent(session.spent, key, names))
        counts = score.counts
        tools = {names.clean(name): used for name, used in counts.tools.items()}
        evidence = tuple(structs.replace(reason, sign=names.clean(reason.sign)) for reason in score.evidence)
        redacted = structs.replace(score, counts=structs.replace(counts, tools=tools), evidence=evidence)
        row = SessionRow(
            key=key,
            id=names.clean(session.id),
            format=session.format,
            agent=session.agent,
            model=names.maybe(session.model),
            project=names.maybe(_name_folder(session.project)),
            source_uri=names.clean(session.source_uri),
            task=None if request is None else hide(scope.text(request)),
            started=session.started,
            ended=session.ended,
            end_reason=names.maybe(session.end_reason),
            label=session.label,
            parent=names.maybe(session.parent),
            messages=counts.total_messages,
            calls=counts.tool_calls,
            results=counts.tool_results,
            errors=sum(call.status == "error" for call in calls),  # a result without a call is no call that failed
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
            turns=max(turns, default=0),
            folder=names.maybe(_name_folder(session.project)),
            remote=names.maybe(session.remote),
            scope=session.scope or self._scopes.name(session.owner, session.id),
            source=names.maybe(session.source),
        )
        return Record(structs.replace(row, digest=_digest(row, calls, spent)), calls, spent)

    def _find_suspect(self, session: Session, answered: Answered) -> str:
        """Return the ids, tool names and paths of a session as one text if it may hold a secret, else "".

        They are many and nearly always clean.
        """
        ids = [call.call_id for call, _answer in answered]
        odd = "\n".join((*_collect_names(session, answered), *(one for one in ids if not _CALL_ID.fullmatch(one))))
        joined = "\n".join((odd, *ids)) if self._known else odd
        is_clean = not could_hide_secret(odd) and not any(value in joined for value in self._known)
        return "" if is_clean else joined


def _name_folder(folder: str | None) -> str | None:
    """Return the folder that a transcript names; the word for all projects, which it may not say, as a file's name."""
    return f"./{folder}" if folder == EVERYWHERE else folder


def find_request(session: Session) -> str:
    """Return the person's first request, without what programs wrote before it: in its message or as a message apart."""
    for step in session.steps:
        if isinstance(step, ToolCall):
            break
        if isinstance(step, Message) and step.role == "user" and (request := strip_programs(step.text)).strip():
            return request
    return session.task or ""


def session_key(session: Session) -> str:
    """Return a hash of agent, id and task: the same session has the same key in every file and format."""
    identity = "\0".join((session.agent, session.id, (session.opening or session.task or "")[:500]))
    return hashlib.blake2b(identity.encode("utf-8", "replace"), digest_size=16).hexdigest()


def _digest(row: SessionRow, calls: tuple[CallRow, ...], spent: tuple[SpentRow, ...]) -> str:
    """Return a hash of everything that is stored, except where and when it was read."""
    facts = structs.replace(row, first_seen=0, updated=0, digest="", source_uri="")
    digest = hashlib.blake2b(_encode((facts, spent)), digest_size=16)
    for call in calls:
        parts = (
            call.call_id,
            call.tool,
            call.arguments,
            call.intent or "",
            call.excerpt or "",
            call.status,
            call.basis,
            call.cause or "",
            call.findings or "",
            call.words or "",
            call.asked or "",
            call.closing or "",
        )
        digest.update("\x1f".join(parts).encode("utf-8", "replace"))
    return digest.hexdigest()


def _collect_names(session: Session, answered: Answered) -> list[str]:
    facts = (
        session.id,
        session.source_uri,
        session.model,
        session.project,
        session.end_reason,
        session.parent,
        session.remote,
        session.source,
    )
    models = (part.model for part in session.spent)
    return [*filter(None, (*facts, *models)), *dict.fromkeys(call.tool for call, _answer in answered)]


class _Names:
    """Redacts ids, tool names and paths, unless all of them together are clean."""

    def __init__(self, scope: Scope, suspect: str) -> None:
        self._scope = scope if suspect and scope.identifier(suspect) != suspect else None

    def clean(self, name: str) -> str:
        return self._scope.identifier(name) if self._scope else name

    def maybe(self, name: str | None) -> str | None:
        return self.clean(name) if name else None


def _spent(parts: Iterable[Spent], key: str, names: _Names) -> Iterator[SpentRow]:
    cleaned = Tally()  # redaction can make two model names equal
    for part in parts:
        cleaned.take(part.usage, names.clean(part.model), part.day)
    for part in cleaned.spent():
        yield SpentRow(session_key=key, model=part.model, day=part.day, **structs.asdict(part.usage))


class _Place(NamedTuple):
    """The position of a call in its session."""

    key: str
    ordinal: int
    turn: int
    intent: str | None
    served: Served


class _Material:
    """What the rows of a session's calls are made from."""

    def __init__(self, session: Session, answered: Answered) -> None:
        self.steps = session.steps
        self.answered = answered
        self.purposes = Purposes(session.steps)
        self.requests = list_requests(session.steps)
        self.written = _write_parts(answered[:_TOGETHER])

    def texts(self) -> Iterator[str]:
        """Yield the texts that are redacted, to be searched together; those of later calls are searched when they come."""
        yield from self.purposes.texts()
        for request in self.requests:
            yield request.asked
            yield request.said
        yield from map("\n".join, self.written)
        for _call, answer in self.answered:
            if answer and answer.outcome.cause:
                yield answer.outcome.cause
                yield from answer.outcome.findings


def _write_parts(answered: Answered) -> list[tuple[str, str]]:
    """Return the arguments and the result of each call as text."""
    return [(_write_arguments(call.arguments).decode(), answer.text if answer else "") for call, answer in answered]


def _calls(material: _Material, numbered: list[int], key: str, scope: Scope, names: _Names) -> list[CallRow]:
    clean = lru_cache(None)(scope.text)  # both look at the same messages
    intents = material.purposes.state(clean)
    served = find_served(material.requests, clean)
    answered, written = material.answered, material.written
    turns = [turn for step, turn in zip(material.steps, numbered, strict=True) if isinstance(step, ToolCall)]
    places = (_Place(key, at, turn, intents[at] or None, served[at]) for at, turn in enumerate(turns))
    rows: list[CallRow] = []
    for start in range(0, len(answered), _TOGETHER):  # a session may have 50,000 calls
        some = answered[start : start + _TOGETHER]
        if start:
            written = _write_parts(some)
            scope.screen(map("\n".join, written))
        parts = zip(some, written, islice(places, _TOGETHER), strict=True)
        rows += [_call(*pair, texts, place, scope, names) for pair, texts, place in parts]
        scope.forget(map("\n".join, written))
    if scope.kinds:
        for at, row in enumerate(rows):  # in place: a second list would be the peak of a long session
            rows[at] = _hide_replaced(row, scope)
    return rows


def _hide_replaced(row: CallRow, scope: Scope) -> CallRow:
    """Hide in a call's texts the values that another call named as secrets: a request says them without a name."""
    hide = scope.replaced
    return structs.replace(
        row,
        arguments=_hide_in_arguments(row.arguments, scope),
        intent=hide(row.intent) if row.intent else None,
        excerpt=hide(row.excerpt) if row.excerpt else row.excerpt,
        cause=hide(row.cause) if row.cause else None,
        words=hide(row.words) if row.words else None,
        asked=hide(row.asked) if row.asked else None,
        closing=hide(row.closing) if row.closing else None,
    )


def _hide_in_arguments(arguments: str, scope: Scope) -> str:
    if scope.replaced(arguments) == arguments:
        return arguments
    return _write_arguments(_hide_in_value(msgspec.json.decode(arguments), scope)).decode()


def _hide_in_value(value: Any, scope: Scope) -> Any:
    if isinstance(value, str):
        return scope.replaced(value)
    if isinstance(value, dict):
        return {scope.replaced(key): _hide_in_value(inner, scope) for key, inner in value.items()}
    if isinstance(value, list):
        return [_hide_in_value(inner, scope) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool) and (text := scope.replaced(str(value))) != str(value):
        return text
    return value


def _call(
    call: ToolCall, answer: ToolResult | None, written: tuple[str, str], place: _Place, scope: Scope, names: _Names
) -> CallRow:
    arguments, excerpt = written
    joined = "\n".join(written)
    if scope.text(joined) != joined:  # there is a secret: redact each part by itself, arguments by their keys
        arguments = _write_arguments(scope.value(call.arguments)).decode()
        excerpt = scope.text(excerpt)
    outcome = answer.outcome if answer else UNKNOWN
    return CallRow(
        session_key=place.key,
        ordinal=place.ordinal,
        call_id=names.clean(call.call_id),
        tool=names.clean(call.tool),
        arguments=arguments,
        intent=place.intent,
        excerpt=excerpt if answer else None,
        status=outcome.status,
        basis=outcome.basis,
        error_kind=outcome.error_kind,
        at=call.at,
        turn=place.turn,
        answered=answer.at if answer else None,
        flagged=outcome.flagged,
        cause=scope.text(outcome.cause) if outcome.cause else None,
        findings=_encode([scope.text(finding) for finding in outcome.findings]).decode() if outcome.findings else None,
        words=scope.text(outcome.words) if outcome.words else None,
        request=place.served.request,
        asked=place.served.asked or None,
        closing=place.served.closing or None,
    )
