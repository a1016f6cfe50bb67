"""Kimi Code: `~/.kimi-code/sessions/*/session_<id>/agents/<agent>/*.jsonl`, the wire log of one agent of a session.

The calls of a step are loop events, each with its result; a failed result has a flag, and a command its exit code in the
last line. The first agent of a session is `main`; others are its subagents.
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

NAME = "kimi"

_PREFIX = "session_"
_EXIT_CODE = re.compile(r"(?:^|\n)Command failed with exit code: (-?\d{1,10})\.?\s*$")
_TAIL = 200
_REFUSED = ("rejected", "denied")
_SIGNS = (
    "turn.prompt",
    "context.append_message",
    "context.append_loop_event",
    "tools.set_active_tools",
    "config.update",
)


class _Record(msgspec.Struct, gc=False):
    type: Any = None
    time: Any = None
    cwd: Any = None
    modelAlias: Any = None  # noqa: N815 - the names are the format's
    model: Any = None
    message: Any = None
    event: Any = None
    usage: Any = None
    toolCallId: Any = None  # noqa: N815
    result: Any = None


_record = msgspec.json.Decoder(_Record)


def sniff(head: SourceHead) -> bool:
    kinds = {string_of(record.get("type")) for record in head.records}
    if head.root != "lines":
        return False
    is_opened = head.first.get("type") == "metadata" and "protocol_version" in head.first
    return (is_opened and bool(kinds & {*_SIGNS})) or "context.append_loop_event" in kinds


def read(source: Source, judge: Judge) -> Iterator[Session]:
    reader = _Wire(SessionBuilder(source, judge, format=NAME, agent="kimi"))
    reader.name(source.path.parts)
    for _line, record in source.records(_record):
        reader.take(record)
    if not reader.draft.empty:
        yield reader.draft.close()


class _Wire:
    def __init__(self, draft: SessionBuilder) -> None:
        self.draft = draft
        self._refused: set[str] = set()  # calls that a person did not allow

    def name(self, parts: tuple[str, ...]) -> None:
        """Take the ids of session and agent from the folders of the file, where they are."""
        folder = next((part for part in parts if part.startswith(_PREFIX)), "")
        agent = parts[parts.index("agents") + 1] if "agents" in parts[:-1] else ""
        if folder and agent:
            session = folder.removeprefix(_PREFIX)
            self.draft.id = session if agent == "main" else f"{session}/{agent}"
            self.draft.parent = None if agent == "main" else session

    def take(self, record: _Record) -> None:
        """Add one record of the log."""
        at = parse_time(record.time)
        if record.type == "config.update":
            self.draft.project = string_of(record.cwd) or self.draft.project
            self.draft.model = string_of(record.modelAlias) or self.draft.model
        elif record.type == "context.append_message":
            self._take_message(dict_of(record.message), at)
        elif record.type == "context.append_loop_event":
            self._take_event(dict_of(record.event), at)
        elif record.type == "permission.record_approval_result":
            if dict_of(record.result).get("decision") in _REFUSED:
                self._refused.add(string_of(record.toolCallId))
        elif record.type == "usage.record":
            usage = dict_of(record.usage)
            counts = Usage(
                input=count_of(usage.get("inputOther")),
                output=count_of(usage.get("output")),
                cache_read=count_of(usage.get("inputCacheRead")),
                cache_write=count_of(usage.get("inputCacheCreation")),
            )
            self.draft.spend(counts, string_of(record.model) or None, at)

    def _take_message(self, message: dict[str, Any], at: float | None) -> None:
        is_own = dict_of(message.get("origin")).get("kind") in ("user", "system_trigger", None)
        is_user = message.get("role") == "user" and is_own
        self.draft.message("user" if is_user else "system", text_of(message.get("content")), at)

    def _take_event(self, event: dict[str, Any], at: float | None) -> None:
        kind, call_id = event.get("type"), string_of(event.get("toolCallId"))
        if kind == "content.part" and dict_of(event.get("part")).get("type") == "text":
            self.draft.message("assistant", string_of(event["part"].get("text")), at)
        elif kind == "tool.call":
            display = dict_of(event.get("display"))
            self.draft.project = self.draft.project or string_of(display.get("cwd")) or None
            self.draft.call(call_id, string_of(event.get("name")), parse_arguments(event.get("args")), at)
        elif kind == "tool.result":
            result = dict_of(event.get("result"))
            text = text_of(result.get("output"))
            self.draft.result(call_id, text, at, self._read_signal(call_id, result, text))
        elif kind == "step.end":
            self.draft.end_reason = string_of(event.get("finishReason")) or self.draft.end_reason

    def _read_signal(self, call_id: str, result: dict[str, Any], text: str) -> Signal:
        if call_id in self._refused:
            return Signal(status="rejected")
        is_error = result.get("isError") is True
        code = _EXIT_CODE.search(text[-_TAIL:]) if is_error else None
        return Signal(failed=is_error, exit_code=int(code[1]) if code else None)
