"""Spans of OpenTelemetry in the shapes in which programs save them, as one type.

- OTLP JSON, as exporters and the collector write it: `resourceSpans[].scopeSpans[].spans[]`
- the spans that OpenTelemetry's console exporters print: `{name, context, attributes, status, ...}`
- the trees of the TRAIL benchmark: `{trace_id, spans[{span_attributes, child_spans, ...}]}`
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.formats.chat import decode_whole, split_records
from warmstart.formats.fields import dict_of, parse_time, string_of
from warmstart.formats.source import Source, is_list
from warmstart.formats.spans import TraceSpan

_MAX_DEPTH = 64
_ERRORS = frozenset(("2", "error", "status_code_error", "statuscode.error"))
_OKS = frozenset(("1", "ok", "status_code_ok", "statuscode.ok"))
_DURATION = re.compile(r"P(?:(\d+)D)?T?(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?$")
_any = msgspec.json.Decoder(Any)
_raw_spans = msgspec.json.Decoder(list[msgspec.Raw])
_NONE = msgspec.Raw()


class _Record(msgspec.Struct, gc=False):
    """A line or an element: a batch of OTLP, a tree, or a span."""

    resourceSpans: msgspec.Raw = _NONE  # noqa: N815
    spans: msgspec.Raw = _NONE


_record = msgspec.json.Decoder(_Record)


def read_otel_spans(source: Source) -> Iterator[tuple[TraceSpan, int]]:
    """Yield the spans of a file with their sizes in bytes."""
    records = split_records(source)
    if records is None:
        for key, raw, line in source.walk("resourceSpans", "spans"):
            if key in ("resourceSpans", "spans"):
                yield from _open(source, raw, line, batch=key == "resourceSpans")
        return
    for raw, _fragment, line in records:
        for record in decode_whole(source, raw, _record, line):
            held = record.resourceSpans or record.spans
            if not held:
                yield from _open(source, raw, line, batch=False)
            elif is_list(held):
                for piece in source.decode(held, _raw_spans, line) or ():
                    yield from _open(source, piece, line, batch=bool(record.resourceSpans))


def _open(
    source: Source, raw: bytes | msgspec.Raw, line: int | None, *, batch: bool
) -> Iterator[tuple[TraceSpan, int]]:
    value = dict_of(source.decode(raw, _any, line))
    spans = list(_of_batch(value) if batch else _of_tree(value, "", 0))
    size = len(memoryview(raw)) // max(1, len(spans))
    for span in spans:
        yield span, size


def _of_batch(batch: dict[str, Any]) -> Iterator[TraceSpan]:
    resource = _attributes(dict_of(batch.get("resource")).get("attributes"))
    groups = batch.get("scopeSpans", batch.get("instrumentationLibrarySpans"))
    for group in groups if isinstance(groups, list) else ():
        scope = string_of(dict_of(dict_of(group).get("scope")).get("name"))
        spans = dict_of(group).get("spans")
        for span in spans if isinstance(spans, list) else ():
            if isinstance(span, dict):
                yield _of_otlp(span, resource, scope)


def _of_otlp(span: dict[str, Any], resource: dict[str, Any], scope: str) -> TraceSpan:
    status = dict_of(span.get("status"))
    return TraceSpan(
        id=string_of(span.get("spanId")),
        parent=string_of(span.get("parentSpanId")),
        trace=string_of(span.get("traceId")),
        name=string_of(span.get("name")),
        scope=scope,
        start=_nanoseconds(span.get("startTimeUnixNano")),
        end=_nanoseconds(span.get("endTimeUnixNano")),
        attributes=_attributes(span.get("attributes")),
        resource=resource,
        failed=_failed(status.get("code")),
        message=string_of(status.get("message")) or _exception(span.get("events")),
    )


def _of_tree(span: dict[str, Any], parent: str, depth: int) -> Iterator[TraceSpan]:
    """Yield a span after its children: it ends after them."""
    children = span.get("child_spans")
    own = string_of(span.get("span_id"))
    for child in children if isinstance(children, list) and depth < _MAX_DEPTH else ():
        if isinstance(child, dict):
            yield from _of_tree(child, own, depth + 1)
    context, status = dict_of(span.get("context")), span.get("status")
    state = dict_of(status)
    start = parse_time(span.get("timestamp") or span.get("start_time"))
    seconds = _seconds(span.get("duration"))
    end = parse_time(span.get("end_time"))
    if end is None and start is not None and seconds is not None:
        end = start + seconds
    code = span.get("status_code", state.get("status_code", state.get("code")))
    message = span.get("status_message", state.get("description", state.get("message")))
    yield TraceSpan(
        id=own or string_of(context.get("span_id")) or string_of(span.get("spanId")),
        parent=parent or string_of(span.get("parent_span_id", span.get("parent_id", span.get("parentSpanId")))),
        trace=string_of(span.get("trace_id")) or string_of(context.get("trace_id")) or string_of(span.get("traceId")),
        name=string_of(span.get("span_name", span.get("name"))),
        scope=string_of(span.get("scope_name", dict_of(span.get("instrumentation_scope")).get("name"))),
        start=start if start is not None else _nanoseconds(span.get("startTimeUnixNano")),
        end=end if end is not None else _nanoseconds(span.get("endTimeUnixNano")),
        attributes=_attributes(span.get("span_attributes", span.get("attributes"))),
        resource=_attributes(span.get("resource_attributes", dict_of(span.get("resource")).get("attributes"))),
        failed=_failed(code),
        message=string_of(message) or _exception(span.get("events")),
    )


def is_span(value: Any) -> bool:
    """Return whether a decoded value is a span that stands alone."""
    if not isinstance(value, dict):
        return False
    attributes = value.get("attributes", value.get("span_attributes"))
    context = dict_of(value.get("context"))
    named = "trace_id" in value or "trace_id" in context or "traceId" in value
    return named and isinstance(attributes, (dict, list)) and ("name" in value or "span_name" in value)


def _attributes(value: Any) -> dict[str, Any]:
    """Return attributes: an object, or OTLP's list of `{key, value}`."""
    if isinstance(value, dict):
        return value
    pairs = (dict_of(pair) for pair in value) if isinstance(value, list) else ()
    return {string_of(pair.get("key")): _plain(pair.get("value"), 0) for pair in pairs}


