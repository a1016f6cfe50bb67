"""A session while it is being read: steps arrive in order, results are judged on their whole text and then shortened."""

from __future__ import annotations

import hashlib
from collections import deque
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from warmstart.excerpt import ARGUMENT, MESSAGE, RESULT, cut, cut_value
from warmstart.formats.source import Source
from warmstart.model import Arguments, Message, Role, Session, Signal, Spent, Step, ToolCall, ToolResult, Usage
from warmstart.ports import Judge
from warmstart.usage.amounts import Tally, TokenMeter, add_up, day_of, settle

_MANY = 1 << 50  # of nothing are there so many tokens or dollars
Count = Annotated[int, msgspec.Meta(ge=0, lt=_MANY)]  # of tokens, in what is decoded
_PLENTY = 24_000_000  # characters kept in all; after that each step keeps little
_LITTLE = 300
_NAME = 200  # characters of an id or a tool's name
_DEPTH = 12  # of arguments that are measured
_FIRST_STEPS, _LAST_STEPS = 60_000, 40_000  # of an endless session the middle is counted, not kept

_UNTOLD = Usage()
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class SessionBuilder:
    """Collects one session. Facts are plain attributes that the reader sets as it learns them."""

    def __init__(self, source: Source, judge: Judge, *, format: str, agent: str, id: str = "") -> None:
        self.id = id
        self.format = format
        self.agent = agent
        self.fragment = ""  # where in a file of many sessions
        self.model: str | None = None
        self.project: str | None = None
        self.task: str | None = None
        self.started: float | None = None
        self.ended: float | None = None
        self.end_reason: str | None = None
        self.usage: Usage | None = None  # of the whole session, where the transcript sums it up
        self.label: bool | None = None
        self.parent: str | None = None
        self._source = source
        self._judge = judge
        self._first: list[Step] = []
        self._last: deque[Step] = deque(maxlen=_LAST_STEPS)
        self._unkept = 0
        self._kept = 0
        self._open: dict[str, ToolCall] = {}
        self._unnamed: deque[str] = deque()  # calls that came without an id, oldest first
        self._calls = 0
        self._told = Tally()
        self._meter: TokenMeter | None = TokenMeter()  # until the transcript itself says what an answer took

    @property
    def empty(self) -> bool:
        return not self._first

    def message(self, role: Role, text: str, at: float | None = None) -> None:
        if not text or text.isspace():
            return
        if role == "user" and self.task is None:
            self.task = cut(text, MESSAGE)
        if self._meter is not None:
            self._meter.say(len(text), at) if role == "assistant" else self._meter.hear(len(text))
        self._add(Message(role, self._cut(text, MESSAGE), at), at)

    def call(self, call_id: str, tool: str, arguments: Arguments | None, at: float | None = None) -> None:
        """A tool call. Without an id ("") it gets one, and the next result without an id is its answer."""
        self._calls += 1
        if not call_id:
            call_id = f"call_{self._calls}"
            self._unnamed.append(call_id)
        if self._meter is not None:
            self._meter.say(len(tool) + measure(arguments), at)
        kept = cut_value(arguments if arguments is not None else {}, ARGUMENT if self._kept < _PLENTY else _LITTLE)
        call_id = call_id[:_NAME]
        call = ToolCall(call_id, tool[:_NAME], kept, at)
        self._open[call_id] = call
        self._add(call, at)

    def result(self, call_id: str, text: str, at: float | None = None, signal: Signal | None = None) -> None:
        if not call_id:
            call_id = self._unnamed.popleft() if self._unnamed else f"result_{self._calls}"
        call_id = call_id[:_NAME]
        if self._meter is not None:
            self._meter.hear(len(text))
        outcome = self._judge(self._open.pop(call_id, None), text, signal)
        self._add(ToolResult(call_id, self._cut(text, RESULT), outcome, at), at)

    def spend(self, usage: Usage, model: str | None = None, at: float | None = None) -> None:
        """Tokens of an answer, or of all answers of a model, as the transcript reports them."""
        if usage == _UNTOLD:
            return
        if at is not None:
            self._meter = None
        self._told.take(usage, model or "", day_of(at))

    def stop_guessing(self) -> None:
        """The transcript reports its tokens with their days: nothing needs to be guessed from the text."""
        self._meter = None

    def close(self) -> Session:
        spent = self._spent()
        steps = (*self._first, *self._last)
        if self._unkept:
            self._source.report(f"session {self.id}: {self._unkept} steps in the middle are counted, not kept")
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
            unkept=self._unkept,
            spent=spent,
        )

    def _spent(self) -> tuple[Spent, ...]:
        """By model and day, each of them named as far as the session knows it."""
        guess = self._meter.spent() if self._meter is not None else ()
        named = Tally()
        day = day_of(self.ended if self.started is None else self.started)
        for part in settle(self._told.spent(), self.usage, guess):
            named.take(part.usage, part.model or self.model or "", part.day or day)
        return named.spent()

    def _content_id(self) -> str:
        """For sessions whose agent gave them no id: the file's name and how it begins, so that it may grow."""
        said = [self._source.path.name, self.fragment, *(msgspec.json.encode(step)[:500] for step in self._first[:1])]
        return "h" + hashlib.blake2b(msgspec.json.encode(said), digest_size=10).hexdigest()

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
        kept = cut(text, limit if self._kept < _PLENTY else _LITTLE)
        self._kept += len(kept)
        return kept


def measure(value: Any, depth: int = 0) -> int:
    """About how many characters an argument has as JSON."""
    if isinstance(value, str):
        return len(value) + 2
    if depth >= _DEPTH:
        return 4
    if isinstance(value, dict):
        return sum([len(key) + 6 + measure(inner, depth + 1) for key, inner in value.items()])
    if isinstance(value, list):
        return sum([2 + measure(inner, depth + 1) for inner in value])
    return 4


def count_of(value: Any) -> int | None:
    """A number of tokens; what cannot be one is not known."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MANY else None


def dollars_of(value: Any) -> float | None:
    """A cost, in the same way."""
    return (
        float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _MANY else None
    )


def parse_arguments(text: Any) -> Arguments:
    """Arguments that came as JSON text: an object, or the text itself where it is none."""
    if isinstance(text, dict):
        return text
    if not isinstance(text, str):
        return {} if text is None else str(text)
    if not text.strip():
        return {}
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text


def parse_time(text: str | float | int | None) -> float | None:
    """Seconds since the epoch from ISO text, seconds or milliseconds; a time without a zone is taken as UTC."""
    if text is None or text == "":
        return None
    if isinstance(text, (int, float)):
        if not 0 <= text < 1e15:
            return None
        return text / 1000 if text > 1e11 else float(text)
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
