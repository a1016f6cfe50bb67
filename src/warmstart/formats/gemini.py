"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.json`, since v0.40 `.jsonl`.

The JSONL is a log of upserts: a message is written again in full whenever its tool calls or tokens change, and
`{"$set": {"messages": [...]}}` repeats the list. The last version of a message counts. Messages that a rewind or a
compression removed from the context are kept, because they happened. A call carries its result and status; a failed
shell command has the status "success" and its exit code in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.formats.fields import count_of, parse_arguments, parse_time, string_of, without_cached
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Role, Session, Signal, Usage
from warmstart.ports import Judge

NAME = "gemini_cli"

_KINDS = ("user", "gemini", "model", "info", "error", "warning")
_ANSWERING = frozenset(("gemini", "model", "assistant"))
_EXIT_CODE = re.compile(r"(?:^|\n|\\n)Exit Code: (-?\d{1,10})(?=\s|\\n|$)")
_WINDOW = 32  # messages held back because the log may write them again
_REFUSED = re.compile(r"did not allow|(?i:user) denied")  # the person, not an interruption


class _Call(msgspec.Struct, gc=False):
    id: str | None = None
    name: str | None = None
    args: Any = None
    result: Any = None
    status: str | None = None
    timestamp: str | float | None = None
    resultDisplay: Any = None  # noqa: N815 - the names are the format's


class _Tokens(msgspec.Struct, gc=False):
    input: int | None = None
    output: int | None = None
    cached: int | None = None
    thoughts: int | None = None
    tool: int | None = None


class _Message(msgspec.Struct, gc=False):
    id: str | None = None
    type: str | None = None
    role: str | None = None
    content: Any = None
    parts: Any = None
    timestamp: str | float | None = None
    ts: str | float | None = None
    model: str | None = None
    tokens: _Tokens | None = None
    toolCalls: list[_Call] | None = None  # noqa: N815


class _Facts(msgspec.Struct, gc=False):
    sessionId: str | None = None  # noqa: N815
    projectHash: str | None = None  # noqa: N815
    startTime: str | float | None = None  # noqa: N815
    lastUpdated: str | float | None = None  # noqa: N815
    messages: list[_Message] | None = None


class _Line(_Message, gc=False):
    sessionId: str | None = None  # noqa: N815
    projectHash: str | None = None  # noqa: N815
    startTime: str | float | None = None  # noqa: N815
    lastUpdated: str | float | None = None  # noqa: N815
    messages: list[_Message] | None = None
    set: _Facts | None = msgspec.field(default=None, name="$set")


_line = msgspec.json.Decoder(_Line)
_message = msgspec.json.Decoder(_Message)
_facts = msgspec.json.Decoder(_Facts)


def sniff(head: SourceHead) -> bool:
    first = head.first
    if head.root == "lines":
        return _is_session(first) and "type" not in first
    if head.root != "object":
        return False
    if _is_session(first) and "type" not in first:
        messages = first.get("messages") or []
        return isinstance(messages, list) and all(isinstance(m, dict) and m.get("type") in _KINDS for m in messages[:8])
    history = first.get("history")
    turns = history[:8] if isinstance(history, list) else []
    return bool(turns) and all(isinstance(t, dict) and "role" in t and isinstance(t.get("parts"), list) for t in turns)


def _is_session(record: dict[str, Any]) -> bool:
    return "sessionId" in record and "uuid" not in record and ("projectHash" in record or "startTime" in record)


def read(source: Source, judge: Judge) -> Iterator[Session]:
    draft = SessionBuilder(source, judge, format=NAME, agent="gemini-cli")
    if source.path.parent.parent.name == "chats":  # a subagent's log is in a folder named after its parent's session
        draft.parent = source.path.parent.name
    reader = _Reader(draft)
    if source.head.root == "object" and source.head.first.keys() & {"messages", "history"}:
        for key, raw, number in source.walk("messages", "history"):
            if key == "messages" or key == "history":
                if message := source.decode(raw, _message, number):
                    reader.take(message)
            elif key in _Facts.__struct_fields__:
                wrapped = b'{"%s":%s}' % (key.encode(), bytes(raw))
                if facts := source.decode(wrapped, _facts, number):
                    reader.learn(facts)
    else:
        for _number, line in source.records(_line):
            if line.set is not None:
                reader.learn(line.set)
            elif line.type is None and line.role is None:
                reader.learn(line)
            else:
                reader.take(line)
    yield from reader.sessions()


