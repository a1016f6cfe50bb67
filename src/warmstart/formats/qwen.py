"""Qwen Code: `~/.qwen/projects/<project>/chats/<session>.jsonl`, subagents in `subagents/<session>/agent-*.jsonl`.

The envelope is Claude Code's, the messages have the parts of Gemini's API. Records that share a `uuid` are one message, whose
last usage counts. `toolCallResult.status` says how a call ended; a failed command may have the status "success" and its
exit code in the text. Messages of branches that a rewind left are kept, because they happened.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.formats.fields import count_of, dict_of, parse_arguments, parse_time, string_of, without_cached
from warmstart.formats.gemini_parts import find_result_text, find_spoken_text, is_refused, list_parts, make_signal
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Role, Session, Signal, Usage
from warmstart.ports import Judge

NAME = "qwen_code"

_TYPES = ("user", "assistant", "tool_result", "system")
_PERSONS = frozenset((None, "real_user"))  # values of `provenance`
_OTHERS = frozenset(("notification", "cron"))  # subtypes of user records that no person wrote
_SHELLS = frozenset(("run_shell_command", "shell"))


class _Message(msgspec.Struct, gc=False):
    parts: Any = None


class _Result(msgspec.Struct, gc=False):
    callId: str | None = None  # noqa: N815 - the names are the format's
    status: str | None = None
    errorType: str | None = None  # noqa: N815
    resultDisplay: Any = None  # noqa: N815


class _Record(msgspec.Struct, gc=False):
    uuid: str | None = None
    sessionId: str | None = None  # noqa: N815
    timestamp: str | float | None = None
    type: str | None = None
    subtype: str | None = None
    provenance: str | None = None
    cwd: str | None = None
    model: str | None = None
    message: _Message | None = None
    usageMetadata: dict[str, Any] | None = None  # noqa: N815
    toolCallResult: _Result | None = None  # noqa: N815
    systemPayload: Any = None  # noqa: N815
    agentId: str | None = None  # noqa: N815
    isSidechain: bool | None = None  # noqa: N815


_record = msgspec.json.Decoder(_Record)


def sniff(head: SourceHead) -> bool:
    return any(_is_ours(record) for record in head.records)


def _is_ours(record: Any) -> bool:
    """Return whether a line has Claude Code's envelope and Gemini's parts."""
    if not isinstance(record, dict) or str(record.get("type")) not in _TYPES or "sessionId" not in record:
        return False
    return "uuid" in record and (
        isinstance(dict_of(record.get("message")).get("parts"), list) or "systemPayload" in record
    )


def read(source: Source, judge: Judge) -> Iterator[Session]:
    reader = _Reader(SessionBuilder(source, judge, format=NAME, agent="qwen-code"))
    for _line, record in source.records(_record):
        reader.take(record)
    yield from reader.sessions()


class _Reader:
    def __init__(self, draft: SessionBuilder) -> None:
        self._draft = draft
        self._tools: dict[str, str] = {}  # names of calls without a result, by id
        self._answer: _Record | None = None  # the latest with a usage, which the next record may replace

    def take(self, record: _Record) -> None:
        at = parse_time(record.timestamp)
        self._learn(record)
        parts = record.message.parts if record.message is not None else None
        if record.type == "user":
            self._add_request(record, parts, at)
        elif record.type == "assistant":
            self._add_answer(record, parts, at)
        elif record.type == "tool_result":
            for part in list_parts(parts):
                if isinstance(answer := part.get("functionResponse"), dict):
                    self._add_result(record, answer, part, at)

    def _learn(self, record: _Record) -> None:
        draft = self._draft
        draft.project = draft.project or record.cwd
        if draft.id or not record.sessionId:
            return
        draft.id = record.sessionId
        if record.isSidechain:
            draft.id, draft.parent = f"{record.sessionId}/{record.agentId or 'subagent'}", record.sessionId

    def _add_request(self, record: _Record, parts: Any, at: float | None) -> None:
        """Add a message of the person; other messages in that role are the agent's own."""
        typed = dict_of(record.systemPayload).get("displayText")
        text = typed if isinstance(typed, str) and typed else find_spoken_text(parts)
        person = record.provenance in _PERSONS and record.subtype not in _OTHERS
        role: Role = "user" if person or record.isSidechain else "system"
        self._draft.message(role, text, at)

    def _add_answer(self, record: _Record, parts: Any, at: float | None) -> None:
        draft = self._draft
        draft.model = record.model or draft.model
        draft.message("assistant", find_spoken_text(parts), at)
        for part in list_parts(parts):
            if isinstance(call := part.get("functionCall"), dict):
                call_id, tool = string_of(call.get("id")), string_of(call.get("name"))
                self._tools[call_id] = tool
                draft.call(call_id, tool, parse_arguments(call.get("args")), at)
        if record.usageMetadata:
            if self._answer is not None and (record.uuid is None or self._answer.uuid != record.uuid):
                self._spend()
            self._answer = record

    def _add_result(self, record: _Record, answer: dict[str, Any], part: dict[str, Any], at: float | None) -> None:
        outcome = record.toolCallResult or _Result()
        call_id = string_of(answer.get("id")) or outcome.callId or ""
        tool = self._tools.pop(call_id, string_of(answer.get("name")))
        text = find_result_text([part])
        text = text or (outcome.resultDisplay if isinstance(outcome.resultDisplay, str) else "")
        self._draft.result(call_id, text, at, _find_signal(outcome, answer, text, is_shell=tool in _SHELLS))

    def _spend(self) -> None:
        if self._answer is not None and self._answer.usageMetadata:
            usage = _read_usage(self._answer.usageMetadata)
            self._draft.spend(usage, self._answer.model, parse_time(self._answer.timestamp))
        self._answer = None

    def sessions(self) -> Iterator[Session]:
        self._spend()
        if not self._draft.empty:
            yield self._draft.close()


def _find_signal(outcome: _Result, answer: dict[str, Any], text: str, *, is_shell: bool) -> Signal | None:
    """Return what a record says about a result. Subagents' records have no status: there an error has its own field."""
    if outcome.errorType == "execution_denied":
        return Signal(status="rejected" if is_refused(text) else "denied")
    failed = "error" in dict_of(answer.get("response"))
    status = outcome.status or ("error" if failed else "success")
    signal = make_signal("success" if is_shell and status == "error" else status, text, is_shell=is_shell)
    return Signal(failed=True) if status == "error" and signal == Signal(status="ok") else signal


def _read_usage(counts: dict[str, Any]) -> Usage:
    """Read Gemini's counts. The prompt includes tokens read from the cache; by the total, the output may include thoughts."""
    prompt, cached = count_of(counts.get("promptTokenCount")), count_of(counts.get("cachedContentTokenCount"))
    output, thoughts = count_of(counts.get("candidatesTokenCount")), count_of(counts.get("thoughtsTokenCount"))
    apart = thoughts or 0
    if output is not None and count_of(counts.get("totalTokenCount")) == (prompt or 0) + output:
        apart = 0
    return Usage(
        input=without_cached(prompt, cached),
        output=None if output is None else output + apart,
        cache_read=cached,
        reasoning=thoughts,
    )
