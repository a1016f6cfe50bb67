"""ShareGPT conversations, such as Hermes' `trajectory_samples.jsonl`: `{conversations: [{from, value}], completed}`.

The agent's text holds its calls as `<tool_call>{json}</tool_call>`; the next turn holds the results as
`<tool_response>`, in the same order. Only the responses have ids. `completed` says how the run ended, not whether it
succeeded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.formats.chat import ROLES, decode_whole, digest, split_records
from warmstart.formats.fields import parse_arguments, parse_time, string_of, text_of
from warmstart.formats.labels import label_beside, wrapped_label
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Arguments, Role, Session
from warmstart.ports import Judge

NAME = "sharegpt"

_SPEAKERS: dict[str, Role] = {**ROLES, "gpt": "assistant", "chatgpt": "assistant", "bing": "assistant"}
_RESULTS = ("tool", "observation", "function_response")
_think = re.compile(r"<think>.*?</think>|<REASONING_SCRATCHPAD>.*?</REASONING_SCRATCHPAD>", re.S)
_json = json.JSONDecoder(strict=False)


class _Turn(msgspec.Struct, gc=False):
    speaker: Any = msgspec.field(name="from", default=None)
    value: Any = None


class _Conversation(msgspec.Struct, gc=False):
    conversations: Any = None
    id: Any = None
    session_id: Any = None
    model: Any = None
    timestamp: Any = None
    completed: Any = None
    partial: Any = None
    resolved: Any = None
    label: Any = None
    success: Any = None
    reward: Any = None
    score: Any = None


_conversation = msgspec.json.Decoder(_Conversation)
_any = msgspec.json.Decoder(Any)


def sniff(head: SourceHead) -> bool:
    turns = head.first.get("conversations")
    return isinstance(turns, list) and any(isinstance(t, dict) and "from" in t and "value" in t for t in turns[:4])


def read(source: Source, judge: Judge) -> Iterator[Session]:
    records = split_records(source)
    if records is None:
        yield from _read_session(source, judge, _read_document(source), "", b"")
        return
    for data, fragment, line in records:
        for record in decode_whole(source, data, _conversation, line):
            yield from _read_session(source, judge, record, fragment, data)


def _read_document(source: Source) -> _Conversation:
    """Read one conversation that is the whole file."""
    facts: dict[str, Any] = {"conversations": []}
    for key, raw, line in source.walk("conversations"):
        value = source.decode(raw, _any, line)
        if key == "conversations":
            facts[key].append(value)
        else:
            facts[key] = value
    return msgspec.convert(facts, _Conversation)


def _read_session(
    source: Source, judge: Judge, record: _Conversation, fragment: str, data: bytes | msgspec.Raw
) -> Iterator[Session]:
    draft = SessionBuilder(source, judge, format=NAME, agent="sharegpt" if record.completed is None else "hermes")
    draft.fragment = fragment
    draft.id = string_of(record.session_id) or string_of(record.id) or (digest(data) if data else "")
    draft.model = record.model if isinstance(record.model, str) else None
    draft.label = wrapped_label(record)
    if draft.label is None and draft.id:
        draft.label = label_beside(source, draft.id)
    if isinstance(record.completed, bool):
        draft.end_reason = "completed" if record.completed else "partial" if record.partial is True else "failed"
    draft.ended = parse_time(record.timestamp)
    turns = record.conversations if isinstance(record.conversations, list) else []
    _take_turns(draft, [msgspec.convert(turn, _Turn) for turn in turns if isinstance(turn, dict)])
    if not draft.empty:
        yield draft.close()


def _take_turns(draft: SessionBuilder, turns: list[_Turn]) -> None:
    for place, turn in enumerate(turns):
        text = text_of(turn.value)
        if turn.speaker in _RESULTS:
            for call_id, result in _responses(text):
                draft.result(call_id, result)
        elif turn.speaker == "function_call":
            draft.call("", *_called(text))
        elif isinstance(turn.speaker, str) and (speaker := _SPEAKERS.get(turn.speaker)):
            if speaker != "assistant":
                draft.message(speaker, text)
                continue
            spoken, calls = _split(_think.sub("", text), "tool_call")
            draft.message("assistant", spoken)
            following = turns[place + 1] if place + 1 < len(turns) else _Turn()
            answered = _responses(text_of(following.value)) if following.speaker in _RESULTS else []
            ids = [call_id for call_id, _text in answered] if len(answered) == len(calls) else []
            for number, call in enumerate(calls):
                draft.call(ids[number] if ids else "", *_called(call))


def _split(text: str, tag: str) -> tuple[str, list[str]]:
    """Return the text outside the tags and the text inside each. JSON inside is parsed: it may hold the closing tag."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    outside: list[str] = []
    inside: list[str] = []
    at = 0
    while (start := text.find(opening, at)) >= 0:
        outside.append(text[at:start])
        begin = start + len(opening)
        blank = len(text[begin:]) - len(text[begin:].lstrip())
        try:
            _value, end = _json.raw_decode(text, begin + blank)
        except (json.JSONDecodeError, RecursionError):
            end = begin
        close = text.find(closing, end)
        inside.append(text[begin : close if close >= 0 else len(text)].strip())
        at = close + len(closing) if close >= 0 else len(text)
    outside.append(text[at:])
    return "".join(outside).strip(), inside


def _called(text: str) -> tuple[str, Arguments]:
    call = parse_arguments(text)
    if not isinstance(call, dict):
        return "", text
    return string_of(call.get("name")), parse_arguments(call.get("arguments", call.get("parameters")))


def _responses(text: str) -> list[tuple[str, str]]:
    outside, inside = _split(text, "tool_response")
    return [_response(part) for part in inside] or [("", outside)]


def _response(text: str) -> tuple[str, str]:
    response = parse_arguments(text)
    if not isinstance(response, dict) or "content" not in response:
        return "", text
    content = response["content"]
    whole = content if isinstance(content, str) else msgspec.json.encode(content).decode()
    return string_of(response.get("tool_call_id")), whole