class _Reader:
    def __init__(self, draft: SessionBuilder) -> None:
        self._draft = draft
        self._window: dict[str, _Message] = {}
        self._added: set[str] = set()  # ids of messages in the draft
        self._ended: float | None = None

    def learn(self, facts: _Facts | _Line) -> None:
        draft = self._draft
        draft.id = draft.id or facts.sessionId or ""
        draft.project = draft.project or facts.projectHash
        if draft.started is None:
            draft.started = parse_time(facts.startTime)
        self._ended = parse_time(facts.lastUpdated) or self._ended
        for message in facts.messages or ():
            self.take(message)

    def take(self, message: _Message) -> None:
        """Take a message, or a newer version of one."""
        key = message.id or f"\0{len(self._added) + len(self._window)}"
        if key in self._added:
            return
        self._window[key] = message
        if len(self._window) > _WINDOW:
            self._add_oldest()

    def _add_oldest(self) -> None:
        key = next(iter(self._window))
        message = self._window.pop(key)
        self._added.add(key)
        at = parse_time(message.timestamp if message.timestamp is not None else message.ts)
        kind = message.type or message.role
        if kind == "user":
            self._draft.end_reason = None
            self._add_parts(message, at)
        elif kind in _ANSWERING:
            self._draft.end_reason = None
            self._draft.model = message.model or self._draft.model
            self._add_parts(message, at)
            for call in message.toolCalls or ():
                self._add_call(call, at)
            if message.tokens is not None:
                self._draft.spend(_usage(message.tokens), message.model, at)
        elif kind == "error" or (kind == "info" and "cancelled" in _text(message.content)):
            self._draft.end_reason = "error" if kind == "error" else "cancelled"

    def _add_parts(self, message: _Message, at: float | None) -> None:
        """Add the text of a message and, in bare API histories, the calls and results in it."""
        content = message.content if message.content not in (None, "") else message.parts
        role: Role = "user" if (message.type or message.role) == "user" else "assistant"
        self._draft.message(role, _visible_text(content), at)
        if isinstance(content, list):
            for part in content:
                if isinstance(part, dict) and isinstance(call := part.get("functionCall"), dict):
                    tool, arguments = string_of(call.get("name")), parse_arguments(call.get("args"))
                    self._draft.call(string_of(call.get("id")), tool, arguments, at)
                elif isinstance(part, dict) and isinstance(answer := part.get("functionResponse"), dict):
                    response = answer.get("response")
                    failed = Signal(failed=True) if isinstance(response, dict) and response.get("error") else None
                    self._draft.result(string_of(answer.get("id")), _text([part]), at, failed)

    def _add_call(self, call: _Call, at: float | None) -> None:
        call_id = call.id or ""
        self._draft.call(call_id, call.name or "", parse_arguments(call.args), at)
        done = call.result is not None or call.status in ("success", "error", "cancelled")
        if done:
            text = _text(call.result) or (call.resultDisplay if isinstance(call.resultDisplay, str) else "")
            self._draft.result(call_id, text, parse_time(call.timestamp) or at, _signal(call, text))

    def sessions(self) -> Iterator[Session]:
        while self._window:
            self._add_oldest()
        draft = self._draft
        if self._ended is not None and (draft.ended is None or draft.ended < self._ended):
            draft.ended = self._ended
        if draft.id or not draft.empty:
            yield draft.close()


def _signal(call: _Call, text: str) -> Signal | None:
    if call.status == "error":
        return Signal(status="error")
    if call.status == "cancelled":
        return Signal(status="rejected" if _REFUSED.search(text[:400]) else "cancelled")
    if call.status != "success":
        return None
    codes = _EXIT_CODE.findall(text) if call.name and "shell" in call.name else []
    return Signal(exit_code=int(codes[-1])) if codes else Signal(status="ok")


def _text(value: Any) -> str:
    """Return the text of a content or a result: a string or parts."""
    if isinstance(value, str):
        return value
    parts: list[str] = []
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, dict):
            answer = part.get("functionResponse")
            response = answer.get("response") if isinstance(answer, dict) else None
            if isinstance(response, dict):
                keys = ("output", "error", "content")
                output = next((response[k] for k in keys if response.get(k) is not None), response)
                parts.append(output if isinstance(output, str) else msgspec.json.encode(output).decode())
            elif isinstance(part.get("text"), str):
                parts.append(part["text"])
    return "\n".join(parts)


def _visible_text(content: Any) -> str:
    """Return the text without thoughts and tool results."""
    parts = content if isinstance(content, list) else [content]
    return _text([p for p in parts if not isinstance(p, dict) or not (p.get("thought") or "functionResponse" in p)])


def _usage(tokens: _Tokens) -> Usage:
    """Read Gemini's counts: its input includes tokens read from the cache, its output excludes thoughts."""
    prompt, cached, thoughts, output = map(count_of, (tokens.input, tokens.cached, tokens.thoughts, tokens.output))
    uncached = without_cached(prompt, cached)
    return Usage(
        input=None if uncached is None else uncached + (count_of(tokens.tool) or 0),
        output=None if output is None else output + (thoughts or 0),
        cache_read=cached,
        reasoning=thoughts,
    )
