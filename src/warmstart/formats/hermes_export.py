"""Hermes exports: `hermes sessions export`, JSONL with a session's row and its `messages[]` per line.

The JSON snapshots of single sessions that older versions keep are read too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.formats.chat import decode_whole
from warmstart.formats.hermes_rows import HermesMessage, HermesSession, Rows, describe
from warmstart.formats.openai_chat import by_line
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Session
from warmstart.ports import Judge

NAME = "hermes_export"

_NONE = msgspec.Raw()


class _Exported(HermesSession, gc=False):
    messages: msgspec.Raw = _NONE


_exported = msgspec.json.Decoder(_Exported)
_row = msgspec.json.Decoder(HermesMessage)
_any = msgspec.json.Decoder(Any)
_raw_list = msgspec.json.Decoder(list[msgspec.Raw])
_FACTS = frozenset(HermesSession.__struct_fields__)


def sniff(head: SourceHead) -> bool:
    return bool(head.records) and _is_session(head.first)


def _is_session(record: dict[str, Any]) -> bool:
    messages = record.get("messages")
    if not isinstance(messages, list) or any(isinstance(m, dict) and "role" not in m for m in messages[:4]):
        return False
    exported = {"id", "source", "started_at", "parent_session_id"} <= record.keys()
    return exported or {"session_id", "session_start", "last_updated"} <= record.keys()


def read(source: Source, judge: Judge) -> Iterator[Session]:
    if by_line(source):
        for number, line in source.lines():
            for record in decode_whole(source, line, _exported, number) if line.strip() else ():
                rows = _start(source, judge, record)
                rows.draft.fragment = f"L{number}"
                yield from _finish(rows, source, record.messages, number)
    elif source.head.root == "list":
        for index, (_key, raw, at) in enumerate(source.walk()):
            for record in decode_whole(source, raw, _exported, at):
                rows = _start(source, judge, record)
                rows.draft.fragment = f"/{index}"
                yield from _finish(rows, source, record.messages, at)
    else:
        yield from _read_document(source, judge)


def _start(source: Source, judge: Judge, record: HermesSession) -> Rows:
    rows = Rows(source, judge, NAME)
    describe(rows.draft, record, source)
    return rows


def _finish(rows: Rows, source: Source, messages: msgspec.Raw, line: int | None) -> Iterator[Session]:
    for raw in _raw_list.decode(messages) if bytes(memoryview(messages)[:1]) == b"[" else ():
        if row := source.decode(raw, _row, line):
            rows.take(row)
    if not rows.draft.empty:
        yield rows.draft.close()


def _read_document(source: Source, judge: Judge) -> Iterator[Session]:
    """One session over many lines."""
    facts: dict[str, Any] = {}
    rows = Rows(source, judge, NAME)
    for key, raw, line in source.walk("messages"):
        if key == "messages":
            if row := source.decode(raw, _row, line):
                rows.take(row)
        elif key in _FACTS:
            facts[key] = source.decode(raw, _any, line)
    if not rows.draft.empty:
        describe(rows.draft, msgspec.convert(facts, HermesSession), source)
        yield rows.draft.close()
