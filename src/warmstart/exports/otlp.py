"""Send the stored runs of tools to an OpenTelemetry collector, as OTLP/HTTP in JSON: names, times and outcomes only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any

import msgspec
from msgspec import Struct

from warmstart.endpoints.http import HttpClient, HttpError
from warmstart.exports.spans import (
    derive_id,
    describe_run,
    wrap_spans,
    write_attributes,
    write_nanoseconds,
    write_status,
)
from warmstart.redact import Redactor
from warmstart.store import CallRow, SessionRow

_PATH = "/v1/traces"
_BATCH = 500  # spans per request
_LARGEST = 1 << 20  # bytes of an answer
_TIMEOUT = 10.0  # seconds for one request
_INTERNAL = 1  # SPAN_KIND_INTERNAL


class SentSpans(Struct, kw_only=True):
    """What a collector received."""

    sessions: int = 0
    spans: int = 0  # runs of tools
    rejected: int = 0  # of these, as the collector reports it
    reason: str = ""  # that the collector gives


class _Partial(Struct):
    rejectedSpans: int | str = 0  # noqa: N815 - OTLP's JSON writes large numbers as text
    errorMessage: str = ""  # noqa: N815


class _Answer(Struct):
    partialSuccess: _Partial | None = None  # noqa: N815


class SpanSender:
    """Sends spans to the collector at a URL, with or without /v1/traces at its end."""

    def __init__(self, url: str, redactor: Redactor, *, timeout: float = _TIMEOUT) -> None:
        self._client = HttpClient(url, timeout=timeout, largest=_LARGEST)
        base = self._client.base_path
        self._path = base if base.endswith(_PATH) else base + _PATH
        self._redactor = redactor

    def send(self, sessions: Iterable[tuple[SessionRow, Sequence[CallRow]]]) -> SentSpans:
        """Send the calls of sessions. Raises HttpError, which says how many spans were sent before."""
        sent = SentSpans()
        spans = self._write(sessions, sent)
        while batch := list(islice(spans, _BATCH)):
            try:
                self._post(batch, sent)
            except HttpError as error:
                raise HttpError(f"{error}; {sent.spans} spans were sent before") from error
            sent.spans += len(batch)
        return sent

    def _write(
        self, sessions: Iterable[tuple[SessionRow, Sequence[CallRow]]], sent: SentSpans
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        for row, calls in sessions:
            sent.sessions += 1
            name = self._redactor.scope().identifier
            agent, conversation = name(row.agent), name(row.id)
            for call in calls:
                described = describe_run(name(call.tool), name(call.call_id), conversation)
                yield agent, _write_run(row, call, described)

    def _post(self, batch: list[tuple[str, dict[str, Any]]], sent: SentSpans) -> None:
        groups = [
            wrap_spans([span for _agent, span in spans], {"service.name": agent})["resourceSpans"][0]
            for agent, spans in groupby(batch, key=lambda pair: pair[0])
        ]
        body = msgspec.json.encode({"resourceSpans": groups})
        answer = self._client.send("POST", self._path, body, {"Content-Type": "application/json"})
        if not 200 <= answer.status < 300:
            raise HttpError(f"{self._client.name} refused the spans with status {answer.status}")
        try:
            partial = msgspec.json.decode(answer.body, type=_Answer).partialSuccess
        except (msgspec.DecodeError, RecursionError):
            partial = None  # an answer need not have a body
        if partial and str(partial.rejectedSpans).isdecimal():
            sent.rejected += int(partial.rejectedSpans)
            sent.reason = partial.errorMessage[:200] or sent.reason


def _write_run(row: SessionRow, call: CallRow, described: dict[str, str]) -> dict[str, Any]:
    own = described | {"warmstart.outcome": call.status}
    if call.status == "error":
        own["error.type"] = call.error_kind or "error"
    start = next((at for at in (call.at, row.started, row.first_seen) if at is not None), 0.0)
    end = max(start, call.answered or start)
    return {
        "traceId": derive_id(row.key, size=16),
        "spanId": derive_id(row.key, call.ordinal, size=8),
        "name": f"execute_tool {described['gen_ai.tool.name']}",
        "kind": _INTERNAL,
        **write_nanoseconds("startTimeUnixNano", start),
        **write_nanoseconds("endTimeUnixNano", end),
        "attributes": write_attributes(own),
        **write_status(call.status),
    }