def _plain(value: Any, depth: int) -> Any:
    """Return an OTLP value without its type."""
    if not isinstance(value, dict) or depth > _MAX_DEPTH:
        return value
    for kind, inner in value.items():
        if kind == "arrayValue":
            values = dict_of(inner).get("values")
            return [_plain(item, depth + 1) for item in values] if isinstance(values, list) else []
        if kind == "kvlistValue":
            pairs = dict_of(inner).get("values")
            listed = [dict_of(pair) for pair in pairs] if isinstance(pairs, list) else []
            return {string_of(pair.get("key")): _plain(pair.get("value"), depth + 1) for pair in listed}
        return inner  # stringValue, intValue (a string), boolValue, doubleValue
    return None


def _exception(events: Any) -> str:
    for event in events if isinstance(events, list) else ():
        attributes = _attributes(dict_of(event).get("attributes", dict_of(event).get("Attributes")))
        if message := string_of(attributes.get("exception.message")):
            return message
    return ""


def _failed(code: Any) -> bool | None:
    word = string_of(code).lower()
    return True if word in _ERRORS else False if word in _OKS else None


def _nanoseconds(value: Any) -> float | None:
    try:
        return int(value) / 1e9 if isinstance(value, (int, str)) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        return None


def _seconds(value: Any) -> float | None:
    match = _DURATION.match(value) if isinstance(value, str) and len(value) < 64 else None
    if match is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
