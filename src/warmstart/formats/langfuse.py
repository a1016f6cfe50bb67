"""Langfuse: traces with their observations, as its API and its exports give them (JSON or JSONL).

A session is a Langfuse session or else a trace. A `TOOL` observation of the level ERROR has failed; others are judged by
their result. Follows the documented shapes `TraceWithFullDetails`, `ObservationsView` and `ObservationV2`; no export of the
real program was at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.formats.chat import decode_whole, split_records
from warmstart.formats.fields import dict_of, parse_time, string_of
from warmstart.formats.source import Source, SourceHead, is_list
from warmstart.formats.span_sessions import read_span_sessions
from warmstart.formats.spans import TraceSpan
from warmstart.model import Session
from warmstart.ports import Judge

NAME = "langfuse"

_KINDS = {"GENERATION": "LLM", "TOOL": "TOOL", "AGENT": "AGENT"}
_LISTS = ("observations", "data")
_NONE = msgspec.Raw()
_any = msgspec.json.Decoder(Any)
_raw_list = msgspec.json.Decoder(list[msgspec.Raw])


class _Record(msgspec.Struct, gc=False):
    """A trace, a page of the API, or an observation."""

    id: Any = None
    sessionId: Any = None  # noqa: N815
    observations: msgspec.Raw = _NONE
    data: msgspec.Raw = _NONE


_record = msgspec.json.Decoder(_Record)


def sniff(head: SourceHead) -> bool:
    return any(map(_is_own, head.records))


def _is_own(record: dict[str, Any]) -> bool:
    held = next((record[key] for key in _LISTS if isinstance(record.get(key), list)), None)
    if held is not None and ("timestamp" in record or "meta" in record or "sessionId" in record):
        return any(_is_observation(item) or _is_own(item) for item in held[:4] if isinstance(item, dict))
    return _is_observation(record)


def _is_observation(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("type") in ("GENERATION", "SPAN", "EVENT", "TOOL", "AGENT", "CHAIN", "RETRIEVER", "EMBEDDING")
        and ("traceId" in value or "trace_id" in value)
        and ("startTime" in value or "start_time" in value)
    )


def read(source: Source, judge: Judge) -> Iterator[Session]:
    yield from read_span_sessions(source, judge, NAME, _read_observations(source))


def _read_observations(source: Source) -> Iterator[tuple[TraceSpan, int]]:
    records = split_records(source)
    if records is not None:
        for raw, _fragment, line in records:
            yield from _open(source, raw, line, "", 0)
        return
    again = source.reopen()
    facts = {key: raw for key, raw, _line in again.walk(*_LISTS) if key == "sessionId"}
    session = string_of(again.decode(facts["sessionId"], _any)) if facts else ""
    for key, raw, line in source.walk(*_LISTS):
        if key in _LISTS:
            yield from _open(source, raw, line, session, 1)


def _open(
    source: Source, raw: bytes | msgspec.Raw, line: int | None, session: str, depth: int
) -> Iterator[tuple[TraceSpan, int]]:
    for record in decode_whole(source, raw, _record, line):
        held = next((part for part in (record.observations, record.data) if is_list(part)), None)
        if held is None or depth > 2:
            observation = dict_of(source.decode(raw, _any, line))
            if _is_observation(observation):
                yield _span(observation, session), len(memoryview(raw))
            continue
        own = string_of(record.sessionId) or session
        for piece in source.decode(held, _raw_list, line) or ():
            yield from _open(source, piece, line, own, depth + 1)


def _span(observation: dict[str, Any], session: str) -> TraceSpan:
    def find(camel: str, snake: str = "") -> Any:
        return observation.get(camel, observation.get(snake))

    kind = _KINDS.get(string_of(observation.get("type")), "CHAIN")
    tokens, old = dict_of(find("usageDetails", "usage_details")), dict_of(observation.get("usage"))
    cached = next((tokens[key] for key in ("input_cached_tokens", "cache_read_input_tokens") if key in tokens), None)
    prompt = tokens.get("input", old.get("input"))
    if isinstance(prompt, int) and isinstance(cached, int):
        prompt += cached  # Langfuse counts them apart
    message = string_of(find("statusMessage", "status_message"))
    attributes: dict[str, Any] = {
        "openinference.span.kind": kind,
        "gen_ai.input.messages": observation.get("input") if kind == "LLM" else None,
        "gen_ai.output.messages": observation.get("output") if kind == "LLM" else None,
        "input.value": observation.get("input"),
        "output.value": observation.get("output"),
        "tool.name": observation.get("name"),
        "llm.model_name": observation.get("model") or find("providedModelName", "provided_model_name"),
        "llm.token_count.prompt": prompt,
        "llm.token_count.completion": tokens.get("output", old.get("output")),
        "llm.token_count.prompt_details.cache_read": cached,
        "llm.cost.total": dict_of(find("costDetails", "cost_details")).get("total", find("calculatedTotalCost")),
        "session.id": session or find("sessionId", "session_id"),
    }
    return TraceSpan(
        id=string_of(observation.get("id")),
        parent=string_of(find("parentObservationId", "parent_observation_id")),
        trace=string_of(find("traceId", "trace_id")),
        name=string_of(observation.get("name")),
        scope="",
        start=parse_time(find("startTime", "start_time")),
        end=parse_time(find("endTime", "end_time")),
        attributes={key: value for key, value in attributes.items() if value is not None},
        resource={},
        failed=True if observation.get("level") == "ERROR" else None,
        message=message,
    )
