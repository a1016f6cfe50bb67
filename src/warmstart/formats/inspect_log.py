"""Inspect (UK AISI): evaluation logs, `logs/*.eval` (a zip archive) or `.json`; each sample is a session.

A tool message's `error` is the failure; a sandbox command that fails without one is judged by its text. The label is the
sample's score, where all scorers agree on correct (`C`, 1) or incorrect (`I`, 0).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec

from warmstart.errors import SourceError
from warmstart.formats.archive import Archive, list_members
from warmstart.formats.chat import Chat, ChatMessage, decode_whole
from warmstart.formats.fields import count_of, dict_of, dollars_of, parse_time, string_of, text_of
from warmstart.formats.labels import as_label
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead, is_list
from warmstart.model import Session, Signal, Usage
from warmstart.ports import Judge

NAME = "inspect"

_HEADER, _JOURNAL = "header.json", "_journal/start.json"  # written last, and first
_SAMPLES = "samples/"
_GRADES = {"C": True, "I": False}
_MAX_NAME = 200
_NONE = msgspec.Raw()


class _Message(ChatMessage, gc=False):
    function: Any = None
    error: Any = None


class _Sample(msgspec.Struct, gc=False):
    id: Any = None
    epoch: Any = None
    uuid: Any = None
    scores: Any = None
    output: Any = None
    model_usage: Any = None
    error: Any = None
    limit: Any = None
    started_at: Any = None
    completed_at: Any = None
    messages: msgspec.Raw = _NONE
    events: msgspec.Raw = _NONE


class _Event(msgspec.Struct, gc=False):
    timestamp: Any = None
    completed: Any = None


_FACTS = frozenset(_Sample.__struct_fields__) - {"messages", "events"}
_message = msgspec.json.Decoder(_Message)
_sample = msgspec.json.Decoder(_Sample)
_event = msgspec.json.Decoder(_Event)
_any = msgspec.json.Decoder(Any)
_raw_list = msgspec.json.Decoder(list[msgspec.Raw])


def sniff(head: SourceHead) -> bool:
    if head.zip:
        try:
            members, _problem = list_members(head.path)
        except SourceError:
            return False
        return _JOURNAL in members or (_HEADER in members and any(name.startswith(_SAMPLES) for name in members))
    evaluated = head.first.get("eval")
    return head.root == "object" and isinstance(evaluated, dict) and "task" in evaluated and "model" in evaluated


def read(source: Source, judge: Judge) -> Iterator[Session]:
    if source.head.zip:
        yield from _read_archive(source, judge)
        return
    run: dict[str, Any] = {}
    counted = 0
    for key, raw, line in source.walk("samples"):
        if key == "eval":
            run = dict_of(source.decode(raw, _any, line))
        elif key == "samples":
            fragment = f"/samples/{counted}"
            counted += 1
            for sample in decode_whole(source, raw, _sample, line):
                reader = _SampleReader(source, judge, fragment)
                for message in _pieces(source, sample.messages, line):
                    reader.take(message, line)
                for event in _pieces(source, sample.events, line):
                    reader.time(event, line)
                facts = {name: getattr(sample, name) for name in _FACTS}
                yield from reader.sessions(facts, run)


def _pieces(source: Source, raw: msgspec.Raw, line: int | None) -> list[msgspec.Raw]:
    if not is_list(raw):
        return []
    return source.decode(raw, _raw_list, line) or []


def _read_archive(source: Source, judge: Judge) -> Iterator[Session]:
    archive = Archive(source)
    members = archive.members()
    run: dict[str, Any] = {}
    for name in (_HEADER, _JOURNAL):
        if name in members and not run:
            for key, raw, line in archive.open(members[name]).walk():
                if key == "eval":
                    run = dict_of(source.decode(raw, _any, line))
    for name, member in members.items():
        if not name.startswith(_SAMPLES) or not name.endswith(".json"):
            continue
        sample = archive.open(member)
        reader = _SampleReader(sample, judge, quote(name[:_MAX_NAME], errors="replace"))
        facts: dict[str, Any] = {}
        for key, raw, line in sample.walk("messages", "events"):
            if key == "messages":
                reader.take(raw, line)
            elif key == "events":
                reader.time(raw, line)
            elif key in _FACTS:
                facts[key] = sample.decode(raw, _any, line)
        yield from reader.sessions(facts, run)


class _SampleReader:
    def __init__(self, source: Source, judge: Judge, fragment: str) -> None:
        self._source = source
        self._draft = SessionBuilder(source, judge, format=NAME, agent="inspect")
        self._draft.fragment = fragment
        self._chat = Chat(self._draft, source.report)

    def take(self, raw: bytes | msgspec.Raw, line: int | None) -> None:
        """Add a message with its calls, or a result."""
        message = self._source.decode(raw, _message, line)
        if message is None:
            return
        if message.role == "tool":
            text, signal = _result(text_of(message.content), message.error)
            self._chat.result(message.tool_call_id, text, None, signal)
        else:
            self._chat.take(message)

    def time(self, raw: bytes | msgspec.Raw, line: int | None) -> None:
        """Extend the session to the time of an event: messages have none."""
        event = self._source.decode(raw, _event, line)
        for moment in (event.timestamp, event.completed) if event else ():
            self._extend(parse_time(moment))

    def _extend(self, at: float | None) -> None:
        draft = self._draft
        if at is not None:
            draft.started = at if draft.started is None else min(draft.started, at)
            draft.ended = at if draft.ended is None else max(draft.ended, at)

    def sessions(self, facts: dict[str, Any], run: dict[str, Any]) -> Iterator[Session]:
        """Yield the session with the facts of its sample and its run."""
        draft = self._draft
        if draft.empty:
            return
        for name in ("started_at", "completed_at"):
            self._extend(parse_time(facts.get(name)))
        if draft.started is None:
            draft.started = parse_time(run.get("created"))
        run_id = next((text for key in ("eval_id", "run_id", "task_id") if (text := string_of(run.get(key)))), "")
        place = f"{string_of(facts.get('id'))}_epoch_{string_of(facts.get('epoch')) or 1}"
        draft.id = string_of(facts.get("uuid")) or (f"{run_id}/{place}" if run_id else "")
        draft.project = string_of(run.get("task")) or None
        draft.model = string_of(run.get("model")) or string_of(dict_of(facts.get("output")).get("model")) or None
        draft.label = _label(facts.get("scores"))
        draft.end_reason = _end_reason(facts)
        for model, usage in dict_of(facts.get("model_usage")).items():
            draft.spend(_usage(dict_of(usage)), model)
        yield draft.close()


def _result(text: str, error: Any) -> tuple[str, Signal | None]:
    if not isinstance(error, dict):
        return text, None
    message = string_of(error.get("message"))
    if message and message not in text:
        text = f"{text}\n{message}" if text.strip() else message
    return text, Signal(status="rejected") if error.get("type") == "approval" else Signal(failed=True)


def _label(scores: Any) -> bool | None:
    verdicts = {_verdict(dict_of(score).get("value")) for score in dict_of(scores).values()} - {None}
    return verdicts.pop() if len(verdicts) == 1 else None


def _verdict(value: Any) -> bool | None:
    return _GRADES.get(value) if isinstance(value, str) else as_label(value)


def _end_reason(facts: dict[str, Any]) -> str | None:
    if facts.get("error"):
        return "error"
    limit = string_of(dict_of(facts.get("limit")).get("type"))
    if limit:
        return limit
    choices = dict_of(facts.get("output")).get("choices")
    first = dict_of(choices[0]) if isinstance(choices, list) and choices else {}
    return string_of(first.get("stop_reason")) or None


def _usage(usage: dict[str, Any]) -> Usage:
    prompt, output = count_of(usage.get("input_tokens")), count_of(usage.get("output_tokens"))
    cached, written = (count_of(usage.get(f"input_tokens_cache_{kind}")) for kind in ("read", "write"))
    total = count_of(usage.get("total_tokens"))
    parts = (prompt or 0) + (output or 0) + (cached or 0) + (written or 0)
    if prompt is not None and total is not None and parts > total:  # some providers count cached tokens as input too
        prompt = max(0, prompt - (parts - total))
    return Usage(
        input=prompt,
        output=output,
        cache_read=cached,
        cache_write=written,
        reasoning=count_of(usage.get("reasoning_tokens")),
        cost=dollars_of(usage.get("total_cost")),
    )
