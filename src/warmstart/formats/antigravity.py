"""Antigravity: the JSONL log of its command line, one step per line.

Calls stand in the answers of the planner and have no ids; the steps that follow are their results, in the same order. A
step that failed has the status `ERROR`; else a result is judged by its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.formats.fields import dict_of, parse_arguments, parse_time, string_of, text_of
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Session, Signal
from warmstart.ports import Judge

NAME = "antigravity"

_REQUEST = re.compile(r"<USER_REQUEST>\s*(.*?)\s*</USER_REQUEST>", re.DOTALL)
_MODEL = re.compile(r"setting `Model Selection` from .{0,80}? to (.{1,80}?)\.\s*\n")
_STATES = {
    "ERROR": Signal(failed=True),
    "CANCELED": Signal(status="cancelled"),
    "CANCELLED": Signal(status="cancelled"),
}


class _Step(msgspec.Struct, gc=False):
    source: Any = None
    type: Any = None
    status: Any = None
    created_at: Any = None
    content: Any = None
    tool_calls: Any = None


_step = msgspec.json.Decoder(_Step)


def sniff(head: SourceHead) -> bool:
    return head.root == "lines" and any(
        "step_index" in record and "source" in record and "type" in record and "status" in record
        for record in head.records
    )


def read(source: Source, judge: Judge) -> Iterator[Session]:
    draft = SessionBuilder(source, judge, format=NAME, agent="antigravity")
    waiting: list[str] = []  # ids of calls whose results have not come yet
    for line, step in source.records(_step):
        at = parse_time(step.created_at)
        text = text_of(step.content)
        if step.type == "USER_INPUT":
            request = _REQUEST.search(text)
            if model := _MODEL.search(text):
                draft.model = model[1]
            draft.message("user", request[1] if request else text, at)
        elif step.type == "PLANNER_RESPONSE":
            if text:
                draft.message("assistant", text, at)
            waiting = [
                _take_call(draft, call, f"{line}-{place}", at) for place, call in enumerate(_list(step.tool_calls))
            ]
        elif step.source == "MODEL" and waiting:
            draft.result(waiting.pop(0), text, at, _STATES.get(string_of(step.status)))
    if not draft.empty:
        yield draft.close()


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _take_call(draft: SessionBuilder, call: Any, call_id: str, at: float | None) -> str:
    fields = dict_of(call)
    arguments = {name: _unquote(value) for name, value in dict_of(fields.get("args")).items()}
    draft.call(call_id, string_of(fields.get("name")), arguments, at)
    return call_id


def _unquote(value: Any) -> Any:
    """Return an argument, whose value is JSON in a string."""
    if not isinstance(value, str) or not value.startswith('"'):
        return value
    decoded = parse_arguments(f'{{"value": {value}}}')
    return decoded.get("value", value) if isinstance(decoded, dict) else value
