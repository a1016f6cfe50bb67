"""Hermes exports: the JSONL of `hermes sessions export`, one session with its `messages` per line.

The JSON snapshots of single sessions that older versions of Hermes keep are read too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.formats.chat import decode_whole, split_records
from warmstart.formats.hermes_rows import HermesMessage, HermesSession, Rows, describe, inherit_owner
from warmstart.formats.source import Source, SourceHead, is_list
from warmstart.model import Session, SessionOwner
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
    records = split_records(source)
    if records is None:
        yield from _read_document(source, judge)
        return
    owners: dict[str, SessionOwner] = {}
    for data, fragment, line in records:
        for record in decode_whole(source, data, _exported, line):
            rows = Rows(source, judge, NAME)
            rows.draft.fragment = fragment
            describe(rows.draft, record, source)
            rows.draft.owner = inherit_owner(record, rows.draft.owner, owners.get)
            owners[rows.draft.id] = rows.draft.owner
            for raw in _raw_list.decode(record.messages) if is_list(record.messages) else ():
                if row := source.decode(raw, _row, line):
                    rows.take(row)
            if not rows.draft.empty:
                yield rows.draft.close()


def _read_document(source: Source, judge: Judge) -> Iterator[Session]:
    """Read one session that is the whole file."""
    facts: dict[str, Any] = {}
    rows = Rows(source, judge, NAME)
    for key, raw, line in source.walk("messages"):
        if key == "messages":
            if row := source.decode(raw, _row, line):
                rows.take(row)
        elif key in _FACTS:
            facts[key] = source.decode(raw, _any, line)
    if not rows.draft.empty:
        record = msgspec.convert(facts, HermesSession)
        describe(rows.draft, record, source)
        rows.draft.owner = inherit_owner(record, rows.draft.owner, lambda _parent: None)
        yield rows.draft.close()
