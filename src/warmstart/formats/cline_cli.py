"""Cline's command line from version 3: `~/.cline/data/sessions/<id>/<id>.messages.json`; `<id>.json` beside it has the facts.

A failed command or file has `success: false` in the list that is its result, without an error flag; the flag stands only at
calls that could not be made. Follows files that cline 3.0.65 wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.formats.fields import count_of, dict_of, parse_arguments, parse_time, string_of, text_of
from warmstart.formats.lenient import DECODE_ERRORS
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Arguments, Session, Signal, Usage
from warmstart.ports import Judge

NAME = "cline_cli"

_ENDING = ".messages.json"
_MAX_FACTS = 16 << 20
_INPUT = re.compile(r"\s*<user_input\b[^>]*>(.*?)</user_input>", re.S)
_NOTICE = re.compile(r"\s*<mode_notice\b[^>]*>.*?</mode_notice>\s*", re.S)


class _Message(msgspec.Struct, gc=False):
    role: Any = None
    content: Any = None
    ts: Any = None
    modelInfo: Any = None  # noqa: N815
    metrics: Any = None


_message = msgspec.json.Decoder(_Message)
_any = msgspec.json.Decoder(Any)


def sniff(head: SourceHead) -> bool:
    first = head.first
    return (
        head.root == "object"
        and isinstance(first.get("messages"), list)
        and first.keys() >= {"sessionId", "version", "agent"}
        and "updated_at" in first
    )


def read(source: Source, judge: Judge) -> Iterator[Session]:
    reader = _Reader(source, judge)
    draft = reader.draft
    for key, raw, line in source.walk("messages"):
        if key == "messages":
            if message := source.decode(raw, _message, line):
                reader.take(message)
        elif key == "sessionId":
            draft.id = string_of(source.decode(raw, _any, line))
        elif key == "system_prompt" and draft.empty:
            draft.message("system", text_of(source.decode(raw, _any, line)))
    if not draft.empty:
        _describe(draft, _read_facts(source))
        yield draft.close()


class _Reader:
    def __init__(self, source: Source, judge: Judge) -> None:
        self.draft = SessionBuilder(source, judge, format=NAME, agent="cline")

    def take(self, message: _Message) -> None:
        """Add a message with its calls, or with results."""
        at = parse_time(message.ts)
        role = message.role if message.role in ("user", "assistant", "system") else None
        if role is None:
            return
        model = string_of(dict_of(message.modelInfo).get("id")) or None
        self.draft.model = model or self.draft.model
        if metrics := dict_of(message.metrics):
            self.draft.spend(_usage(metrics), model, at)
        blocks = message.content if isinstance(message.content, list) else [{"type": "text", "text": message.content}]
        for block in map(dict_of, blocks):
            kind = block.get("type")
            if kind == "text":
                self.draft.message(role, _strip(text_of(block.get("text"))), at)
            elif kind == "tool_use":
                tool = string_of(block.get("name"))
                self.draft.call(string_of(block.get("id")), tool, _arguments(block.get("input")), at)
            elif kind == "tool_result":
                text, signal = _result(block)
                self.draft.result(string_of(block.get("tool_use_id")), text, at, signal)


def _arguments(given: Any) -> Arguments:
    """Return arguments; a list of command lines becomes one command."""
    arguments = parse_arguments(given)
    commands = arguments.get("commands") if isinstance(arguments, dict) else None
    if isinstance(commands, list) and commands and all(isinstance(command, str) for command in commands):
        return {"command": "\n".join(commands)}
    return arguments


def _result(block: dict[str, Any]) -> tuple[str, Signal | None]:
    """Return the text of a result, and whether a part of it failed."""
    content, flag = block.get("content"), block.get("is_error")
    parts = (
        [part for part in content if isinstance(part, dict) and "success" in part] if isinstance(content, list) else []
    )
    if not parts:
        return text_of(content), Signal(failed=flag) if isinstance(flag, bool) else None
    texts = (text_of(part.get("result")) or string_of(part.get("error")) for part in parts)
    failed = flag is True or any(part["success"] is False for part in parts)
    return "\n".join(texts), Signal(failed=failed)


def _strip(text: str) -> str:
    """Return the user's own words, without what Cline puts around them."""
    text = _NOTICE.sub("", text)
    words = _INPUT.fullmatch(text.rstrip())
    return words[1] if words else text


def _usage(counts: dict[str, Any]) -> Usage:
    return Usage(
        input=count_of(counts.get("inputTokens")),
        output=count_of(counts.get("outputTokens")),
        cache_read=count_of(counts.get("cacheReadTokens")),
        cache_write=count_of(counts.get("cacheWriteTokens")),
    )


def _read_facts(source: Source) -> dict[str, Any]:
    """Return the session's facts, from the file beside its messages."""
    name = source.path.name
    path = source.path.with_name(name.removesuffix(_ENDING) + ".json")
    if not name.endswith(_ENDING) or not path.is_file():
        return {}
    try:
        if path.stat().st_size > _MAX_FACTS:
            return {}
        return dict_of(_any.decode(path.read_bytes()))
    except (OSError, *DECODE_ERRORS) as error:
        source.report(f"the facts in {path.name} cannot be read: {error}")
        return {}


def _describe(draft: SessionBuilder, facts: dict[str, Any]) -> None:
    draft.project = string_of(facts.get("cwd")) or string_of(facts.get("workspace_root")) or None
    draft.model = draft.model or string_of(facts.get("model")) or None
    draft.end_reason = string_of(facts.get("status")) or None
    parents = (facts.get("parent_session_id"), dict_of(facts.get("metadata")).get("parentSessionId"))
    draft.parent = next((text for parent in parents if (text := string_of(parent))), None)
    started, ended = parse_time(facts.get("started_at")), parse_time(facts.get("ended_at"))
    draft.started = draft.started if started is None else started
    draft.ended = draft.ended if ended is None else ended
