"""OpenTelemetry spans of agents: OpenInference (`openinference.span.kind`), OTel GenAI (`gen_ai.*`) and OpenLLMetry.

Read are OTLP JSON, spans as OpenTelemetry's console exporters print them, and the trees of the TRAIL benchmark. A session is
a conversation (`session.id`, `gen_ai.conversation.id`) or else a trace; an agent that runs inside of another is a session
of its own. A tool span with the status Error has failed. The code that a smolagents step runs is a call of
`python_interpreter`. The GenAI conventions followed are those of OpenTelemetry v1.41 and, for prompts in numbered
attributes, of v1.36 and OpenLLMetry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warmstart.formats.fields import dict_of
from warmstart.formats.otel_spans import is_span, read_otel_spans
from warmstart.formats.source import Source, SourceHead
from warmstart.formats.span_sessions import read_span_sessions
from warmstart.formats.span_values import speaks_of_models
from warmstart.model import Session
from warmstart.ports import Judge

NAME = "otel"

_BATCH = re.compile(r'\s*\{\s*"resourceSpans"\s*:\s*\[')
_TREE = re.compile(r'"spans"\s*:\s*\[\s*\{[^{}\[\]]*"span_id"')
_WORDS = re.compile(r'"(?:gen_ai|openinference|llm|traceloop)\.')


def sniff(head: SourceHead) -> bool:
    first = head.first
    if "resourceSpans" in first or _BATCH.match(head.text):
        return _WORDS.search(head.text) is not None
    if head.root == "object" and "trace_id" in first:  # a tree, which may be longer than the head
        return _TREE.search(head.text) is not None
    return any(is_span(record) and speaks_of_models(dict_of(record.get("attributes"))) for record in head.records)


def read(source: Source, judge: Judge) -> Iterator[Session]:
    yield from read_span_sessions(source, judge, NAME, read_otel_spans(source))
