"""OpenAI chat messages: a JSON list, JSONL, or objects that hold them under `messages`, `traj`, `conversation` or `history`.

`traj` is tau-bench's. The format has no error flag, so a result is judged by its text alone. The library takes the same
messages as Python values: `warmstart.score(messages)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from warmstart.formats.chat import RESULT_ROLES, ROLES, Chat, ChatMessage, decode_whole, digest, split_records
from warmstart.formats.fields import Count, string_of, without_cached
from warmstart.formats.labels import reward_label, wrapped_label
from warmstart.formats.lenient import DECODE_ERRORS, scrub
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead, is_list
from warmstart.model import Session, Usage
from warmstart.ports import Judge

NAME = "openai_chat"

_LISTS = ("messages", "traj", "conversation", "history")
_IDS = ("session_id", "conversation_id", "id", "instance_id", "task_id")
_FOREIGN = frozenset(  # keys that other formats keep beside their messages
    (
        *("trajectory", "trajectory_format", "simulations", "schema_version", "sessionId", "projectHash", "loglines"),
        *("steps", "eval", "epoch", "reward_info", "parent_session_id", "session_start", "conversations"),
    )
)
_FOREIGN_PARTS = frozenset(("type", "message_type", "turn_idx"))  # keys of other formats' messages
_SNIFFED = 4  # messages looked at
_MAX_DEPTH = 24
_NONE = msgspec.Raw()


class _Facts(ChatMessage, gc=False):
    """A message, or the fields of a wrapper of messages beside these; only its fields show which."""

    session_id: Any = None
    conversation_id: Any = None
    id: Any = None
    instance_id: Any = None
    task_id: Any = None
    trial: Any = None
    model: Any = None
    agent: Any = None
    info: Any = None
    resolved: Any = None
    label: Any = None
    success: Any = None
    reward: Any = None
    score: Any = None
    project: Any = None
    usage: Any = None
    warmstart: Any = None  # written by `sessions export`, before the messages


class _Record(_Facts, gc=False):
    """A record whose messages are not decoded yet."""

    messages: msgspec.Raw = _NONE
    traj: msgspec.Raw = _NONE
    conversation: msgspec.Raw = _NONE
    history: msgspec.Raw = _NONE


_Messages = list[ChatMessage] | dict[str, Any] | str | bool | int | float | None


class _WholeRecord(_Facts, gc=False):
    """A record that is decoded in one go, which a list with anything but messages in it does not allow."""

    messages: _Messages = None
    traj: _Messages = None
    conversation: _Messages = None
    history: _Messages = None


_message = msgspec.json.Decoder(ChatMessage)
_record = msgspec.json.Decoder(_Record)
_whole_record = msgspec.json.Decoder(_WholeRecord)
_any = msgspec.json.Decoder(Any)
_raw_list = msgspec.json.Decoder(list[msgspec.Raw])
_FACTS = frozenset(_Facts.__struct_fields__)


def sniff(head: SourceHead) -> bool:
    ours = sum(_is_message(record) or _is_wrapper(record) for record in head.records)
    return ours * 2 > len(head.records)


def _is_message(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and isinstance(record.get("role"), str)
        and (record["role"] in ROLES or record["role"] in RESULT_ROLES)
        and ("content" in record or "tool_calls" in record or "function_call" in record)
        and isinstance(record.get("content"), (str, list, type(None)))
        and _FOREIGN_PARTS.isdisjoint(record)
    )


def _is_wrapper(record: dict[str, Any]) -> bool:
    info = record.get("info")
    if not _FOREIGN.isdisjoint(record) or (isinstance(info, dict) and "exit_status" in info):
        return False
    messages: list[Any] = next((record[key] for key in _LISTS if isinstance(record.get(key), list)), [])[:_SNIFFED]
    return any(map(_is_message, messages)) and all(
        _FOREIGN_PARTS.isdisjoint(message) for message in messages if isinstance(message, dict)
    )


def read(source: Source, judge: Judge) -> Iterator[Session]:
    reader = _Reader(source, judge)
    records = split_records(source)
    if records is None:
        reader.take_document()
    else:
        for data, fragment, line in records:
            yield from reader.take(data, fragment, line)
    yield from reader.rest()


class _Reader:
    def __init__(self, source: Source, judge: Judge) -> None:
        self._source = source
        self._judge = judge
        self._draft = self._new_draft()  # the session of messages without a wrapper
        self._chat = Chat(self._draft, source.report)

    def take(self, data: bytes | msgspec.Raw, fragment: str, line: int | None) -> Iterator[Session]:
        """Read one line or element: a message, a wrapper, or a list of messages."""
        if bytes(memoryview(data)[:64]).lstrip().startswith(b"["):
            for listed in decode_whole(self._source, data, _raw_list, line):
                draft = self._new_draft(digest(data))
                draft.fragment = fragment
                yield from self._session(listed, draft, Chat(draft, self._source.report), line)
            return
        for record, key, messages in self._decode(data, line):
            if key is None:
                if record.role is not None:
                    self._chat.take(record)
                continue
            draft = self._new_draft()
            _describe(draft, record)
            if _has_list(record, "traj"):
                _describe_tau(draft, record.reward)
            if key == "traj":  # task and trial alone occur in every run
                draft.id = f"{string_of(record.task_id)}-{string_of(record.trial) or 0}-{digest(data)[1:9]}"
            draft.id = draft.id or digest(data)
            draft.fragment = fragment
            yield from self._session(messages, draft, Chat(draft, self._source.report, record.warmstart), line)

    def _decode(
        self, data: bytes | msgspec.Raw, line: int | None
    ) -> Iterator[tuple[_Facts, str | None, Sequence[ChatMessage | msgspec.Raw]]]:
        """Yield the records of a line or element, each with the name of its list of messages, and that list."""
        try:
            whole = _whole_record.decode(data)
        except DECODE_ERRORS:
            for record in decode_whole(self._source, data, _record, line):
                key = next((key for key in _LISTS if _has_list(record, key)), None)
                yield record, key, _raw_list.decode(getattr(record, key)) if key else ()
        else:
            key = next((key for key in _LISTS if _has_list(whole, key)), None)
            yield whole, key, getattr(whole, key) if key else ()

    def take_document(self) -> None:
        """Read a wrapper that is the whole file, one message at a time: it may be too long to hold."""
        facts: dict[str, Any] = {}
        chosen = ""
        for key, raw, line in self._source.walk(*_LISTS):
            if key in _LISTS and (not chosen or key == chosen):
                chosen = key
                if message := self._source.decode(raw, _message, line):
                    self._chat.take(message)
            elif key in _FACTS:
                facts[key] = self._source.decode(raw, _any, line)
                if key == "warmstart" and isinstance(facts[key], list):
                    self._chat.marks = iter(facts[key])
        _describe(self._draft, msgspec.convert(facts, _Facts))
        if chosen == "traj":
            _describe_tau(self._draft, facts.get("reward"))

    def rest(self) -> Iterator[Session]:
        """Yield the session of messages without a wrapper, if there are any."""
        if not self._draft.empty:
            yield self._draft.close()

    def _session(
        self, messages: Sequence[ChatMessage | msgspec.Raw], draft: SessionBuilder, chat: Chat, line: int | None
    ) -> Iterator[Session]:
        for piece in messages:
            message = piece if isinstance(piece, ChatMessage) else self._source.decode(piece, _message, line)
            if message is not None:
                chat.take(message)
        if not draft.empty:
            yield draft.close()

    def _new_draft(self, session_id: str = "") -> SessionBuilder:
        return SessionBuilder(self._source, self._judge, format=NAME, agent="openai-chat", id=session_id)


def _describe(draft: SessionBuilder, record: _Facts) -> None:
    """Set the facts that a wrapper gives about its session."""
    info = record.info if isinstance(record.info, dict) else {}
    draft.id = next((text for key in _IDS if (text := string_of(getattr(record, key)))), "")
    draft.model = next((model for model in (record.model, info.get("model")) if isinstance(model, str)), None)
    if isinstance(record.agent, str) and record.agent:
        draft.agent = record.agent
    draft.project = string_of(record.project) or None
    draft.usage = _usage(record.usage)
    draft.label = wrapped_label(record)


def _usage(totals: Any) -> Usage | None:
    """Read a wrapper's totals, given as in chat completions."""
    if totals is None:
        return None
    try:
        usage = msgspec.convert(totals, _Used)
    except msgspec.ValidationError:
        return None
    cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else None
    prompt = without_cached(usage.prompt_tokens, cached)
    return Usage(input=prompt, output=usage.completion_tokens, cache_read=cached)


