"""The events of OpenHands, V0 (`action`, `observation`) and V1 (`kind`), added to a session in their order."""

from __future__ import annotations

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
from warmstart.formats.session_builder import SessionBuilder
from warmstart.model import Arguments, Role, Signal, Usage

_SOURCES: dict[str, Role] = {"user": "user", "agent": "assistant", "environment": "system"}
_INNER = frozenset(("thought", "hidden", "blocking", "is_input", "is_static", "confirmation_state", "security_risk"))
_NO_CALLS = frozenset(("message", "system", "recall", "change_agent_state", "condensation", "condensation_request"))
_NO_RESULTS = frozenset(("recall", "agent_state_changed", "condense", "loop_detection", "null", "success"))
_V1_KINDS = frozenset(
    ("ActionEvent", "ObservationEvent", "MessageEvent", "AgentErrorEvent", "UserRejectObservation", "SystemPromptEvent")
)


class OpenHandsEvent(msgspec.Struct, gc=False):
    """An event of either version, untyped."""

    id: Any = None
    timestamp: Any = None
    source: Any = None
    # V0
    action: Any = None
    observation: Any = None
    args: Any = None
    extras: Any = None
    content: Any = None
    cause: Any = None
    tool_call_metadata: Any = None
    # V1
    kind: Any = None
    thought: Any = None
    tool_name: Any = None
    tool_call_id: Any = None
    tool_call: Any = None
    llm_message: Any = None
    system_prompt: Any = None
    error: Any = None
    rejection_reason: Any = None
    rejection_source: Any = None


def is_event(value: Any) -> bool:
    """Return whether a decoded value is an event of OpenHands."""
    if not isinstance(value, dict) or "source" not in value or "timestamp" not in value:
        return False
    return string_of(value.get("kind")) in _V1_KINDS or (
        "id" in value and (isinstance(value.get("action"), str) or isinstance(value.get("observation"), str))
    )


class EventReader:
    """Adds events to the builder of their session."""

    def __init__(self, draft: SessionBuilder) -> None:
        self._draft = draft
        self._ids: dict[str, str] = {}  # calls by the id of their event
        self._counted: set[str] = set()  # answers of the model whose tokens are counted

    def take(self, event: OpenHandsEvent) -> None:
        """Add an event: a message, a call or a result."""
        at = parse_time(event.timestamp)
        if isinstance(event.kind, str):
            self._take_v1(event, event.kind, at)
        elif isinstance(event.observation, str):
            if event.observation not in _NO_RESULTS:
                self._observe(event, at)
        elif isinstance(event.action, str):
            self._act(event, event.action, at)

    def _act(self, event: OpenHandsEvent, action: str, at: float | None) -> None:
        arguments = dict_of(event.args)
        if action == "message":
            self._draft.message(_SOURCES.get(string_of(event.source), "user"), text_of(arguments.get("content")), at)
        elif action == "system":
            self._draft.message("system", text_of(arguments.get("content")), at)
        elif action not in _NO_CALLS:
            metadata = dict_of(event.tool_call_metadata)
            self._spend(dict_of(metadata.get("model_response")), at)
            if action != "think":
                self._draft.message("assistant", text_of(arguments.get("thought")), at)
            call_id = string_of(metadata.get("tool_call_id")) or f"event_{string_of(event.id)}"
            self._ids[string_of(event.id)] = call_id
            tool = string_of(metadata.get("function_name")) or action
            self._draft.call(call_id, tool, _written(metadata, call_id) or _executed(arguments, action), at)

    def _observe(self, event: OpenHandsEvent, at: float | None) -> None:
        extras = dict_of(event.extras)
        details = dict_of(extras.get("metadata"))
        folder = details.get("working_dir")
        if self._draft.project is None and isinstance(folder, str) and folder:
            self._draft.project = folder
        code = details.get("exit_code", extras.get("exit_code"))
        signal = Signal(exit_code=code) if isinstance(code, int) and not isinstance(code, bool) else None
        if event.observation == "error":
            signal = Signal(failed=True)
        elif event.observation == "user_rejected":
            signal = Signal(status="rejected")
        named = string_of(dict_of(event.tool_call_metadata).get("tool_call_id"))
        cause = self._ids.get(string_of(event.cause), "")
        self._draft.result(named or cause, text_of(event.content), at, signal)

    def _take_v1(self, event: OpenHandsEvent, kind: str, at: float | None) -> None:
        if kind == "MessageEvent":
            message = dict_of(event.llm_message)
            role = ROLES.get(string_of(message.get("role")), _SOURCES.get(string_of(event.source), "user"))
            self._draft.message(role, text_of(message.get("content")), at)
        elif kind == "SystemPromptEvent":
            prompt = event.system_prompt
            self._draft.message("system", text_of(prompt.get("text") if isinstance(prompt, dict) else prompt), at)
        elif kind == "ActionEvent":
            self._draft.message("assistant", text_of(event.thought), at)
            function = dict_of(event.tool_call)
            written = dict_of(function.get("function")).get("arguments", function.get("arguments"))
            action = {key: value for key, value in dict_of(event.action).items() if key != "kind"}
            arguments = parse_arguments(written) if written is not None else action
            self._draft.call(string_of(event.tool_call_id), string_of(event.tool_name), arguments, at)
        elif kind == "ObservationEvent":
            text, signal = _read_observation(dict_of(event.observation))
            self._draft.result(string_of(event.tool_call_id), text, at, signal)
        elif kind == "AgentErrorEvent":
            self._draft.result(string_of(event.tool_call_id), text_of(event.error), at, Signal(failed=True))
        elif kind == "UserRejectObservation":
            signal = Signal(status="denied" if event.rejection_source == "hook" else "rejected")
            self._draft.result(string_of(event.tool_call_id), text_of(event.rejection_reason), at, signal)

    def _spend(self, response: dict[str, Any], at: float | None) -> None:
        """Count the tokens of an answer once: each of its calls repeats them."""
        answer = string_of(response.get("id"))
        usage = dict_of(response.get("usage"))
        if not usage or (answer and answer in self._counted):
            return
        self._counted.add(answer)
        cached = count_of(dict_of(usage.get("prompt_tokens_details")).get("cached_tokens"))
        spent = Usage(
            input=without_cached(count_of(usage.get("prompt_tokens")), cached),
            output=count_of(usage.get("completion_tokens")),
            cache_read=cached,
        )
        self._draft.spend(spent, string_of(response.get("model")) or None, at)


