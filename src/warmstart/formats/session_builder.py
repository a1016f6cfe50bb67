"""A session under construction: steps arrive in order; each result is judged on its whole text, then shortened."""

from __future__ import annotations

import hashlib
from collections import deque
from typing import Any

import msgspec

from warmstart.excerpt import ARGUMENT, MESSAGE, RESULT, cut, cut_value
from warmstart.formats.source import Source
from warmstart.model import (
    Arguments,
    Message,
    Role,
    Session,
    SessionOwner,
    Signal,
    Spent,
    Step,
    ToolCall,
    ToolResult,
    Usage,
)
from warmstart.ports import Judge
from warmstart.usage.amounts import Tally, TokenMeter, add_up, day_of, settle

_WHOLE = 200_000  # characters kept of a text that is wanted in full
_FULL = 24_000_000  # characters kept per session; after that each step keeps _LITTLE
_LITTLE = 300
_NAME = 200  # characters of an id or a tool's name
_DEPTH = 12  # levels of arguments that are measured
_FIRST_STEPS, _LAST_STEPS = 60_000, 40_000  # steps kept of an endless session; those between are only counted

_NO_USAGE = Usage()


class SessionBuilder:
    """Builds one session. A reader sets facts (`model`, `label` ...) as attributes and adds the steps in order."""

    def __init__(self, source: Source, judge: Judge, *, format: str, agent: str, id: str = "") -> None:
        self.id = id
        self.format = format
        self.agent = agent
        self.fragment = ""  # the place of this session in a file of many
        self.model: str | None = None
        self.project: str | None = None
        self.task: str | None = None
        self.opening: str | None = None
        self.started: float | None = None
        self.ended: float | None = None
        self.end_reason: str | None = None
        self.usage: Usage | None = None  # totals of the session, where the transcript gives them
        self.label: bool | None = None
        self.parent: str | None = None
        self.owner = SessionOwner()
        self.remote: str | None = None
        self.source: str | None = None
        self._source = source
        self._limits = (_WHOLE, _WHOLE, _WHOLE) if source.whole else (MESSAGE, ARGUMENT, RESULT)
        self._judge = judge
        self._first: list[Step] = []
        self._last: deque[Step] = deque(maxlen=_LAST_STEPS)
        self._unkept = 0
        self._kept = 0
        self._open: dict[str, ToolCall] = {}
        self._unnamed: deque[str] = deque()  # ids made for calls without one, oldest first
        self._calls = 0
        self._reported = Tally()
        self._meter: TokenMeter | None = TokenMeter()  # estimates tokens until the transcript reports them

    @property
    def empty(self) -> bool:
        """Whether no step has been added."""
        return not self._first

    def message(self, role: Role, text: str, at: float | None = None) -> None:
        """Add a message; blank text is left out. The first user message becomes the task."""
        if not text or text.isspace():
            return
        if role == "user" and self.task is None:
            self.task = cut(text, MESSAGE)
        if self._meter is not None:
            self._meter.say(len(text), at) if role == "assistant" else self._meter.hear(len(text))
        self._add(Message(role, self._cut(text, self._limits[0]), at), at)

    def call(self, call_id: str, tool: str, arguments: Arguments | None, at: float | None = None) -> None:
        """Add a tool call. A call without an id ("") gets one; the next result without an id answers it."""
        self._calls += 1
        if not call_id:
            call_id = f"call_{self._calls}"
            self._unnamed.append(call_id)
        if self._meter is not None:
            self._meter.say(len(tool) + measure_value(arguments), at)
        kept = cut_value(arguments if arguments is not None else {}, self._limits[1] if self._kept < _FULL else _LITTLE)
        call_id = call_id[:_NAME]
        call = ToolCall(call_id, tool[:_NAME], kept, at)
        self._open[call_id] = call
        self._add(call, at)

    def find_open(self, call_id: str) -> ToolCall | None:
        """Return a call that has no result yet."""
        return self._open.get(call_id[:_NAME])

    def replace(self, call_id: str, arguments: Arguments) -> None:
        """Give a call without a result yet the arguments with which it really runs."""
        call = self.find_open(call_id)
        if call is None:
            return
        ran = msgspec.structs.replace(
            call, arguments=cut_value(arguments, self._limits[1] if self._kept < _FULL else _LITTLE)
        )
        for steps in (self._last, self._first):
            for place in range(len(steps) - 1, -1, -1):
                if steps[place] is call:
                    steps[place] = ran
                    self._open[ran.call_id] = ran
                    return

    def result(self, call_id: str, text: str, at: float | None = None, signal: Signal | None = None) -> None:
        """Add a tool result. `signal` is what the transcript says about its success beside the text."""
        if not call_id:
            call_id = self._unnamed.popleft() if self._unnamed else f"result_{self._calls}"
        call_id = call_id[:_NAME]
        if self._meter is not None:
            self._meter.hear(len(text))
        outcome = self._judge(self._open.pop(call_id, None), text, signal)
        self._add(ToolResult(call_id, self._cut(text, self._limits[2]), outcome, at), at)

    def spend(self, usage: Usage, model: str | None = None, at: float | None = None) -> None:
        """Add the tokens that the transcript reports for one answer, or for all answers of a model."""
        if usage == _NO_USAGE:
            return
        if at is not None:
            self._meter = None
        self._reported.take(usage, model or "", day_of(at))

    def stop_estimating(self) -> None:
        """Turn off the estimate of tokens: the transcript reports them with their days."""
        self._meter = None

    def close(self) -> Session:
        """Return the finished session."""
        spent = self._spent()
        steps = (*self._first, *self._last)
        if self._unkept:
            self._source.report(f"session {self.id}: {self._unkept} steps in the middle were counted but not kept")
        return Session(
            id=self.id or self._content_id(),
            format=self.format,
            source_uri=self._source.uri + (f"#{self.fragment}" if self.fragment else ""),
            agent=self.agent,
            steps=steps,
            model=self.model,
            project=self.project,
            task=self.task,
            started=self.started,
            ended=self.ended,
            end_reason=self.end_reason,
            usage=add_up(spent),
            label=self.label,
            parent=self.parent,
            owner=self.owner,
            remote=self.remote,
            source=self.source,
            opening=self.opening,
            unkept=self._unkept,
            spent=spent,
        )

    def _spent(self) -> tuple[Spent, ...]:
        """Return the tokens by model and day; the session's own model and day fill the gaps."""
        estimate = self._meter.spent() if self._meter is not None else ()
        named = Tally()
        day = day_of(self.ended if self.started is None else self.started)
        for part in settle(self._reported.spent(), self.usage, estimate):
            named.take(part.usage, part.model or self.model or "", part.day or day)
        return named.spent()

    def _content_id(self) -> str:
        """Make an id from the file's name and the first step, so that it stays the same while the file grows."""
        key = [self._source.path.name, self.fragment, *(msgspec.json.encode(step)[:500] for step in self._first[:1])]
        return "h" + hashlib.blake2b(msgspec.json.encode(key), digest_size=10).hexdigest()

    def _add(self, step: Step, at: float | None) -> None:
        if at is not None:
            if self.started is None or at < self.started:
                self.started = at
            if self.ended is None or at > self.ended:
                self.ended = at
        if len(self._first) < _FIRST_STEPS:
            self._first.append(step)
            return
        if len(self._last) == _LAST_STEPS:
            self._unkept += 1
        self._last.append(step)

    def _cut(self, text: str, limit: int) -> str:
        if self._kept >= _FULL:
            limit = _LITTLE
        kept = text if len(text) <= limit else cut(text, limit)
        self._kept += len(kept)
        return kept


def measure_value(value: Any, depth: int = 0) -> int:
    """Return about how many characters a value has as JSON."""
    if isinstance(value, str):
        return len(value) + 2
    if depth >= _DEPTH:
        return 4
    if isinstance(value, dict):
        size = 6 * len(value)
        for key, inner in value.items():
            size += len(key) + (len(inner) + 2 if type(inner) is str else measure_value(inner, depth + 1))
        return size
    if isinstance(value, list):
        return sum([2 + measure_value(inner, depth + 1) for inner in value])
    return 4