class _Cached(msgspec.Struct):
    cached_tokens: Count | None = None


class _Used(msgspec.Struct):
    prompt_tokens: Count
    completion_tokens: Count
    prompt_tokens_details: _Cached | None = None


def _has_list(record: _Facts, key: str) -> bool:
    """Return whether a record has a list under this name, decoded or not."""
    value = getattr(record, key)
    return isinstance(value, list) or (isinstance(value, msgspec.Raw) and is_list(value))


def _describe_tau(draft: SessionBuilder, reward: Any) -> None:
    draft.agent = "tau-bench"
    draft.label = reward_label(reward)


class _Memory(Source):
    """The source of messages that were never in a file."""

    @property
    def uri(self) -> str:
        return "memory:"


def from_messages(messages: Sequence[Mapping[str, Any]], judge: Judge, *, id: str = "") -> Session:
    """Build a session from an agent's messages: dicts or SDK objects. Values that are not messages are skipped."""
    source = _Memory(Path("memory:"))
    draft = SessionBuilder(source, judge, format=NAME, agent="openai-chat", id=id)
    chat = Chat(draft, source.report)
    for message in messages:
        plain = _plain(message, ())
        if isinstance(plain, dict):
            chat.take(ChatMessage(**{key: plain[key] for key in ChatMessage.__struct_fields__ if key in plain}))
    return draft.close()


def _plain(value: Any, above: tuple[int, ...]) -> Any:
    """Return a copy made of JSON values: SDK objects are dumped, other values become text."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, float):
        return value if value - value == 0 else None  # JSON has no NaN and no infinities
    if len(above) >= _MAX_DEPTH or id(value) in above:
        return "[...]"
    above = (*above, id(value))
    if isinstance(value, Mapping):
        return {scrub(str(key)): _plain(item, above) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, above) for item in value]
    dump = None if isinstance(value, type) else getattr(value, "model_dump", None)
    return _plain(dump(), above) if callable(dump) else scrub(str(value))