def read_metrics(metrics: dict[str, Any]) -> Usage | None:
    """Return the totals that OpenHands keeps of a conversation."""
    tokens = dict_of(metrics.get("accumulated_token_usage"))
    cached, written = count_of(tokens.get("cache_read_tokens")), count_of(tokens.get("cache_write_tokens"))
    usage = Usage(
        input=without_cached(count_of(tokens.get("prompt_tokens")), (cached or 0) + (written or 0)),
        output=count_of(tokens.get("completion_tokens")),
        cache_read=cached,
        cache_write=written,
        reasoning=count_of(tokens.get("reasoning_tokens")),
        cost=dollars_of(metrics.get("accumulated_cost")) or None,  # 0: the model has no known price
    )
    return None if usage == Usage() else usage


def _written(metadata: dict[str, Any], call_id: str) -> Arguments | None:
    """Return the arguments of a call as the model wrote them."""
    choices = dict_of(metadata.get("model_response")).get("choices")
    message = dict_of(dict_of(choices[0]).get("message")) if isinstance(choices, list) and choices else {}
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if string_of(dict_of(call).get("id")) == call_id:
            return parse_arguments(dict_of(call.get("function")).get("arguments"))
    return None


def _executed(arguments: dict[str, Any], action: str) -> Arguments:
    """Return the arguments with which an action ran, without its settings."""
    kept = arguments if action == "think" else {k: v for k, v in arguments.items() if k not in _INNER}
    return {key: value for key, value in kept.items() if value is not None}


def _read_observation(observation: dict[str, Any]) -> tuple[str, Signal | None]:
    text = text_of(observation.get("content", observation.get("output")))
    code = observation.get("exit_code", dict_of(observation.get("metadata")).get("exit_code"))
    exit_code = code if isinstance(code, int) and not isinstance(code, bool) else None
    if observation.get("is_error") is True:
        return text, Signal(failed=True, exit_code=exit_code)
    return text, None if exit_code is None else Signal(exit_code=exit_code)
