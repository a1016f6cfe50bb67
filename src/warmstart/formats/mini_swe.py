"""mini-swe-agent: `<instance>.traj.json`, OpenAI messages with what was executed under `extra`.

Every executed action is a call of the tool `bash`. Where the actions stand depends on the version: `extra.actions`,
tool calls, or one fenced block in what the agent said, answered by the next user message. The same task is run many
times, so a session's id is the task's name and a digest of how the run began (which has a response id in it).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import msgspec

from warmstart.formats.chat import ROLES, string_of, text_of, time_of
from warmstart.formats.labels import as_label, label_beside
from warmstart.formats.session_builder import SessionBuilder, count_of, dollars_of, parse_arguments
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Arguments, Session, Signal, Usage
from warmstart.ports import Judge

NAME = "mini_swe_agent"

_TOOL = "bash"
_BEGINNING = 3  # messages that tell one run from another
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
    info, messages = _dict(first.get("info")), first.get("messages")
    return (
        str(first.get("trajectory_format", "")).startswith("mini-swe-agent")
        or ("model_stats" in info and "exit_status" in info)
        or (isinstance(messages, list) and any(map(_is_observation, messages)))
    )


def _is_observation(message: Any) -> bool:
    return "returncode" in _dict(_dict(message).get("extra"))


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
    reader.describe(_dict(facts.get("info")))
    if reader.draft.label is None:
        reader.draft.label = label_beside(source, source.path.name, stem, name)
    yield reader.draft.close()


class _Reader:
    def __init__(self, source: Source, judge: Judge) -> None:
        self.draft = SessionBuilder(source, judge, format=NAME, agent="mini-swe-agent")
        self._waiting: list[str] = []  # executed actions without an observation yet

    def take(self, message: _Message) -> None:
        extra = message.extra or _Extra()
        at = time_of(extra.timestamp)
        text = text_of(message.content)
        if message.role == "assistant":
            self._assistant(message, extra, text, at)
        elif message.role == "tool" or extra.returncode is not None or (message.role == "user" and "" in self._waiting):
            self._observation(message, extra, text, at)
        elif isinstance(message.role, str) and message.role in ROLES:
            self.draft.message(ROLES[message.role], text, at)
        # the role `exit` repeats what was submitted

    def _assistant(self, message: _Message, extra: _Extra, text: str, at: float | None) -> None:
        response = _dict(extra.response)
        if isinstance(response.get("model"), str):
            self.draft.model = response["model"]
        if usage := _dict(response.get("usage")):
            self.draft.spend(_tokens(usage), self.draft.model, at)
        self.draft.message("assistant", text, at)
        self._waiting.clear()
        for call_id, arguments in _actions(message, extra, text):
            self.draft.call(call_id, _TOOL, arguments, at)
            self._waiting.append(call_id)

    def _observation(self, message: _Message, extra: _Extra, text: str, at: float | None) -> None:
        call_id = string_of(message.tool_call_id)
        if call_id in self._waiting:
            self._waiting.remove(call_id)
        elif not call_id and self._waiting:
            call_id = self._waiting.pop(0)
        self.draft.result(call_id, text, at, _signal(extra, text))

    def describe(self, info: dict[str, Any]) -> None:
        """What the file says about the run as a whole."""
        draft = self.draft
        draft.end_reason = string_of(info.get("exit_status")) or None
        draft.label = as_label(info.get("resolved"))
        config = _dict(info.get("config"))
        model = _dict(config.get("model")).get("model_name")
        draft.model = draft.model or (model if isinstance(model, str) else None)
        folder = _dict(config.get("environment")).get("cwd")
        draft.project = folder if isinstance(folder, str) and folder else None
        cost = dollars_of(_dict(info.get("model_stats")).get("instance_cost"))
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
            function = _dict(_dict(call).get("function"))
            yield string_of(_dict(call).get("id")), parse_arguments(function.get("arguments"))
    else:
        blocks = _block.findall(text)
        if len(blocks) == 1:  # with none or several the agent is told so, and nothing is executed
            yield "", {"command": blocks[0]}


def _signal(extra: _Extra, text: str) -> Signal | None:
    code = extra.returncode
    if not isinstance(code, int):
        found = _code.match(text)
        code = int(found[1]) if found else None
    if extra.exception_info:
        return Signal(failed=True, exit_code=code)
    return None if code is None else Signal(exit_code=code)


def _tokens(usage: dict[str, Any]) -> Usage:
    """The prompt's tokens hold those from the cache."""
    prompt, cached = count_of(usage.get("prompt_tokens")), _detail(usage, "prompt_tokens_details", "cached_tokens")
    return Usage(
        input=None if prompt is None else max(0, prompt - (cached or 0)),
        output=count_of(usage.get("completion_tokens")),
        cache_read=cached,
        reasoning=_detail(usage, "completion_tokens_details", "reasoning_tokens"),
    )


def _detail(usage: dict[str, Any], group: str, name: str) -> int | None:
    return count_of(_dict(usage.get(group)).get(name))


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
