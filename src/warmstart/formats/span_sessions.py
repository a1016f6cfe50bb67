"""Sessions made of spans: the answers of models and the runs of tools, in the order in which they ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b

from warmstart.excerpt import MESSAGE, cut
from warmstart.formats.chat import ROLES
from warmstart.formats.fields import dict_of, parse_arguments, string_of
from warmstart.formats.outcomes import read_outcome
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source
from warmstart.formats.span_messages import SpanMessage
from warmstart.formats.span_values import (
    find_text,
    kind_of,
    read_instructions,
    read_messages,
    read_run,
    read_usage,
)
from warmstart.formats.spans import TraceSpan, order_spans
from warmstart.model import Session, Signal
from warmstart.ports import Judge

_CODE_TOOL = "python_interpreter"
_STEP = re.compile(r"Step \d+$")
_CODE = re.compile(r"```(?:py|python)?\n(.*?)\n?```", re.S)
_CONVERSATIONS = ("session.id", "gen_ai.conversation.id", "traceloop.association.properties.session_id")
_AGENTS = ("gen_ai.agent.name", "agent.name", "graph.node.id")
_MAX_ANCESTORS = 64
_MAX_KNOWN = 1_000_000  # spans whose parents are remembered
_MAX_OPEN = 2_000  # sessions that are built at the same time


def read_span_sessions(
    source: Source, judge: Judge, format: str, spans: Iterator[tuple[TraceSpan, int]]
) -> Iterator[Session]:
    """Yield the sessions of a file's spans, which come with their sizes in bytes and in any order."""
    family = _SpanFamily()
    sessions = _SpanSessions(source, judge, format, family)
    for span in order_spans(spans, family.add):
        yield from sessions.take(span)
    yield from sessions.rest()


class _SpanFamily:
    """The parents of spans, known as soon as a span is read, before its turn comes."""

    def __init__(self) -> None:
        self._parents: dict[str, tuple[str, bool, bool]] = {}  # parent, whether an agent, whether a step
        self._conversations: dict[str, str] = {}  # by trace

    def add(self, span: TraceSpan) -> None:
        if span.id and len(self._parents) < _MAX_KNOWN:
            step = bool(_STEP.match(span.name)) and "smolagents" in span.scope
            self._parents[span.id] = (span.parent, kind_of(span) == "agent", step)
        if conversation := find_text(span, *_CONVERSATIONS):
            self._conversations.setdefault(span.trace, conversation)

    def conversation(self, trace: str) -> str:
        return self._conversations.get(trace, "")

    def is_step(self, span_id: str) -> bool:
        return self._parents.get(span_id, ("", False, False))[2]

    def agents(self, span: TraceSpan) -> list[str]:
        """Return the agents that a span belongs to, the innermost first."""
        found: list[str] = []
        at = span.id
        for _ in range(_MAX_ANCESTORS):
            if at not in self._parents:
                break
            parent, is_agent, _step = self._parents[at]
            if is_agent:
                found.append(at)
            at = parent
        return found


class _SpanSessions:
    """The sessions of a file, each built from the spans of one agent in one conversation or trace."""

    def __init__(self, source: Source, judge: Judge, format: str, family: _SpanFamily) -> None:
        self._source = source
        self._judge = judge
        self._format = format
        self._family = family
        self._open: dict[str, _SpanReader] = {}
        self._taken: set[str] = set()

    def take(self, span: TraceSpan) -> Iterator[Session]:
        """Add a span; yield the sessions that it ends."""
        if not span.trace or span.id in self._taken:  # exporters send some spans twice
            return
        if span.id and len(self._taken) < _MAX_KNOWN:
            self._taken.add(span.id)
        conversation = self._family.conversation(span.trace)
        agents = self._family.agents(span)
        main = conversation or span.trace
        outer = [f"{main}/{agent}" for agent in agents[:-1]]  # the outermost agent is the session itself
        key = outer[0] if outer else main
        if key not in self._open:
            self._open[key] = _SpanReader(
                SessionBuilder(self._source, self._judge, format=self._format, agent=self._format, id=key)
            )
            self._open[key].draft.parent = (outer[1] if len(outer) > 1 else main) if outer else None
        reader = self._open[key]
        reader.take(span, self._family.is_step(span.parent))
        ended = (kind_of(span) == "agent" if outer else not span.parent and not conversation) and not reader.draft.empty
        if ended:
            yield from self._open.pop(key).sessions()
        elif len(self._open) > _MAX_OPEN:
            yield from self._open.pop(next(iter(self._open))).sessions()

    def rest(self) -> Iterator[Session]:
        for reader in self._open.values():
            yield from reader.sessions()


