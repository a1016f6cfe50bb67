"""LangSmith: exported runs (JSON list or JSONL, one run each), flat or as trees with `child_runs`.

A session is a thread (`session_id`, `thread_id` or `conversation_id` in the metadata) or else a trace. A `tool` run with an
`error` has failed; others are judged by their result. Follows the documented run data format and LangChain's serialised
messages; no export of the real program was at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.formats.chat import decode_whole, split_records
from warmstart.formats.fields import dict_of, parse_time, string_of
from warmstart.formats.source import Source, SourceHead
from warmstart.formats.span_sessions import read_span_sessions
from warmstart.formats.spans import TraceSpan
from warmstart.model import Session
from warmstart.ports import Judge

NAME = "langsmith"

_KINDS = {"llm": "LLM", "tool": "TOOL"}
_THREADS = ("session_id", "thread_id", "conversation_id")
_MAX_DEPTH = 64
_any_object = msgspec.json.Decoder(dict[str, Any])
_any = msgspec.json.Decoder(Any)


def sniff(head: SourceHead) -> bool:
    runs = [item for record in head.records for item in (record, *_held(record))]
    return any(map(_is_run, runs))


def _held(record: dict[str, Any]) -> list[Any]:
    runs = record.get("runs")
    return runs[:4] if isinstance(runs, list) else []


def _is_run(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("run_type"), str)
        and "inputs" in value
        and ("trace_id" in value or "dotted_order" in value or "child_runs" in value)
    )


def read(source: Source, judge: Judge) -> Iterator[Session]:
    yield from read_span_sessions(source, judge, NAME, _read_runs(source))


def _read_runs(source: Source) -> Iterator[tuple[TraceSpan, int]]:
    records = split_records(source)
    if records is None:
        whole: dict[str, Any] = {}
        for key, raw, line in source.walk("runs", "child_runs"):
            if key in ("runs", "child_runs"):
                yield from _open(dict_of(source.decode(raw, _any, line)), "", "", len(memoryview(raw)))
            else:
                whole[key] = source.decode(raw, _any, line)
        if _is_run({"child_runs": None, **whole}):
            yield from _open(whole, "", "", 0)
        return
    for raw, _fragment, line in records:
        for record in decode_whole(source, raw, _any_object, line):
            for run in record["runs"] if isinstance(record.get("runs"), list) else (record,):
                yield from _open(dict_of(run), "", "", len(memoryview(raw)))


def _open(run: dict[str, Any], parent: str, trace: str, size: int, depth: int = 0) -> Iterator[tuple[TraceSpan, int]]:
    """Yield a run after its children: it ends after them."""
    own = string_of(run.get("id"))
    trace = string_of(run.get("trace_id")) or trace or own
    children = run.get("child_runs")
    inner = [child for child in children if isinstance(child, dict)] if isinstance(children, list) else []
    for child in inner if depth < _MAX_DEPTH else ():
        yield from _open(child, own, trace, size // (len(inner) + 1), depth + 1)
    if _is_run({"trace_id": trace, **run}):
        yield _span(run, parent, trace), size


def _span(run: dict[str, Any], parent: str, trace: str) -> TraceSpan:
    metadata = dict_of(dict_of(run.get("extra")).get("metadata"))
    invoked = dict_of(dict_of(run.get("extra")).get("invocation_params"))
    kind = _KINDS.get(string_of(run.get("run_type")), "CHAIN")
    inputs, outputs = run.get("inputs"), run.get("outputs")
    model = metadata.get("ls_model_name") or invoked.get("model") or invoked.get("model_name")
    details = dict_of(run.get("prompt_token_details"))
    attributes: dict[str, Any] = {
        "openinference.span.kind": kind,
        "gen_ai.input.messages": inputs if kind == "LLM" else None,
        "gen_ai.output.messages": outputs if kind == "LLM" else None,
        "input.value": _unwrap(inputs, "input"),
        "output.value": _unwrap(outputs, "output"),
        "tool.name": run.get("name"),
        "tool_call.id": dict_of(
            dict_of(dict_of(outputs).get("output")).get("kwargs") or dict_of(outputs).get("output")
        ).get("tool_call_id"),
        "llm.model_name": model,
        "llm.token_count.prompt": run.get("prompt_tokens"),
        "llm.token_count.completion": run.get("completion_tokens"),
        "llm.token_count.prompt_details.cache_read": details.get("cache_read"),
        "llm.cost.total": run.get("total_cost"),
        "session.id": next((text for key in _THREADS if (text := string_of(metadata.get(key)))), None),
    }
    error = string_of(run.get("error"))
    return TraceSpan(
        id=string_of(run.get("id")),
        parent=string_of(run.get("parent_run_id")) or parent,
        trace=trace,
        name=string_of(run.get("name")),
        scope="",
        start=parse_time(run.get("start_time")),
        end=parse_time(run.get("end_time")),
        attributes={key: value for key, value in attributes.items() if value is not None},
        resource={},
        failed=True if error or run.get("status") == "error" else None,
        message=error,
    )


def _unwrap(value: Any, name: str) -> Any:
    """Return a run's only input or output; of a LangChain message its content."""
    inner = value[name] if isinstance(value, dict) and len(value) == 1 and name in value else value
    message = dict_of(dict_of(inner).get("kwargs")) or dict_of(inner)
    return message["content"] if "tool_call_id" in message and "content" in message else inner
