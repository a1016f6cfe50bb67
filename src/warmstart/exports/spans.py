"""Sessions as spans: a model's answers, the runs of tools, and the agent above them, in one batch of OTLP's JSON.

The attributes are those of OpenInference and, for tools, of OpenTelemetry's GenAI conventions too.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from warmstart.exports.exchanges import AnsweredCall, Exchange, write_arguments
from warmstart.model import Message, Session, Status

_INTERNAL = 1  # SPAN_KIND_INTERNAL
_CODES: dict[Status, int] = {"ok": 1, "error": 2}  # other outcomes leave the status unset


class SpanClock:
    """Gives spans times that never run backwards: readers put spans in the order of their end."""

    def __init__(self) -> None:
        self.now: float | None = None

    def pass_to(self, at: float | None) -> float | None:
        """Return a time, or the latest before it where it is unknown or earlier."""
        if at is not None and (self.now is None or at > self.now):
            self.now = at
        return self.now


def write_spans(session: Session, exchanges: Sequence[Exchange]) -> dict[str, Any]:
    """Return a session as one batch of OTLP."""
    writer = _SpanWriter(session)
    heard: list[Message] = []
    for exchange in exchanges:
        if exchange.role != "assistant" and exchange.message:
            heard.append(exchange.message)
            continue
        writer.add_answer(heard, exchange)
        heard = []
    if heard:
        writer.add_answer(heard, None)
    writer.add_agent()
    return wrap_spans(writer.spans, {"openinference.project.name": session.project or "", "service.name": "warmstart"})


def wrap_spans(spans: list[dict[str, Any]], resource: dict[str, str]) -> dict[str, Any]:
    """Return spans as a batch of OTLP."""
    attributes = write_attributes({name: value for name, value in resource.items() if value})
    return {
        "resourceSpans": [
            {"resource": {"attributes": attributes}, "scopeSpans": [{"scope": {"name": "warmstart"}, "spans": spans}]}
        ]
    }


def write_attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return attributes as OTLP writes them. Texts only: nothing else is needed here."""
    return [{"key": name, "value": {"stringValue": str(value)}} for name, value in values.items()]


def derive_id(*parts: object, size: int) -> str:
    """Return an id of so many bytes, the same for the same parts: what is sent twice can be told from what is new."""
    return blake2b("\0".join(map(str, parts)).encode("utf-8", "replace"), digest_size=size).hexdigest()


def write_nanoseconds(name: str, at: float | None) -> dict[str, str]:
    """Return a time as OTLP writes it; nothing where it is unknown."""
    return {} if at is None else {name: str(round(at * 1e6) * 1000)}


def write_status(status: Status) -> dict[str, Any]:
    """Return an outcome as the status of a span; that of one neither ok nor failed stays unset."""
    return {"status": {"code": _CODES[status]}} if status in _CODES else {}


class _SpanWriter:
    def __init__(self, session: Session) -> None:
        self.spans: list[dict[str, Any]] = []
        self._session = session
        self._trace = derive_id(session.agent, session.id, size=16)
        self._root = derive_id(self._trace, "agent", size=8)
        self._clock = SpanClock()
        self._start = self._clock.pass_to(session.started)
        self._said = ""  # the last answer, which the next prompt repeats

    def add_answer(self, heard: list[Message], exchange: Exchange | None) -> None:
        """Add a model's answer to what it heard since the last one, and the runs of the tools that it called."""
        own: dict[str, Any] = {"openinference.span.kind": "LLM", "session.id": self._session.id}
        if self._session.model:
            own["llm.model_name"] = self._session.model
        prompt = [("assistant", self._said)] if self.spans else []
        prompt += [(message.role, message.text) for message in heard]
        for number, (role, text) in enumerate(prompt):
            own[f"llm.input_messages.{number}.message.role"] = role
            own[f"llm.input_messages.{number}.message.content"] = text
        start = self._clock.now
        for message in heard:
            start = self._clock.pass_to(message.at)
        if exchange is not None:
            own |= _write_answer(exchange)
            self._said = exchange.message.text if exchange.message else ""
        end = self._clock.pass_to(exchange.at if exchange else None)
        self._add("llm", own, start, end)
        for one in exchange.calls if exchange else ():
            if one.answer:
                self._add_run(one)

    def _add_run(self, one: AnsweredCall) -> None:
        assert one.answer is not None
        outcome = one.answer.outcome
        own = {
            "openinference.span.kind": "TOOL",
            "session.id": self._session.id,
            "tool.name": one.call.tool,
            "tool_call.id": one.call.call_id,
            "input.value": write_arguments(one.call.arguments),
            "output.value": one.answer.text,
            **describe_run(one.call.tool, one.call.call_id, self._session.id),
            "warmstart.outcome": outcome.status,
        }
        if outcome.status == "error":
            own["error.type"] = outcome.error_kind or "error"
        start = self._clock.pass_to(one.call.at)
        end = self._clock.pass_to(one.answer.at)
        self._add(f"execute_tool {one.call.tool}", own, start, end, write_status(outcome.status))

    def add_agent(self) -> None:
        """Add the agent's span, which holds the others and ends last."""
        own = {
            "openinference.span.kind": "AGENT",
            "session.id": self._session.id,
            "agent.name": self._session.agent,
            "gen_ai.conversation.id": self._session.id,
        }
        span = self._make("invoke_agent", own, self._start, self._clock.pass_to(self._session.ended))
        self.spans.append(span | {"spanId": self._root})

    def _add(
        self, name: str, own: dict[str, Any], start: float | None, end: float | None, more: dict[str, Any] | None = None
    ) -> None:
        span = self._make(name, own, start, end)
        own_id = derive_id(self._trace, len(self.spans), size=8)
        self.spans.append(span | {"spanId": own_id, "parentSpanId": self._root} | (more or {}))

    def _make(self, name: str, own: dict[str, Any], start: float | None, end: float | None) -> dict[str, Any]:
        times = write_nanoseconds("startTimeUnixNano", start) | write_nanoseconds("endTimeUnixNano", end)
        return {"traceId": self._trace, "name": name, "kind": _INTERNAL, **times, "attributes": write_attributes(own)}


def describe_run(tool: str, call_id: str, conversation: str) -> dict[str, str]:
    """Return the attributes of a tool's run that OpenTelemetry's GenAI conventions name."""
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.call.id": call_id,
        "gen_ai.conversation.id": conversation,
    }


def _write_answer(exchange: Exchange) -> dict[str, Any]:
    start = "llm.output_messages.0.message."
    own: dict[str, Any] = {start + "role": "assistant"}
    if exchange.message:
        own[start + "content"] = exchange.message.text
    for number, one in enumerate(exchange.calls):
        call = f"{start}tool_calls.{number}.tool_call."
        own[call + "id"] = one.call.call_id
        own[call + "function.name"] = one.call.tool
        own[call + "function.arguments"] = write_arguments(one.call.arguments)
    return own
