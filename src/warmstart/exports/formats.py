"""Sessions in the formats of exports: ATIF, OpenAI chat messages, and spans of OpenInference in OTLP's JSON.

Outcomes, which neither ATIF nor chat messages have a field for, stand beside the messages under the name `warmstart`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from warmstart.exports.exchanges import AnsweredCall, Exchange, split_exchanges, write_arguments
from warmstart.exports.spans import write_spans
from warmstart.model import Session, Usage

ExportFormat = Literal["atif", "openinference", "openai"]

_ATIF = "ATIF-v1.6"
_SOURCES = {"user": "user", "assistant": "agent", "system": "system"}


def write_atif(session: Session) -> dict[str, Any]:
    """Return a session as an ATIF trajectory."""
    steps = [_write_step(number, exchange) for number, exchange in enumerate(split_exchanges(session), 1)]
    agent = {"name": session.agent, "version": "unknown", "model_name": session.model}
    trajectory: dict[str, Any] = {"schema_version": _ATIF, "session_id": session.id, "agent": _drop_none(agent)}
    trajectory["steps"] = steps
    if session.usage and session.usage.basis == "reported" and (metrics := _write_metrics(session.usage)):
        trajectory["final_metrics"] = metrics
    facts = {"project": session.project, "parent": session.parent, "label": session.label}
    if extra := _drop_none(facts):
        trajectory["extra"] = extra
    return trajectory


def _write_step(number: int, exchange: Exchange) -> dict[str, Any]:
    step: dict[str, Any] = {"step_id": number, "source": _SOURCES[exchange.role]}
    if exchange.at is not None:
        step["timestamp"] = _write_time(exchange.at)
    step["message"] = exchange.message.text if exchange.message else ""
    if not exchange.calls:
        return step
    step["tool_calls"] = [_write_atif_call(one) for one in exchange.calls]
    answers = [one.answer for one in exchange.calls if one.answer]
    step["observation"] = {"results": [{"source_call_id": a.call_id, "content": a.text} for a in answers]}
    statuses = [answer.outcome.status for answer in answers]
    ours: dict[str, Any] = {"outcomes": statuses}
    if texts := [n for n, one in enumerate(exchange.calls) if isinstance(one.call.arguments, str)]:
        ours["texts"] = texts  # calls whose arguments are one text; ATIF wants an object
    step["extra"] = {"warmstart": ours}
    if statuses in (["ok"], ["error"]):
        step["extra"]["tool_result_is_error"] = statuses == ["error"]
    return step


def _write_atif_call(one: AnsweredCall) -> dict[str, Any]:
    arguments = one.call.arguments
    return {
        "tool_call_id": one.call.call_id,
        "function_name": one.call.tool,
        "arguments": {"input": arguments} if isinstance(arguments, str) else arguments,
    }


def _write_metrics(usage: Usage) -> dict[str, Any]:
    prompt = [part for part in (usage.input, usage.cache_read, usage.cache_write) if part is not None]
    return _drop_none(
        {
            "total_prompt_tokens": sum(prompt) if prompt else None,
            "total_completion_tokens": usage.output,
            "total_cached_tokens": usage.cache_read,
            "total_cost_usd": usage.cost,
        }
    )


def write_openai(session: Session) -> dict[str, Any]:
    """Return a session as chat messages, which are valid in a request, with facts about it beside them."""
    messages: list[dict[str, Any]] = []
    marks: list[dict[str, Any]] = []
    for exchange in split_exchanges(session):
        message: dict[str, Any] = {
            "role": exchange.role,
            "content": exchange.message.text if exchange.message else None,
        }
        if exchange.calls:
            message["tool_calls"] = [_write_openai_call(one) for one in exchange.calls]
        messages.append(message)
        marks.append(_drop_none({"at": exchange.at}))
        for one in exchange.calls:
            if one.answer:
                messages.append({"role": "tool", "tool_call_id": one.answer.call_id, "content": one.answer.text})
                marks.append(_drop_none({"at": one.answer.at, "outcome": one.answer.outcome.status}))
    facts = {"session_id": session.id, "agent": session.agent, "model": session.model, "project": session.project}
    return _drop_none(facts) | {"warmstart": marks, "messages": messages}


def _write_openai_call(one: AnsweredCall) -> dict[str, Any]:
    function = {"name": one.call.tool, "arguments": write_arguments(one.call.arguments)}
    return {"id": one.call.call_id, "type": "function", "function": function}


def write_openinference(session: Session) -> dict[str, Any]:
    """Return a session as spans of OpenInference, in one batch of OTLP."""
    return write_spans(session, split_exchanges(session))


def _write_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def _drop_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


FORMATS: dict[ExportFormat, Callable[[Session], dict[str, Any]]] = {
    "atif": write_atif,
    "openinference": write_openinference,
    "openai": write_openai,
}
