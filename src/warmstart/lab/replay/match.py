"""Match a proposed call with the recorded ones, and answer it from the record.

Two calls are the same if their tool is the same and their arguments are equal in this normal form:
1. strings longer than transcripts keep are cut like the record's: head and tail with the number left out;
2. arguments that only describe a call (`description`, `timeout`, ..., see `calls.shapes`) and null ones are left out at the
   top level; the order of keys matters nowhere;
3. numbers are equal by value (5, 5.0, 5e0); a number never equals a string of digits, true or false;
4. line ends are LF, and spaces at the ends of lines and of the string are dropped; in a string of one line each run of
   spaces and tabs is one space. Indentation in strings of several lines stays: in code it has meaning;
5. arguments that are plain text count as `{"input": text}`, as seeds show them.

A call that only repeats one of the seed is a copy. It agrees with the record if it is the exact call that worked there; a
copied tool and shape say nothing about the model.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, Literal

from msgspec import Struct, structs

from warmstart.calls.shapes import canonical, shape, values_of
from warmstart.dialects.providers import NO_OUTPUT
from warmstart.endpoints.chat import AskedCall
from warmstart.excerpt import ARGUMENT, cut_value
from warmstart.lab.models.tool_calls import read_arguments
from warmstart.model import Status

NOTHING_RECORDED = (
    "[replay] Nothing was recorded for this call, so its output is not known. Go on with what you have,"
    " or call something else."
)
NO_SUCH_TOOL = "[replay] There is no tool of this name here."
NO_OBJECT = "[replay] The arguments are not a JSON object, so the call was not made."

Form = Literal["good", "malformed", "unknown_tool"]
NormalForm = tuple[str, bytes]  # equal for equal calls

_LARGE = 2**63
_BLANKS = re.compile(r"[ \t]+")
_LINE_ENDS = re.compile(r"[ \t]*(?:\r\n|\r|\n)")


class RecordedCall(Struct, frozen=True, kw_only=True):
    """A call of a recorded session, redacted and judged."""

    tool: str
    arguments: dict[str, Any]
    result: str  # head and tail, as transcripts are kept
    status: Status


class Proposed(Struct, frozen=True, kw_only=True):
    """A call that the model proposed in a replay, compared with the record."""

    turn: int  # from 1
    tool: str
    form: Form = "good"
    tool_worked: bool = False  # some recorded call of this tool worked
    shape_worked: bool = False  # some recorded call of this shape worked
    matched: Status | None = None  # outcome of the recorded call it equals; None: it equals none
    shown: bool = False  # a seed of this session contains it, in any arm: all arms are counted alike
    repeated: bool = False  # it was proposed before in this replay

    @property
    def exact(self) -> bool:
        return self.matched == "ok"

    @property
    def own(self) -> bool:
        """Whether it is the exact call that worked and no seed gave it away."""
        return self.exact and not self.shown

    @property
    def repeats_error(self) -> bool:
        return self.matched == "error"


class RecordPlayer:
    """Answers calls from one recorded session. It counts how often each was asked, so one player serves one replay."""

    def __init__(
        self, calls: Sequence[RecordedCall], offered: Collection[str] = (), shown: Collection[NormalForm] = ()
    ) -> None:
        """`offered`: tools that may be called beside the recorded ones. `shown`: calls in the session's seeds."""
        self._tools = {call.tool for call in calls} | set(offered)
        self._shown = frozenset(shown)
        worked = [call for call in calls if call.status == "ok"]
        self._worked_tools = {call.tool for call in worked}
        self._worked_shapes = {shape(call.tool, call.arguments) for call in worked}
        self._recorded: dict[NormalForm, list[RecordedCall]] = {}
        for call in calls:
            self._recorded.setdefault(normal_form(call.tool, call.arguments), []).append(call)
        self._served: dict[NormalForm, int] = {}
        self._proposed: set[NormalForm] = set()

    def answer(self, asked: AskedCall, turn: int) -> tuple[Proposed, str]:
        """Return the matched call and its result. Equal recorded calls answer in their order, then the last one again."""
        arguments = read_arguments(asked.arguments)
        form = (asked.name, asked.arguments.encode("utf-8", "replace"))
        if arguments is not None:
            form = normal_form(asked.name, arguments)
        repeated = form in self._proposed
        self._proposed.add(form)
        proposed = Proposed(turn=turn, tool=asked.name, repeated=repeated)
        if asked.name not in self._tools:
            return structs.replace(proposed, form="unknown_tool"), NO_SUCH_TOOL
        worked = asked.name in self._worked_tools
        if arguments is None:
            return structs.replace(proposed, form="malformed", tool_worked=worked), NO_OBJECT
        recorded = self._next(form)
        shown = form in self._shown
        is_choice = not shown or (recorded is not None and recorded.status == "ok")
        proposed = structs.replace(
            proposed,
            tool_worked=is_choice and worked,
            shape_worked=is_choice and shape(asked.name, arguments) in self._worked_shapes,
            matched=recorded.status if recorded else None,
            shown=shown,
        )
        if recorded is None:
            return proposed, NOTHING_RECORDED
        return proposed, recorded.result if recorded.result.strip() else NO_OUTPUT

    def _next(self, form: NormalForm) -> RecordedCall | None:
        calls = self._recorded.get(form)
        if not calls:
            return None
        at = self._served.get(form, 0)
        self._served[form] = at + 1
        return calls[min(at, len(calls) - 1)]


def normal_form(tool: str, arguments: dict[str, Any]) -> NormalForm:
    """Return the normal form of a call, see the module's docstring."""
    kept = cut_value(arguments, ARGUMENT)
    values = {name: _normalise(value) for name, (_form, value) in values_of(kept).items() if value is not None}
    return tool, canonical(values)


def _normalise(value: Any) -> Any:
    if isinstance(value, str):
        text = _LINE_ENDS.sub("\n", value).strip()
        return text if "\n" in text else _BLANKS.sub(" ", text)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and abs(value) >= _LARGE:
        return str(value)  # no JSON writer accepts it
    if isinstance(value, dict):
        return {name: _normalise(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_normalise(inner) for inner in value]
    return value
