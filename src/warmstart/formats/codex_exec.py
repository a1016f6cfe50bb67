"""`codex exec --json`: one event per line, without times and without the prompt.

A file may hold several runs. A second `thread.started` with the same id continues that session (item ids start again);
one with another id starts another session. `turn.completed.usage` is a running total, so the last one counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.formats.fields import parse_arguments, text_of, without_cached
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Arguments, Session, Signal, Usage
from warmstart.ports import Judge

NAME = "codex_exec"

_ITEMS = frozenset(("item.started", "item.updated", "item.completed"))
_CALLS = frozenset(("command_execution", "mcp_tool_call", "file_change", "web_search", "collab_tool_call"))


class _Error(msgspec.Struct, gc=False):
    message: str | None = None


class _Result(msgspec.Struct, gc=False):
    content: Any = None
    structured_content: Any = None


class _Item(msgspec.Struct, gc=False):
    id: str | None = None
    type: str | None = None
    text: str | None = None
    status: str | None = None
    command: str | None = None
    aggregated_output: str | None = None
    exit_code: int | None = None
    changes: list[Any] | None = None
    server: str | None = None
    tool: str | None = None
    arguments: Any = None
    result: _Result | None = None
    error: _Error | None = None
    query: str | None = None
    prompt: str | None = None


class _Tokens(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_output_tokens: int | None = None


class _Event(msgspec.Struct, gc=False):
    type: str | None = None
    thread_id: str | None = None
    item: _Item | None = None
    usage: _Tokens | None = None


_decoder = msgspec.json.Decoder(_Event)


def sniff(head: SourceHead) -> bool:
    return head.root in ("lines", "object") and any(_is_event(record) for record in head.records)


def _is_event(record: dict[str, Any]) -> bool:
    kind = record.get("type")
    if kind == "thread.started":
        return isinstance(record.get("thread_id"), str)
    if kind == "turn.completed":
        return isinstance(record.get("usage"), dict)
    item = record.get("item")
    return isinstance(kind, str) and kind in _ITEMS and isinstance(item, dict) and isinstance(item.get("type"), str)


def read(source: Source, judge: Judge) -> Iterator[Session]:
    threads: dict[str, _Thread] = {}
    thread: _Thread | None = None
    for _number, event in source.records(_decoder):
        if event.type == "thread.started" or thread is None:
            key = event.thread_id or ""
            thread = threads.get(key)
            if thread is None:
                thread = threads[key] = _Thread(SessionBuilder(source, judge, format=NAME, agent="codex", id=key))
            if event.type == "thread.started":
                thread.runs += 1
        thread.take(event)
    for thread in threads.values():
        yield from thread.sessions()


class _Thread:
    def __init__(self, draft: SessionBuilder) -> None:
        self.runs = 0
        self._draft = draft
        self._open: set[str] = set()

    def take(self, event: _Event) -> None:
        draft = self._draft
        if event.item is not None and event.type in _ITEMS:
            self._take_item(event.item, done=event.type == "item.completed")
        elif event.type == "turn.completed":
            draft.end_reason = None
            if event.usage is not None:
                draft.usage = _usage(event.usage)
        elif event.type == "turn.started":
            draft.end_reason = None
        elif event.type == "turn.failed" or event.type == "error":
            draft.end_reason = event.type

    def _take_item(self, item: _Item, *, done: bool) -> None:
        if item.type == "agent_message":
            if done:
                self._draft.message("assistant", item.text or "")
            return
        if item.type not in _CALLS:
            return
        call_id = item.id or ""
        if call_id and self.runs > 1:
            call_id = f"{call_id}#{self.runs}"
        if not call_id and not done:
            return  # without an id its completion could not be matched
        if call_id not in self._open:
            self._draft.call(call_id, _tool(item), _arguments(item))
            self._open.add(call_id)
        if done:
            self._open.discard(call_id)
        if done and item.type != "web_search":  # the events do not hold what a search found
            text, signal = _outcome(item)
            self._draft.result(call_id, text, None, signal)

    def sessions(self) -> Iterator[Session]:
        if self._draft.id or not self._draft.empty:
            yield self._draft.close()


def _tool(item: _Item) -> str:
    if item.type == "command_execution":
        return "shell"
    if item.type == "file_change":
        return "apply_patch"
    if item.type == "mcp_tool_call":
        return f"mcp__{item.server}__{item.tool}" if item.server else item.tool or "mcp"
    return item.tool or item.type or ""


def _arguments(item: _Item) -> Arguments:
    if item.type == "command_execution":
        return {"command": item.command or ""}
    if item.type == "file_change":
        return {"changes": item.changes or []}
    if item.type == "web_search":
        return {"query": item.query or ""}
    if item.type == "collab_tool_call":
        return {"prompt": item.prompt} if item.prompt else {}
    return parse_arguments(item.arguments)


def _outcome(item: _Item) -> tuple[str, Signal | None]:
    if item.status == "declined":
        return _text(item), Signal(status="rejected")
    if item.exit_code is not None:
        return _text(item), Signal(exit_code=item.exit_code)
    if item.status == "failed" or item.error is not None:
        return _text(item), Signal(failed=True)
    return _text(item), Signal(failed=False) if item.status == "completed" else None


def _text(item: _Item) -> str:
    if item.error is not None and item.error.message:
        return item.error.message
    if item.result is not None:
        content = item.result.content
        return text_of(content if content is not None else item.result.structured_content)
    return item.aggregated_output if item.aggregated_output is not None else item.status or ""


def _usage(total: _Tokens) -> Usage:
    return Usage(
        input=without_cached(total.input_tokens, total.cached_input_tokens),
        output=total.output_tokens,
        cache_read=total.cached_input_tokens,
        reasoning=total.reasoning_output_tokens,
    )
