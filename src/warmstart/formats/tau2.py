"""tau2-bench: `{info, tasks, simulations: [...]}` or a list of simulations; one session per simulation.

The simulated user may call tools of its own (`requestor: "user"`); these calls and their results are not part of the
agent's session. A reward below one is a failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.formats.chat import Chat, decode_whole
from warmstart.formats.fields import count_of, dict_of, dollars_of, parse_time, string_of, text_of
from warmstart.formats.labels import reward_label
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Session, Signal, Usage
from warmstart.ports import Judge

NAME = "tau2"

_NONE = msgspec.Raw()


class _Message(msgspec.Struct, gc=False):
    role: Any = None
    content: Any = None
    tool_calls: Any = None
    id: Any = None
    requestor: Any = None
    error: Any = None
    timestamp: Any = None
    usage: Any = None
    tool_messages: Any = None  # several results in one message


class _Simulation(msgspec.Struct, gc=False):
    messages: msgspec.Raw = _NONE
    id: Any = None
    task_id: Any = None
    trial: Any = None
    start_time: Any = None
    end_time: Any = None
    termination_reason: Any = None
    reward_info: Any = None
    agent_cost: Any = None


_message = msgspec.json.Decoder(_Message)
_simulation = msgspec.json.Decoder(_Simulation)
_any = msgspec.json.Decoder(Any)
_raw_list = msgspec.json.Decoder(list[msgspec.Raw])


def sniff(head: SourceHead) -> bool:
    if head.root == "list":
        return bool(head.records) and all(map(_is_simulation, head.records))
    info = head.first.get("info")
    if isinstance(info, dict) and "agent_info" in info and "environment_info" in info:
        return True
    simulations = head.first.get("simulations")
    return isinstance(simulations, list) and any(map(_is_simulation, simulations[:4]))


def _is_simulation(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("messages"), list)
        and "task_id" in value
        and ("reward_info" in value or "termination_reason" in value)
    )


def read(source: Source, judge: Judge) -> Iterator[Session]:
    info: dict[str, Any] | None = None
    counted = 0
    for key, raw, line in source.walk("simulations"):
        if key == "info":
            info = dict_of(source.decode(raw, _any, line))
        elif key == "simulations" or key == "":
            if info is None:
                info = _find_info(source) if key else {}
            pointer = f"/{key}/{counted}" if key else f"/{counted}"
            counted += 1
            for simulation in decode_whole(source, raw, _simulation, line):
                draft = SessionBuilder(source, judge, format=NAME, agent="tau2")
                draft.fragment = pointer
                _Reader(source, draft).take(simulation, line)
                _describe(draft, simulation, info)
                if not draft.empty:
                    yield draft.close()


def _find_info(source: Source) -> dict[str, Any]:
    """Look up an `info` that follows the simulations, in a second reading whose problems are not reported."""
    again = source.reopen()
    info = next((raw for key, raw, _line in again.walk("simulations") if key == "info"), None)
    return dict_of(again.decode(info, _any)) if info is not None else {}


class _Reader:
    def __init__(self, source: Source, draft: SessionBuilder) -> None:
        self._source = source
        self._draft = draft
        self._chat = Chat(draft, source.report)
        self._of_user: set[str] = set()  # ids of the user's own calls

    def take(self, simulation: _Simulation, line: int | None) -> None:
        try:
            messages = _raw_list.decode(simulation.messages) if simulation.messages else []
        except msgspec.ValidationError:
            self._source.report(f"simulation {simulation.id}: its messages are not a list", line)
            return
        for raw in messages:
            if message := self._source.decode(raw, _message, line):
                self._take_message(message)
        cost = dollars_of(simulation.agent_cost)
        self._draft.usage = None if cost is None else Usage(cost=cost)

    def _take_message(self, message: _Message) -> None:
        at = parse_time(message.timestamp)
        calls = message.tool_calls if isinstance(message.tool_calls, list) else ()
        if message.role == "assistant":
            if isinstance(message.usage, dict):
                prompt, output = (count_of(message.usage.get(f"{kind}_tokens")) for kind in ("prompt", "completion"))
                self._draft.spend(Usage(input=prompt, output=output), None, at)
            self._draft.message("assistant", text_of(message.content), at)
            for call in calls:
                self._chat.call(call, at)
        elif message.role == "user":
            self._draft.message("user", text_of(message.content), at)
            self._of_user.update(string_of(call.get("id")) for call in calls if isinstance(call, dict))
        elif message.role == "system":
            self._draft.message("system", text_of(message.content), at)
        elif message.role == "tool":
            results = message.tool_messages if isinstance(message.tool_messages, list) else [message]
            for result in results:
                self._add_result(msgspec.convert(result, _Message) if isinstance(result, dict) else result)

    def _add_result(self, result: Any) -> None:
        if not isinstance(result, _Message) or result.requestor == "user":
            return
        call_id = string_of(result.id)
        if result.requestor is None and call_id in self._of_user:
            return
        signal = Signal(failed=result.error) if isinstance(result.error, bool) else None
        self._chat.result(call_id, text_of(result.content), parse_time(result.timestamp), signal)


def _describe(draft: SessionBuilder, simulation: _Simulation, info: dict[str, Any]) -> None:
    draft.id = string_of(simulation.id) or f"{string_of(simulation.task_id)}-{string_of(simulation.trial) or 0}"
    model = dict_of(info.get("agent_info")).get("llm")
    draft.model = model if isinstance(model, str) else None
    domain = dict_of(info.get("environment_info")).get("domain_name")
    draft.project = domain if isinstance(domain, str) else None
    draft.end_reason = string_of(simulation.termination_reason) or None
    draft.label = reward_label(dict_of(simulation.reward_info).get("reward"))
    started, ended = parse_time(simulation.start_time), parse_time(simulation.end_time)
    draft.started = draft.started if started is None else started
    draft.ended = draft.ended if ended is None else ended
