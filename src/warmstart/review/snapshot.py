"""Snapshots: copies of a conversation for a review, which never change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import msgspec
from msgspec import Struct, structs

from warmstart.dialects.providers import text_of_content
from warmstart.dialects.tokens import estimate
from warmstart.formats.openai_chat import from_messages
from warmstart.ingest.records import session_key
from warmstart.ingest.strip_seed import strip_seed
from warmstart.judging.outcome import judge_result
from warmstart.model import Message, Session, Step, ToolCall, ToolResult
from warmstart.redact import Scope

_INDEXED, _LINE = 240, 110  # steps listed for the model, characters of each
_NO_RESULT = "(no result was recorded)"


class Snapshot(Struct, frozen=True, kw_only=True):
    """A conversation at one moment."""

    session: Session  # proposals cite its steps, from 1
    history: tuple[dict[str, Any], ...]  # the messages that a model is shown
    platform: str = ""  # cli, telegram, ...; "" if unknown
    execution_context: str = "command"
    wire: tuple[dict[str, Any], ...] | None = None  # the same messages in the parent's own protocol, if that is another

    @property
    def key(self) -> str:
        return session_key(self.session)

    @property
    def prompt(self) -> str:
        """The text of the system messages."""
        texts = [step.text for step in self.session.steps if isinstance(step, Message) and step.role == "system"]
        texts += [
            text_of_content(message.get("content"))
            for message in self.history
            if message.get("role") in ("system", "developer")
        ]
        return "\n".join(texts)

    def text_of(self, number: int) -> str:
        """Return a step as text. Raises IndexError if there is no such step."""
        if number < 1:
            raise IndexError(number)
        step = self.session.steps[number - 1]
        return "\n".join((describe_step(step), *self._find_whole_results(step)))

    def _find_whole_results(self, step: Step) -> list[str]:
        """Return a result as the model was shown it: steps keep results shortened."""
        if not isinstance(step, ToolResult) or not step.call_id:
            return []
        return [
            text_of_content(message.get("content"))
            for message in self.history
            if message.get("tool_call_id") == step.call_id
        ]

    def is_prompt(self, number: int) -> bool:
        """Whether a step is a system message, which shows nothing about the session."""
        step = self.session.steps[number - 1]
        return isinstance(step, Message) and step.role == "system"

    def list_steps(self) -> str:
        """List the latest steps, one per line, with the numbers that proposals cite."""
        steps = self.session.steps
        start = max(0, len(steps) - _INDEXED)
        return "\n".join(f"[{n}] {_shorten(step)}" for n, step in enumerate(steps[start:], start + 1))


def take_messages(
    messages: Sequence[Any],
    *,
    session: str = "",
    platform: str = "",
    context: str = "background_review",
    to_chat: Callable[[Sequence[Mapping[str, Any]]], list[dict[str, Any]]] | None = None,
) -> Snapshot:
    """Take a snapshot of a conversation in memory. It is copied, so later changes do not affect it.

    `to_chat` turns a conversation in another protocol into chat messages.
    """
    copied = tuple(plain_message(message) for message in messages)
    history = tuple(to_chat(copied)) if to_chat else copied
    read = strip_seed(from_messages(history, judge_result, id=session))
    return Snapshot(
        session=read,
        history=history,
        platform=platform or read.agent,
        execution_context=context,
        wire=copied if to_chat else None,
    )


def take_session(session: Session, scope: Scope, *, context: str = "command", tokens: int = 0) -> Snapshot:
    """Take a snapshot of a transcript. It is redacted: the model that reads it may not be the session's own."""
    hidden = structs.replace(session, steps=tuple(redact_step(step, scope) for step in session.steps))
    history = tuple(write_history(hidden))
    if tokens:
        history = fit_history(history, tokens)
    return Snapshot(session=hidden, history=history, platform=session.agent, execution_context=context)


def plain_message(message: Any) -> dict[str, Any]:
    """Return a deep copy of a message made of plain values, as the official SDK would send it."""
    dump = getattr(message, "model_dump", None)
    value = dump(exclude_unset=True, mode="json", by_alias=True) if callable(dump) else dict(message)
    return {str(key): copy_value(item) for key, item in value.items()}


def copy_value(value: Any) -> Any:
    """Return a deep copy in which the SDK's objects are plain values."""
    if isinstance(value, Mapping):
        return {str(key): copy_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [copy_value(item) for item in value]
    dump = getattr(value, "model_dump", None)
    return dump(exclude_unset=True, mode="json", by_alias=True) if callable(dump) else value


def redact_step(step: Step, scope: Scope) -> Step:
    if isinstance(step, ToolCall):
        return structs.replace(step, tool=scope.identifier(step.tool), arguments=scope.value(step.arguments))
    return structs.replace(step, text=scope.text(step.text))


def write_history(session: Session) -> Iterator[dict[str, Any]]:
    """Yield a session's steps as messages. Each call is followed by its result, as providers demand."""
    answers = iter(session.calls())
    for number, step in enumerate(session.steps, 1):
        if isinstance(step, Message):
            yield {"role": step.role, "content": step.text}
        elif isinstance(step, ToolCall):
            call, answer = next(answers)
            arguments = msgspec.json.encode(call.arguments).decode()
            function = {"name": call.tool or "unknown", "arguments": arguments}
            described = {"id": f"call_{number}", "type": "function", "function": function}
            yield {"role": "assistant", "content": None, "tool_calls": [described]}
            text = answer.text if answer else _NO_RESULT
            yield {"role": "tool", "tool_call_id": described["id"], "content": text}


def fit_history(history: tuple[dict[str, Any], ...], tokens: int) -> tuple[dict[str, Any], ...]:
    """Return the latest messages that fit, after the first request. A call and its result stay together."""
    left = tokens
    start = len(history)
    while start and (left := left - estimate(msgspec.json.encode(history[start - 1]).decode())) > 0:
        start -= 1
    while start < len(history) and history[start].get("role") == "tool":
        start += 1
    opening = [message for message in history[:start] if message.get("role") == "system"]
    opening += [message for message in history[:start] if message.get("role") == "user"][:1]
    return (*opening, *history[start:])


def describe_step(step: Step) -> str:
    match step:
        case Message():
            return step.text
        case ToolCall():
            text = step.arguments if isinstance(step.arguments, str) else msgspec.json.encode(step.arguments).decode()
            return f"{step.tool} {text}"
        case ToolResult():
            return step.text


def _shorten(step: Step) -> str:
    name = step.role if isinstance(step, Message) else "call" if isinstance(step, ToolCall) else "result"
    text = " ".join(describe_step(step)[: 4 * _LINE].split())
    return f"{name}: {text[:_LINE]}{' ...' if len(text) > _LINE else ''}"


def find_file(uri: str) -> Path | None:
    """Return the file of a transcript's address, which may name a place in it; None if there is no such file."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return None
    path = Path(url2pathname(parts.path))
    return path if path.is_file() else None


def name_session(session: Session, id: str, agent: str, parent: str | None) -> Session:
    """Return the session with the id, agent and parent that the host knows."""
    return structs.replace(session, id=id or session.id, agent=agent or session.agent, parent=parent or session.parent)
