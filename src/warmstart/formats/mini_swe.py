"""mini-swe-agent: `<instance>.traj.json`, OpenAI messages with the executed actions under `extra`.

Every executed action is a call of the tool `bash`. Depending on the version the actions are in `extra.actions`, in tool
calls, or in one fenced block of the agent's text, which the next user message answers. The same task is run many times,
so a session's id is the task's name and a digest of the first messages, which hold a response id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import msgspec

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
from warmstart.formats.labels import as_label, label_beside
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Arguments, Session, Signal, Usage
from warmstart.ports import Judge

NAME = "mini_swe_agent"

_TOOL = "bash"
_BEGINNING = 3  # messages that go into the id
_block = re.compile(r"^```(?:bash|sh|mswea_bash_command)[ \t]*\n(.*?)\n```", re.S | re.M)
_code = re.compile(r"\s*<returncode>(-?\d{1,9})</returncode>")


class _Extra(msgspec.Struct, gc=False):
    actions: Any = None
    returncode: Any = None
    exception_info: Any = None
    timestamp: Any = None
    response: Any = None


class _Message(msgspec.Struct, gc=False):
    role: Any = None
    content: Any = None
    tool_calls: Any = None
    tool_call_id: Any = None
    extra: _Extra | None = None


_message = msgspec.json.Decoder(_Message)
_any = msgspec.json.Decoder(Any)


def sniff(head: SourceHead) -> bool:
    first = head.first
    if head.root != "object" or "trajectory" in first or "history" in first:
        return False
    info, messages = dict_of(first.get("info")), first.get("messages")
    return (
        str(first.get("trajectory_format", "")).startswith("mini-swe-agent")
        or ("model_stats" in info and "exit_status" in info)
        or (isinstance(messages, list) and any(map(_is_observation, messages)))
    )


def _is_observation(message: Any) -> bool:
    return "returncode" in dict_of(dict_of(message).get("extra"))


def read(source: Source, judge: Judge) -> Iterator[Session]:
    reader = _Reader(source, judge)
    facts: dict[str, Any] = {}
    beginning = blake2b(digest_size=4)
    seen = 0
    for key, raw, line in source.walk("messages"):
        if key != "messages":
            facts[key] = source.decode(raw, _any, line)
            continue
        if seen < _BEGINNING:
            seen += 1
            beginning.update(raw)
        if message := source.decode(raw, _message, line):
            reader.take(message)
    if reader.draft.empty:
        return
    name = string_of(facts.get("instance_id"))
    reader.draft.id = f"{name or 'mini'}-{beginning.hexdigest()}"
    stem = source.path.name.removesuffix(".json").removesuffix(".traj")
    reader.describe(dict_of(facts.get("info")))
    if reader.draft.label is None:
        reader.draft.label = label_beside(source, source.path.name, stem, name)
    yield reader.draft.close()


class _Reader:
    def __init__(self, source: Source, judge: Judge) -> None:
        self.draft = SessionBuilder(source, judge, format=NAME, agent="mini-swe-agent")
        self._waiting: list[str] = []  # executed actions without an observation yet

    def take(self, message: _Message) -> None:
        extra = message.extra or _Extra()
        at = parse_time(extra.timestamp)
        text = text_of(message.content)
        if message.role == "assistant":
            self._add_assistant(message, extra, text, at)
        elif message.role == "tool" or extra.returncode is not None or (message.role == "user" and "" in self._waiting):
            self._add_observation(message, extra, text, at)
        elif isinstance(message.role, str) and message.role in ROLES:
            self.draft.message(ROLES[message.role], text, at)
        # the role `exit` repeats what was submitted

    def _add_assistant(self, message: _Message, extra: _Extra, text: str, at: float | None) -> None:
        response = dict_of(extra.response)
        if isinstance(response.get("model"), str):
            self.draft.model = response["model"]
        if usage := dict_of(response.get("usage")):
            self.draft.spend(_tokens(usage), self.draft.model, at)
        self.draft.message("assistant", text, at)
        self._waiting.clear()
        for call_id, arguments in _actions(message, extra, text):
            self.draft.call(call_id, _TOOL, arguments, at)
            self._waiting.append(call_id)

    def _add_observation(self, message: _Message, extra: _Extra, text: str, at: float | None) -> None:
        call_id = string_of(message.tool_call_id)
        if call_id in self._waiting:
            self._waiting.remove(call_id)
        elif not call_id and self._waiting:
            call_id = self._waiting.pop(0)
        self.draft.result(call_id, text, at, _signal(extra, text))

    def describe(self, info: dict[str, Any]) -> None:
        """Set the facts that the file gives about the whole run."""
        draft = self.draft
        draft.end_reason = string_of(info.get("exit_status")) or None
        draft.label = as_label(info.get("resolved"))
        config = dict_of(info.get("config"))
        model = dict_of(config.get("model")).get("model_name")
        draft.model = draft.model or (model if isinstance(model, str) else None)
        folder = dict_of(config.get("environment")).get("cwd")
        draft.project = folder if isinstance(folder, str) and folder else None
        cost = dollars_of(dict_of(info.get("model_stats")).get("instance_cost"))
        draft.usage = None if cost is None else Usage(cost=cost)


def _actions(message: _Message, extra: _Extra, text: str) -> Iterator[tuple[str, Arguments]]:
    if isinstance(extra.actions, list):
        for action in extra.actions:
            if isinstance(action, dict):
                yield string_of(action.get("tool_call_id")), {"command": text_of(action.get("command"))}
            elif isinstance(action, str):
                yield "", {"command": action}
    elif isinstance(message.tool_calls, list):
        for call in message.tool_calls:
            function = dict_of(dict_of(call).get("function"))
            yield string_of(dict_of(call).get("id")), parse_arguments(function.get("arguments"))
    else:
        blocks = _block.findall(text)
        if len(blocks) == 1:  # with none or several the agent gets an error and nothing is executed
            yield "", {"command": blocks[0]}


def _signal(extra: _Extra, text: str) -> Signal | None:
    code = extra.returncode
    if not isinstance(code, int):
        tag = _code.match(text)
        code = int(tag[1]) if tag else None
    if extra.exception_info:
        return Signal(failed=True, exit_code=code)
    return None if code is None else Signal(exit_code=code)


def _tokens(usage: dict[str, Any]) -> Usage:
    prompt, cached = count_of(usage.get("prompt_tokens")), _detail(usage, "prompt_tokens_details", "cached_tokens")
    return Usage(
        input=without_cached(prompt, cached),
        output=count_of(usage.get("completion_tokens")),
        cache_read=cached,
        reasoning=_detail(usage, "completion_tokens_details", "reasoning_tokens"),
    )


def _detail(usage: dict[str, Any], group: str, name: str) -> int | None:
    return count_of(dict_of(usage.get(group)).get(name))