class _SpanReader:
    """Adds the spans of one session to its builder."""

    def __init__(self, draft: SessionBuilder) -> None:
        self.draft = draft
        self._asked = False  # whether a model has been asked
        self._heard: set[bytes] = set()  # digests of the messages that were added
        self._calls: dict[str, str] = {}  # tools of calls that a model wrote and no tool answered yet, by id

    def take(self, span: TraceSpan, in_step: bool) -> None:
        draft, kind = self.draft, kind_of(span)
        if draft.fragment == "" and span.trace != draft.id:
            draft.fragment = span.trace[:64]
        draft.project = draft.project or string_of(span.resource.get("openinference.project.name")) or None
        if draft.agent == draft.format and span.scope and kind != "other":
            draft.agent = span.scope.rpartition(".")[2] or draft.agent
        if kind == "model":
            self._take_answer(span, in_step)
        elif kind == "tool":
            self._take_run(span)
        elif kind == "agent":
            self._take_agent(span)
        elif draft.find_open(span.id):  # a step that ran code
            text = find_text(span, "output.value") or span.message
            draft.result(span.id, text, span.end, None if span.failed is None else Signal(failed=span.failed))

    def _take_answer(self, span: TraceSpan, in_step: bool) -> None:
        draft = self.draft
        model = find_text(span, "gen_ai.response.model", "llm.model_name", "gen_ai.request.model") or None
        draft.model = draft.model or model
        self._take_input(span)
        draft.spend(read_usage(span), model, span.end)
        for message in read_messages(span, "output"):
            draft.message("assistant", message.text, span.end)
            for call in message.calls:
                call_id = call.id or f"{span.id}.{len(self._calls)}"
                self._calls[call_id] = call.tool
                draft.call(call_id, call.tool, call.arguments, span.end)
            code = _CODE.search(message.text) if in_step and not message.calls else None
            if code:
                draft.call(span.parent, _CODE_TOOL, {"code": code[1]}, span.end)

    def _take_input(self, span: TraceSpan) -> None:
        """Add the messages of a prompt that are new: all of the first, then those after the last answer."""
        messages = read_messages(span, "input")
        if instructions := read_instructions(span):
            messages.insert(0, SpanMessage("system", instructions))
        answered = [n for n, message in enumerate(messages) if message.role in ("assistant", "model")]
        if self._asked:
            messages = messages[answered[-1] + 1 :] if answered else []
        self._asked = True
        for message in messages:
            if message.answers in self._calls:
                self._calls.pop(message.answers)
                self.draft.result(message.answers, message.text, span.start)
            elif role := ROLES.get(message.role):
                mark = blake2b(f"{role}:{message.text}".encode("utf-8", "replace"), digest_size=8).digest()
                if mark not in self._heard:
                    self._heard.add(mark)
                    self.draft.message(role, message.text, span.start)

    def _take_run(self, span: TraceSpan) -> None:
        tool, call, text = read_run(span)
        waiting = call.id if call.id in self._calls else next((i for i, t in self._calls.items() if t == tool), "")
        if waiting:
            self._calls.pop(waiting)
        else:
            waiting = call.id or span.id
            self.draft.call(waiting, tool, call.arguments, span.start)
        failed = True if span.failed is None and "error.type" in span.attributes else span.failed
        if failed and span.message and span.message not in text:
            text = f"{text}\n{span.message}" if text else span.message
        signal = read_outcome(span.attributes.get("warmstart.outcome"))
        self.draft.result(waiting, text, span.end, signal or (None if failed is None else Signal(failed=failed)))

    def _take_agent(self, span: TraceSpan) -> None:
        draft = self.draft
        draft.agent = find_text(span, *_AGENTS) or draft.agent
        asked = dict_of(parse_arguments(span.attributes.get("input.value"))).get("task")
        if isinstance(asked, str) and asked:
            draft.task = cut(asked, MESSAGE)
        if span.failed:
            draft.end_reason = "error"

    def sessions(self) -> Iterator[Session]:
        if not self.draft.empty:
            yield self.draft.close()
