"""Continue: `~/.continue/sessions/<id>.json`, written by its editors and by its command line `cn`.

A tool call that was `errored` has failed; one that was `canceled` a person rejected, or a policy denied. `done` proves nothing
for a shell in an editor: its result is judged by its text. Follows files that `cn` 1.5.47 wrote and its source.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from warmstart.calls.tools import CODE, TERMINAL, base_tool
from warmstart.formats.chat import ROLES
from warmstart.formats.fields import (
    count_of,
    dict_of,
    dollars_of,
    parse_arguments,
    parse_time,
    string_of,
    text_of,
    without_cached,
)
from warmstart.formats.lenient import DECODE_ERRORS
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Session, Signal, Usage
from warmstart.ports import Judge

NAME = "continue"

_INDEX = "sessions.json"
_MAX_INDEX = 16 << 20
_DENIED = "Command blocked by security policy"
_ENDED = ("done", "errored", "canceled")


class _Item(msgspec.Struct, gc=False):
    message: Any = None
    toolCallStates: Any = None  # noqa: N815
    toolCallState: Any = None  # noqa: N815  # old versions: one call per message


_item = msgspec.json.Decoder(_Item)
_any = msgspec.json.Decoder(Any)


def sniff(head: SourceHead) -> bool:
    first = head.first
    history = first.get("history")
    if head.root != "object" or "sessionId" not in first or not isinstance(history, list):
        return False
    return "workspaceDirectory" in first or (bool(history) and isinstance(dict_of(history[0]).get("message"), dict))


def read(source: Source, judge: Judge) -> Iterator[Session]:
    reader = _Reader(source, judge)
    draft = reader.draft
    for key, raw, line in source.walk("history"):
        if key == "history":
            if item := source.decode(raw, _item, line):
                reader.take(item)
        elif key == "sessionId":
            draft.id = string_of(source.decode(raw, _any, line))
        elif key == "workspaceDirectory":
            draft.project = _folder(string_of(source.decode(raw, _any, line)))
        elif key == "chatModelTitle":
            draft.model = draft.model or string_of(source.decode(raw, _any, line)) or None
        elif key == "usage":
            draft.usage = _totals(dict_of(source.decode(raw, _any, line)))
    if draft.empty:
        return
    draft.started = _find_start(source, draft.id)
    yield draft.close()


class _Reader:
    def __init__(self, source: Source, judge: Judge) -> None:
        self.draft = SessionBuilder(source, judge, format=NAME, agent="continue")
        self._states: dict[str, dict[str, Any]] = {}  # of calls whose result follows as a message

    def take(self, item: _Item) -> None:
        """Add a message with its calls and their results."""
        message = dict_of(item.message)
        role = string_of(message.get("role"))
        if role == "tool":
            self._add_answer(message)
            return
        if role in ROLES:
            self.draft.message(ROLES[role], text_of(message.get("content")))
        self._spend(dict_of(message.get("usage")))
        states = item.toolCallStates if isinstance(item.toolCallStates, list) else [item.toolCallState]
        known = {string_of(dict_of(state).get("toolCallId")): dict_of(state) for state in states if state}
        calls = message.get("toolCalls")
        for call in calls if isinstance(calls, list) else ():
            known.setdefault(string_of(dict_of(call).get("id")), {"toolCall": call})
        for call_id, state in known.items():
            self._add_call(call_id, state)

    def _add_call(self, call_id: str, state: dict[str, Any]) -> None:
        function = dict_of(dict_of(state.get("toolCall")).get("function"))
        arguments = parse_arguments(function.get("arguments"))
        self.draft.call(call_id, string_of(function.get("name")), arguments)
        output = state.get("output")
        if state.get("status") in _ENDED and isinstance(output, list):
            self._add_result(call_id, text_of(output), state)
        else:
            self._states[call_id] = state

    def _add_answer(self, message: dict[str, Any]) -> None:
        call_id = string_of(message.get("toolCallId"))
        if self.draft.find_open(call_id):  # otherwise the call's state has told the result
            self._add_result(call_id, text_of(message.get("content")), self._states.get(call_id, {}))

    def _add_result(self, call_id: str, text: str, state: dict[str, Any]) -> None:
        call = self.draft.find_open(call_id)
        shell = call is not None and base_tool(call.tool) in (TERMINAL, CODE)
        signal: Signal | None = None
        if state.get("status") == "errored":
            signal = Signal(failed=True)
        elif state.get("status") == "canceled":
            signal = Signal(status="denied" if text.startswith(_DENIED) else "rejected")
        elif state.get("status") == "done" and not shell:
            signal = Signal(failed=False)
        self.draft.result(call_id, text, None, signal)

    def _spend(self, usage: dict[str, Any]) -> None:
        if not usage:
            return
        details = dict_of(usage.get("prompt_tokens_details"))
        cached, written = count_of(details.get("cached_tokens")), count_of(details.get("cache_write_tokens"))
        model = string_of(usage.get("model")) or None
        self.draft.model = model or self.draft.model
        spent = Usage(
            input=without_cached(count_of(usage.get("prompt_tokens")), (cached or 0) + (written or 0)),
            output=count_of(usage.get("completion_tokens")),
            cache_read=cached,
            cache_write=written,
        )
        self.draft.spend(spent, model)


def _totals(usage: dict[str, Any]) -> Usage | None:
    cost = dollars_of(usage.get("totalCost"))
    return Usage(cost=cost) if cost else None


def _folder(place: str) -> str | None:
    """Return a folder that an editor names by its URI."""
    if place.startswith("file://"):
        path = unquote(urlsplit(place).path)
        return path[1:] if path[2:3] == ":" else path
    return place or None


def _find_start(source: Source, session: str) -> float | None:
    """Return when a session began, from the list of sessions beside the file: the file itself has no times."""
    path = source.path.parent / _INDEX
    try:
        if not path.is_file() or path.stat().st_size > _MAX_INDEX:
            return None
        listed = _any.decode(path.read_bytes())
    except (OSError, *DECODE_ERRORS):
        return None
    entries = (dict_of(entry) for entry in listed) if isinstance(listed, list) else ()
    created = next((entry.get("dateCreated") for entry in entries if entry.get("sessionId") == session), None)
    return parse_time(
        int(created) if isinstance(created, str) and created.isdecimal() and len(created) < 20 else created
    )
