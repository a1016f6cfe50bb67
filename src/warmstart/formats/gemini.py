"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.json`, since v0.40 `.jsonl`.

The JSONL is a log of upserts: a message is written again in full whenever its tool calls or tokens change, and
`{"$set": {"messages": [...]}}` repeats the list. The last version of a message counts. Messages that a rewind or a
compression removed from the context are kept, because they happened. A call carries its result and status; a failed
shell command has the status "success" and its exit code in the text. `.project_root` beside the folder names the project.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from warmstart.formats.fields import count_of, parse_arguments, parse_time, string_of, without_cached
from warmstart.formats.gemini_parts import (
    find_result_text,
    find_spoken_text,
    find_text,
    list_parts,
    make_signal,
)
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Role, Session, Signal, Usage
from warmstart.ports import Judge

NAME = "gemini_cli"

_KINDS = ("user", "gemini", "model", "info", "error", "warning")
_ANSWERING = frozenset(("gemini", "model", "assistant"))
_WINDOW = 32  # messages held back because the log may write them again
_SNAPSHOT = "<state_snapshot>"  # begins the summary that a compression writes in the place of messages
_LONGEST_PATH = 4_096


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
    displayContent: Any = None  # noqa: N815 - what the person typed, before the agent added files to it
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
        return (_is_session(first) and "type" not in first) or _is_headless(head)
    if head.root != "object":
        return False
    if _is_session(first) and "type" not in first:
        messages = first.get("messages") or []
        return isinstance(messages, list) and all(isinstance(m, dict) and m.get("type") in _KINDS for m in messages[:8])
    history = first.get("history")
    turns = history[:8] if isinstance(history, list) else []
    return bool(turns) and all(isinstance(t, dict) and "role" in t and isinstance(t.get("parts"), list) for t in turns)


def _is_headless(head: SourceHead) -> bool:
    """Return whether it is a log without its first line: a session that starts may delete that of another one."""
    records = head.records
    messages = [record for record in records if record.keys() >= {"id", "timestamp", "type", "content"}]
    return (
        bool(messages)
        and len(messages) < len(records)
        and all(
            ("uuid" not in record and record["type"] in _KINDS)
            if record in messages
            else record.keys() <= {"$set", "$rewindTo"}
            for record in records
        )
    )


def _is_session(record: dict[str, Any]) -> bool:
    return "sessionId" in record and "uuid" not in record and ("projectHash" in record or "startTime" in record)


def read(source: Source, judge: Judge) -> Iterator[Session]:
    draft = SessionBuilder(source, judge, format=NAME, agent="gemini-cli")
    folder = source.path.parent
    if folder.parent.name == "chats":  # a subagent's log is in a folder named after its parent's session
        draft.parent = folder.name
        folder = folder.parent
    if folder.name == "chats":
        draft.project = _read_project(folder.parent)
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
        self._answered: set[str] = set()  # ids of calls that carry their results
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
        """Take a message, or a newer version of one. A resumed session writes its messages again without their calls."""
        key = message.id or f"\0{len(self._added) + len(self._window)}"
        known = self._window.get(key)
        if key in self._added or (known is not None and known.toolCalls and not message.toolCalls):
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
        elif kind == "error" or (kind == "info" and "cancelled" in find_text(message.content)):
            self._draft.end_reason = "error" if kind == "error" else "cancelled"

    def _add_parts(self, message: _Message, at: float | None) -> None:
        """Add the text of a message and, in bare API histories, the calls and results in it."""
        content = message.content if message.content not in (None, "") else message.parts
        role: Role = "user" if (message.type or message.role) == "user" else "assistant"
        typed = message.displayContent if role == "user" else None
        spoken = find_spoken_text(typed if typed not in (None, "", []) else content)
        self._draft.message("system" if spoken.startswith(_SNAPSHOT) else role, spoken, at)
        for part in list_parts(content):
            if isinstance(call := part.get("functionCall"), dict):
                tool, arguments = string_of(call.get("name")), parse_arguments(call.get("args"))
                self._draft.call(string_of(call.get("id")), tool, arguments, at)
            elif isinstance(answer := part.get("functionResponse"), dict):
                self._add_answer(answer, part, at)

    def _add_answer(self, answer: dict[str, Any], part: dict[str, Any], at: float | None) -> None:
        """Add a result that is a message of its own, unless its call carries it, too."""
        call_id, response = string_of(answer.get("id")), answer.get("response")
        if call_id in self._answered:
            return
        failed = Signal(failed=True) if isinstance(response, dict) and response.get("error") else None
        self._draft.result(call_id, find_result_text([part]), at, failed)

    def _add_call(self, call: _Call, at: float | None) -> None:
        call_id = call.id or ""
        self._draft.call(call_id, call.name or "", parse_arguments(call.args), at)
        if call.result is not None or call.status in ("success", "error", "cancelled"):
            text = find_result_text(call.result)
            text = text or (call.resultDisplay if isinstance(call.resultDisplay, str) else "")
            signal = make_signal(call.status, text, is_shell="shell" in (call.name or ""))
            self._draft.result(call_id, text, parse_time(call.timestamp) or at, signal)
            self._answered |= {call_id} - {""}

    def sessions(self) -> Iterator[Session]:
        while self._window:
            self._add_oldest()
        draft = self._draft
        if self._ended is not None and (draft.ended is None or draft.ended < self._ended):
            draft.ended = self._ended
        if not draft.empty:  # a resumed session leaves an empty log, too, and goes on in its old one
            yield draft.close()


def _read_project(folder: Path) -> str | None:
    """Return the folder of the project, which Gemini CLI notes in the one that it keeps for the project."""
    try:
        with (folder / ".project_root").open("rb") as file:
            root = file.read(_LONGEST_PATH).decode().strip()
    except (OSError, UnicodeError):
        return None
    return root if root and "\0" not in root else None


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
