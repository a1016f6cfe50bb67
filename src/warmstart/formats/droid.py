"""Droid (Factory): `~/.factory/sessions/**/*.jsonl`, and the events that `droid exec --output-format stream-json` prints.

A stored session holds Anthropic blocks without a flag for errors; the exit code stands in the text of a failed command.
A stream flags failed results, or gives the exit code of the command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.formats.fields import count_of, dict_of, parse_arguments, parse_time, string_of, text_of
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Session, Signal, Usage
from warmstart.ports import Judge

NAME = "droid"

_REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_EXIT_CODE = re.compile(r"Error: Command failed \(exit code: (-?\d{1,10})\)")
_STREAM = ("message", "tool_call", "tool_result", "completion")
_OUTPUTS = ("stdout", "stderr", "output")


class _Record(msgspec.Struct, gc=False):
    type: Any = None
    id: Any = None
    session_id: Any = None
    sessionId: Any = None  # noqa: N815 - the names are the format's
    timestamp: Any = None
    cwd: Any = None
    model: Any = None
    message: Any = None
    role: Any = None
    text: Any = None
    toolCallId: Any = None  # noqa: N815
    toolName: Any = None  # noqa: N815
    parameters: Any = None
    isError: Any = None  # noqa: N815
    value: Any = None
    finalText: Any = None  # noqa: N815
    usage: Any = None


_record = msgspec.json.Decoder(_Record)


def sniff(head: SourceHead) -> bool:
    if head.root != "lines":
        return False
    if head.first.get("type") == "session_start" and "id" in head.first:
        return True
    return any(
        record.get("type") in _STREAM
        and ("session_id" in record or "sessionId" in record)
        and bool(record.keys() & {"toolName", "toolId", "finalText"})
        for record in head.records
    )


def read(source: Source, judge: Judge) -> Iterator[Session]:
    draft = SessionBuilder(source, judge, format=NAME, agent="droid")
    for _line, record in source.records(_record):
        at = parse_time(record.timestamp)
        if record.type == "session_start":
            draft.id, draft.project = string_of(record.id), string_of(record.cwd) or None
        elif record.type == "message" and record.message is not None:
            _take_blocks(draft, dict_of(record.message), at)
        else:
            _take_event(draft, record, at)
    if not draft.empty:
        yield draft.close()


def _take_blocks(draft: SessionBuilder, message: dict[str, Any], at: float | None) -> None:
    """Add the blocks of a stored message."""
    content = message.get("content")
    for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        kind = dict_of(block).get("type")
        if kind == "text":
            _take_text(draft, message.get("role"), string_of(block.get("text")), at)
        elif kind == "tool_use":
            arguments = parse_arguments(block.get("input"))
            draft.call(string_of(block.get("id")), string_of(block.get("name")), arguments, at)
        elif kind == "tool_result":
            text, flag = text_of(block.get("content")), block.get("is_error")
            code = _EXIT_CODE.match(text)
            signal = Signal(exit_code=int(code[1])) if code else Signal(failed=flag) if isinstance(flag, bool) else None
            draft.result(string_of(block.get("tool_use_id")), text, at, signal)


def _take_event(draft: SessionBuilder, record: _Record, at: float | None) -> None:
    """Add one event of a stream."""
    draft.id = draft.id or string_of(record.session_id) or string_of(record.sessionId)
    call_id = string_of(record.toolCallId) or string_of(record.id)
    if record.type == "system":
        draft.project, draft.model = string_of(record.cwd) or None, string_of(record.model) or None
    elif record.type == "message":
        _take_text(draft, record.role, string_of(record.text), at)
    elif record.type == "tool_call":
        draft.call(call_id, string_of(record.toolName), parse_arguments(record.parameters), at)
    elif record.type == "tool_result":
        draft.result(call_id, _join_outputs(record.value), at, _read_signal(record))
    elif record.type == "completion":
        draft.message("assistant", string_of(record.finalText), at)
        usage = dict_of(record.usage)
        draft.spend(
            Usage(
                input=count_of(usage.get("input_tokens")),
                output=count_of(usage.get("output_tokens")),
                cache_read=count_of(usage.get("cache_read_input_tokens")),
                cache_write=count_of(usage.get("cache_creation_input_tokens")),
            ),
            draft.model,
            at,
        )


def _take_text(draft: SessionBuilder, role: Any, text: str, at: float | None) -> None:
    if role == "user":
        text = _REMINDER.sub("", text)  # written by Droid, not by the person
    if text:
        draft.message("user" if role == "user" else "assistant", text, at)


def _join_outputs(value: Any) -> str:
    if isinstance(value, dict) and any(isinstance(value.get(name), str) for name in _OUTPUTS):
        return "\n".join(text for name in _OUTPUTS if isinstance(text := value.get(name), str) and text)
    return text_of(value)


def _read_signal(record: _Record) -> Signal | None:
    code = dict_of(record.value).get("exitCode")
    flag = record.isError if isinstance(record.isError, bool) else None
    if isinstance(code, int) and not isinstance(code, bool):
        return Signal(failed=flag, exit_code=code)
    return None if flag is None else Signal(failed=flag)
