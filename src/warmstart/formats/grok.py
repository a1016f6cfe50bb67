"""Grok CLI: `chat_history.jsonl` of a session, with `summary.json` beside it, which names the session and its folder.

A result has no flag, so it is judged by its text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.formats.fields import dict_of, parse_arguments, parse_time, string_of, text_of
from warmstart.formats.lenient import DECODE_ERRORS
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Session
from warmstart.ports import Judge

NAME = "grok"

_SUMMARY = 1 << 20  # bytes of summary.json that are read


class _Record(msgspec.Struct, gc=False):
    type: Any = None
    content: Any = None
    synthetic_reason: Any = None
    tool_calls: Any = None
    tool_call_id: Any = None
    model_id: Any = None


_record = msgspec.json.Decoder(_Record)


def sniff(head: SourceHead) -> bool:
    if head.root != "lines":
        return False
    return any(
        (record.get("type") == "assistant" and "model_id" in record and "tool_calls" in record)
        or (record.get("type") == "user" and "prompt_index" in record and "message" not in record)
        or record.get("type") == "backend_tool_call"
        for record in head.records
    )


def read(source: Source, judge: Judge) -> Iterator[Session]:
    draft = SessionBuilder(source, judge, format=NAME, agent="grok")
    _describe(draft, _read_summary(source))
    for _line, record in source.records(_record):
        _take(draft, record)
    if not draft.empty:
        yield draft.close()


def _read_summary(source: Source) -> dict[str, Any]:
    """Return the summary beside the file; {} where there is none that can be read."""
    if not source.local:
        return {}
    try:
        with source.path.with_name("summary.json").open("rb") as stream:
            return dict_of(msgspec.json.decode(stream.read(_SUMMARY)))
    except (OSError, ValueError, *DECODE_ERRORS):
        return {}


def _describe(draft: SessionBuilder, summary: dict[str, Any]) -> None:
    info = dict_of(summary.get("info"))
    draft.id, draft.project = string_of(info.get("id")), string_of(info.get("cwd")) or None
    draft.started, draft.ended = parse_time(summary.get("created_at")), parse_time(summary.get("updated_at"))
    draft.parent = string_of(summary.get("parent_session_id")) or None


def _take(draft: SessionBuilder, record: _Record) -> None:
    if record.type == "user":
        draft.message("system" if record.synthetic_reason else "user", text_of(record.content))
    elif record.type == "assistant":
        draft.model = string_of(record.model_id) or draft.model
        if text := text_of(record.content):
            draft.message("assistant", text)
        for call in record.tool_calls if isinstance(record.tool_calls, list) else ():
            fields = dict_of(call)
            draft.call(
                string_of(fields.get("id")), string_of(fields.get("name")), parse_arguments(fields.get("arguments"))
            )
    elif record.type == "tool_result":
        draft.result(string_of(record.tool_call_id), text_of(record.content))
