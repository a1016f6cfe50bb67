"""Pi: `~/.pi/agent/sessions/--<folder>--/*.jsonl`, one entry per line; also the sessions of OpenClaw, which is built on it.

Entries form a tree, in which a person can go back and try again. All branches are read, because all of them happened.
A result has a flag for errors; the exit code of a command stands at the end of its text. A forked session repeats the
entries of the session that it came from, with their ids and times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.formats.advice import take_advice
from warmstart.formats.fields import count_of, dict_of, dollars_of, parse_arguments, parse_time, string_of, text_of
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Session, Signal, Usage
from warmstart.ports import Judge

NAME = "pi"

_ENTRIES = (
    "message",
    "model_change",
    "thinking_level_change",
    "compaction",
    "branch_summary",
    "custom",
    "custom_message",
)
_EXIT_CODE = re.compile(r"(?:^|\n)Command exited with code (-?\d{1,10})\s*$")
_ABORTED = re.compile(r"(?:^|\n)(?:Command|Operation) aborted\s*$")
_TAIL = 200  # characters at the end of a result, where Pi puts its own words
_OURS = "warmstart"  # the name of our extension's messages


class _Message(msgspec.Struct, gc=False):
    role: str | None = None
    content: Any = None
    timestamp: Any = None
    model: Any = None
    usage: Any = None
    stopReason: Any = None  # noqa: N815 - the names are the format's
    toolCallId: Any = None  # noqa: N815
    isError: Any = None  # noqa: N815
    details: Any = None
    command: Any = None


class _Entry(msgspec.Struct, gc=False):
    type: str | None = None
    id: Any = None
    timestamp: Any = None
    cwd: Any = None
    modelId: Any = None  # noqa: N815
    customType: Any = None  # noqa: N815
    content: Any = None
    message: _Message | None = None


_entry = msgspec.json.Decoder(_Entry)


def sniff(head: SourceHead) -> bool:
    first = head.first
    if first.get("type") == "session" and "id" in first and "cwd" in first and "payload" not in first:
        return True
    if head.root != "lines":
        return False
    return any(  # a file whose first line is broken
        record.get("type") == "message"
        and isinstance(message := record.get("message"), dict)
        and (message.get("role") == "toolResult" or message.get("stopReason") == "toolUse")
        and "sessionId" not in record
        for record in head.records
    )


def read(source: Source, judge: Judge) -> Iterator[Session]:
    draft = SessionBuilder(source, judge, format=NAME, agent="openclaw" if ".openclaw" in source.path.parts else "pi")
    for _line, entry in source.records(_entry):
        _take(draft, entry)
    if not draft.empty:
        yield draft.close()


def _take(draft: SessionBuilder, entry: _Entry) -> None:
    at = parse_time(entry.timestamp)
    if entry.type == "session":
        draft.id = draft.id or string_of(entry.id)
        draft.project = draft.project or string_of(entry.cwd) or None
        draft.model = string_of(entry.modelId) or draft.model
    elif entry.type == "model_change":
        draft.model = string_of(entry.modelId) or draft.model
    elif entry.type == "custom_message":
        if entry.customType != _OURS:
            draft.message("system", text_of(entry.content), at)
    elif entry.type == "message" and entry.message is not None:
        _take_message(draft, entry.message, at)


def _take_message(draft: SessionBuilder, message: _Message, at: float | None) -> None:
    at = parse_time(message.timestamp) or at
    if message.role == "user":
        draft.message("user", text_of(message.content), at)
    elif message.role == "assistant":
        _take_answer(draft, message, at)
    elif message.role == "toolResult":
        _take_result(draft, message, at)
    elif message.role == "bashExecution":  # a command that the person ran with `!`
        draft.message("system", f"! {string_of(message.command)}", at)


def _take_answer(draft: SessionBuilder, message: _Message, at: float | None) -> None:
    model = string_of(message.model) or None
    draft.model = model or draft.model
    draft.end_reason = string_of(message.stopReason) or draft.end_reason
    for block in message.content if isinstance(message.content, list) else [message.content]:
        if isinstance(block, str):
            draft.message("assistant", block, at)
        elif isinstance(block, dict) and block.get("type") == "text":
            draft.message("assistant", string_of(block.get("text")), at)
        elif isinstance(block, dict) and block.get("type") == "toolCall":
            arguments = parse_arguments(block.get("arguments"))
            draft.call(string_of(block.get("id")), string_of(block.get("name")), arguments, at)
    usage = dict_of(message.usage)
    draft.spend(
        Usage(
            input=count_of(usage.get("input")),
            output=count_of(usage.get("output")),
            cache_read=count_of(usage.get("cacheRead")),
            cache_write=count_of(usage.get("cacheWrite")),
            cost=dollars_of(dict_of(usage.get("cost")).get("total")),
        ),
        model,
        at,
    )


def _take_result(draft: SessionBuilder, message: _Message, at: float | None) -> None:
    call_id = string_of(message.toolCallId)
    text = take_advice(draft, call_id, text_of(message.content), dict_of(message.details).get(_OURS))
    draft.result(call_id, text, at, _read_signal(text, message.isError))


def _read_signal(text: str, is_error: Any) -> Signal | None:
    if not isinstance(is_error, bool):
        return None
    if is_error and _ABORTED.search(text[-_TAIL:]):
        return Signal(status="cancelled")
    code = _EXIT_CODE.search(text[-_TAIL:]) if is_error else None
    return Signal(failed=is_error, exit_code=int(code[1]) if code else None)
