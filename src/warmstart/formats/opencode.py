"""OpenCode exports: the JSON document of `opencode export`, one session with its messages and their parts.

A part of the type `tool` holds a call with its state. A failed command has the state `completed` and its exit code in
the metadata; other tools that fail, and calls that a person refused, have the state `error`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.formats.advice import take_advice
from warmstart.formats.fields import count_of, dict_of, dollars_of, parse_arguments, parse_time, string_of
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Session, Signal, Usage
from warmstart.ports import Judge

NAME = "opencode_export"

_OURS = "warmstart"  # the key under which our plugin records what it added
_ABORTED = "User aborted the command"
_TIMED_OUT = "terminated command after exceeding timeout"
_TAIL = 400  # characters at the end of a result, where OpenCode puts its own words


class Info(msgspec.Struct, gc=False):
    """A message without its parts."""

    id: Any = None
    role: Any = None
    time: Any = None
    modelID: Any = None  # noqa: N815 - the names are the format's
    model: Any = None
    tokens: Any = None
    cost: Any = None
    finish: Any = None
    summary: Any = None
    error: Any = None


class StoredPart(msgspec.Struct, gc=False):
    """A piece of a message: text, a tool call, the tokens of a step, and more that is not read."""

    type: Any = None
    text: Any = None
    synthetic: Any = None
    ignored: Any = None
    tool: Any = None
    callID: Any = None  # noqa: N815
    state: Any = None
    tokens: Any = None
    cost: Any = None


class _Session(msgspec.Struct, gc=False):
    id: Any = None
    directory: Any = None
    parentID: Any = None  # noqa: N815
    time: Any = None


class _Message(msgspec.Struct, gc=False):
    info: Info | None = None
    parts: list[StoredPart] | None = None


_session = msgspec.json.Decoder(_Session)
_message = msgspec.json.Decoder(_Message)


def sniff(head: SourceHead) -> bool:
    info, messages = head.first.get("info"), head.first.get("messages")
    if head.root != "object" or not isinstance(info, dict) or not isinstance(messages, list):
        return False
    if "id" not in info or not info.keys() & {"directory", "projectID", "slug"}:
        return False
    return all(isinstance(message, dict) and "parts" in message for message in messages[:8])


def read(source: Source, judge: Judge) -> Iterator[Session]:
    messages = Messages(source, judge, NAME)
    for key, raw, line in source.walk("messages"):
        if key == "info" and (session := source.decode(raw, _session, line)):
            messages.describe(string_of(session.id), session.directory, session.parentID, dict_of(session.time))
        elif key == "messages" and (message := source.decode(raw, _message, line)):
            messages.take(message.info or Info(), message.parts or [])
    if not messages.draft.empty:
        yield messages.draft.close()


class Messages:
    """The messages of one session, from an export or the database, added to a session builder."""

    def __init__(self, source: Source, judge: Judge, name: str) -> None:
        self.draft = SessionBuilder(source, judge, format=name, agent="opencode")

    def describe(self, session: str, directory: Any, parent: Any, time: dict[str, Any]) -> None:
        """Set what is known of the session itself."""
        draft = self.draft
        draft.id, draft.project, draft.parent = session, string_of(directory) or None, string_of(parent) or None
        draft.started = parse_time(time.get("created"))

    def take(self, info: Info, parts: list[StoredPart]) -> None:
        """Add a message with its parts."""
        at = parse_time(dict_of(info.time).get("created"))
        model = string_of(info.modelID) or string_of(dict_of(info.model).get("modelID"))
        self.draft.model = model or self.draft.model
        reported = False
        for part in parts:
            if part.type == "text":
                self._take_text(info, part, at)
            elif part.type == "tool":
                self._take_call(part, at)
            elif part.type == "step-finish":
                reported = self._spend(part.tokens, part.cost, model, at) or reported
        if info.role == "assistant":
            self.draft.end_reason = string_of(dict_of(info.error).get("name")) or string_of(info.finish) or None
            if not reported:
                self._spend(info.tokens, info.cost, model, at)

    def _take_text(self, info: Info, part: StoredPart, at: float | None) -> None:
        if part.ignored or part.synthetic:  # written by OpenCode or a plugin, not by the person
            return
        if info.role == "user":
            self.draft.message("user", string_of(part.text), at)
        else:  # a summary replaces the messages of a compaction
            self.draft.message("system" if info.summary is True else "assistant", string_of(part.text), at)

    def _take_call(self, part: StoredPart, at: float | None) -> None:
        state, call_id = dict_of(part.state), string_of(part.callID)
        time = dict_of(state.get("time"))
        self.draft.call(
            call_id, string_of(part.tool), parse_arguments(state.get("input")), parse_time(time.get("start")) or at
        )
        status, metadata = state.get("status"), dict_of(state.get("metadata"))
        if status not in ("completed", "error"):
            return
        text = string_of(state.get("output") if status == "completed" else state.get("error"))
        if status == "error" and metadata.get("interrupted") is True:
            text = string_of(metadata.get("output")) or text
        text = take_advice(self.draft, call_id, text, metadata.get(_OURS))
        signal = _read_signal(status, metadata, text)
        self.draft.result(call_id, text, parse_time(time.get("end")) or at, signal)

    def _spend(self, tokens: Any, cost: Any, model: str, at: float | None) -> bool:
        """Add the tokens of an answer; return whether there are any."""
        counts = dict_of(tokens)
        output, reasoning = count_of(counts.get("output")), count_of(counts.get("reasoning"))
        usage = Usage(
            input=count_of(counts.get("input")),
            output=None if output is None else output + (reasoning or 0),  # OpenCode counts them apart
            cache_read=count_of(dict_of(counts.get("cache")).get("read")),
            cache_write=count_of(dict_of(counts.get("cache")).get("write")),
            reasoning=reasoning,
            cost=dollars_of(cost),
        )
        self.draft.spend(usage, model or None, at)
        return usage != Usage()


def _read_signal(status: str, metadata: dict[str, Any], text: str) -> Signal | None:
    if status == "error":
        return Signal(status="cancelled") if metadata.get("interrupted") is True else Signal(failed=True)
    if "exit" not in metadata:
        return Signal(failed=False)
    code = metadata["exit"]
    if isinstance(code, int) and not isinstance(code, bool):
        return Signal(exit_code=code)
    if _ABORTED in text[-_TAIL:]:
        return Signal(status="cancelled")
    return Signal(failed=True) if _TIMED_OUT in text[-_TAIL:] else None
