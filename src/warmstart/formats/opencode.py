"""OpenCode exports: the JSON document of `opencode export`, one session with its messages and their parts.

A part of the type `tool` holds a call with its state. A failed command has the state `completed` and its exit code in
the metadata; other tools that fail, and calls that a person refused, have the state `error`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from warmstart.formats.advice import take_advice
from warmstart.formats.fields import count_of, dict_of, dollars_of, parse_arguments, parse_time, string_of
from warmstart.formats.lenient import DECODE_ERRORS
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Session, Signal, Usage
from warmstart.ports import Judge

NAME = "opencode_export"

_OURS = "warmstart"  # the key under which our plugin records what it added
_ABORTED = "User aborted the command"
_TIMED_OUT = "terminated command after exceeding timeout"
_OPENING = re.compile(r'[,{]\s*"messages"\s*:\s*\[\s*\{\s*"info"\s*:\s*\{')
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


class _Times(msgspec.Struct, gc=False):
    created: Any = None
    start: Any = None
    end: Any = None


class _Metadata(msgspec.Struct, gc=False):
    exit: Any = msgspec.UNSET
    interrupted: Any = None
    output: Any = None
    warmstart: Any = None


class _State(msgspec.Struct, gc=False):
    """The state of a call; anything of another shape is left out of it."""

    status: Any = None
    input: Any = None
    output: Any = None
    error: Any = None
    time: _Times | None = None
    metadata: _Metadata | None = None


class _PlainMetadata(_Metadata, gc=False):
    output: msgspec.Raw = msgspec.Raw()  # the same text again


class _PlainState(_State, gc=False):
    metadata: _PlainMetadata | None = None


class _PlainInfo(Info, gc=False):
    summary: msgspec.Raw = msgspec.Raw()  # of a person's message: all changes that the answer made


class _PlainPart(StoredPart, gc=False):
    state: _PlainState | None = None


class _PlainMessage(msgspec.Struct, gc=False):
    """A message in which all is of the expected shape: much less of it has to be decoded."""

    info: _PlainInfo | None = None
    parts: list[_PlainPart] | None = None


_session = msgspec.json.Decoder(_Session)
_message = msgspec.json.Decoder(_Message)
_plain_message = msgspec.json.Decoder(_PlainMessage)


def sniff(head: SourceHead) -> bool:
    info, messages = head.first.get("info"), head.first.get("messages")
    if head.root != "object" or not isinstance(info, dict):
        return False
    if "id" not in info or not info.keys() & {"directory", "projectID", "slug"}:
        return False
    if not isinstance(messages, list):  # the first message may be longer than the head
        return _OPENING.search(head.text) is not None
    return all(isinstance(message, dict) and "parts" in message for message in messages[:8])


def read(source: Source, judge: Judge) -> Iterator[Session]:
    messages = Messages(source, judge, NAME)
    for key, raw, line in source.walk("messages"):
        if key == "info" and (session := source.decode(raw, _session, line)):
            messages.describe(string_of(session.id), session.directory, session.parentID, dict_of(session.time))
        elif key == "messages" and (message := _decode_message(source, raw, line)):
            messages.take(message.info or Info(), message.parts or [])
    if not messages.draft.empty:
        yield messages.draft.close()


def _decode_message(source: Source, raw: bytes | msgspec.Raw, line: int | None) -> _Message | _PlainMessage | None:
    try:
        return _plain_message.decode(raw)
    except DECODE_ERRORS:
        return source.decode(raw, _message, line)


class Messages:
    """The messages of one session, from an export or the database, added to a session builder."""

    def __init__(self, source: Source, judge: Judge, name: str) -> None:
        self.draft = SessionBuilder(source, judge, format=name, agent="opencode")

    def describe(self, session: str, directory: Any, parent: Any, time: dict[str, Any]) -> None:
        """Set what is known of the session itself."""
        draft = self.draft
        draft.id, draft.project, draft.parent = session, string_of(directory) or None, string_of(parent) or None
        draft.started = parse_time(time.get("created"))

    def take(self, info: Info, parts: Sequence[StoredPart]) -> None:
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
            self.draft.message("system" if _is_true(info.summary) else "assistant", string_of(part.text), at)

    def _take_call(self, part: StoredPart, at: float | None) -> None:
        state, call_id = _read_state(part.state), string_of(part.callID)
        time, metadata = state.time or _Times(), state.metadata or _Metadata()
        self.draft.call(call_id, string_of(part.tool), parse_arguments(state.input), parse_time(time.start) or at)
        status = state.status
        if status not in ("completed", "error"):
            return
        text = string_of(state.output if status == "completed" else state.error)
        if status == "error" and metadata.interrupted is True:
            text = _read_output(metadata.output) or text
        text = take_advice(self.draft, call_id, text, metadata.warmstart)
        signal = _read_signal(status, metadata, text)
        self.draft.result(call_id, text, parse_time(time.end) or at, signal)

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


def _is_true(value: Any) -> bool:
    return value is True or (isinstance(value, msgspec.Raw) and bytes(value) == b"true")


def _read_state(state: Any) -> _State:
    if isinstance(state, _State):
        return state
    fields = dict_of(state)
    time, metadata = dict_of(fields.get("time")), dict_of(fields.get("metadata"))
    return _State(
        status=fields.get("status"),
        input=fields.get("input"),
        output=fields.get("output"),
        error=fields.get("error"),
        time=_Times(start=time.get("start"), end=time.get("end")),
        metadata=_Metadata(
            exit=metadata.get("exit", msgspec.UNSET),
            interrupted=metadata.get("interrupted"),
            output=metadata.get("output"),
            warmstart=metadata.get(_OURS),
        ),
    )


def _read_output(output: Any) -> str:
    if isinstance(output, msgspec.Raw):
        return string_of(msgspec.json.decode(output)) if bytes(output) else ""
    return string_of(output)


def _read_signal(status: str, metadata: _Metadata, text: str) -> Signal | None:
    if status == "error":
        return Signal(status="cancelled") if metadata.interrupted is True else Signal(failed=True)
    code = metadata.exit
    if code is msgspec.UNSET:
        return Signal(failed=False)
    if isinstance(code, int) and not isinstance(code, bool):
        return Signal(exit_code=code)
    if _ABORTED in text[-_TAIL:]:
        return Signal(status="cancelled")
    return Signal(failed=True) if _TIMED_OUT in text[-_TAIL:] else None
