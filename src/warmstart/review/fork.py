"""Fork the parent's conversation and ask the model one more question at its end.

Everything before that question, including the tools, is the parent's request byte for byte, so that the provider's cache of
the conversation serves the review. The model therefore sees tools that it may not use here: such calls are denied, and the
review continues.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from warmstart.dialects.providers import text_of_content
from warmstart.dialects.tokens import estimate
from warmstart.endpoints.chat import LLM, AskedCall, Reply, write_body
from warmstart.endpoints.forms import CHAT, WireForm
from warmstart.review.snapshot import Snapshot
from warmstart.review.spending import DailyBudget

_CACHED = 10  # cached tokens count a tenth: about what they cost
_LONGEST = 900.0  # seconds of a whole review
_LONGEST_RESULT = 2_000
_MOST_CALLS = 20  # per answer; nobody reads more proposals than that
_NOT_SENT = (
    "stream",
    "stream_options",
    "timeout",
    "extra_headers",
    "extra_query",
    "extra_body",
    "n",
    "messages",
    "input",
)
_NOT_GIVEN = ("NotGiven", "Omit")  # the SDK's types for an argument that is not set
_BLOCK = re.compile(r"^```tool_call[ \t]*\n(.*?)^```[ \t]*$", re.S | re.M)

RunTool = Callable[[AskedCall], Mapping[str, Any]]


class ForkLimits(Struct, frozen=True):
    """How far a review may go."""

    steps: int = 16
    budget: int = 200_000  # tokens


class ForkRun(Struct, kw_only=True):
    """A forked conversation after it ran."""

    messages: list[dict[str, Any]]  # the whole forked conversation
    results: list[dict[str, Any]] = field(default_factory=list)  # the results of its calls
    steps: int = 0
    tokens: int = 0
    ended: str = "done"  # done, steps, budget, day, time, stopped


class Fork:
    """Forks conversations for one model."""

    def __init__(
        self,
        llm: LLM,
        request: Mapping[str, Any],
        limits: ForkLimits,
        form: WireForm = CHAT,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_stopped` is asked before every call: the host ends, and an answer that nobody reads would be paid for."""
        self._llm = llm
        self._form = form
        self._request = make_request(request, form.field)
        self._limits = limits
        self._is_stopped = is_stopped
        self.budget: DailyBudget | None = None  # what all reviews may use in a day

    def run(self, snapshot: Snapshot, instruction: str, run_tool: RunTool) -> ForkRun:
        """Call the model and run its allowed tool calls, until it makes no more calls or a limit is reached."""
        parents = snapshot.history if snapshot.wire is None else snapshot.wire
        ran = ForkRun(messages=[*parents, self._form.write_message("user", instruction)])
        taken = find_call_ids(snapshot.history)
        deadline = time.monotonic() + _LONGEST
        while True:
            body = write_body(self._request | {self._form.field: ran.messages})
            if stop := self._find_limit(ran, body, deadline):
                ran.ended = stop
                return ran
            reply = self._llm.ask(body)
            ran.steps += 1
            tokens = count_tokens(reply, body)
            ran.tokens += tokens
            if self.budget is not None:
                self.budget.spend(tokens)
            if not _answer(ran, reply, run_tool, taken, self._form):
                return ran

    def _find_limit(self, ran: ForkRun, body: bytes, deadline: float) -> str:
        if self._is_stopped():
            return "stopped"
        if ran.steps >= self._limits.steps:
            return "steps"
        expected = estimate(body.decode()) // _CACHED
        if ran.tokens + expected > self._limits.budget:
            return "budget"
        if self.budget is not None and expected > self.budget.left():
            return "day"
        return "time" if time.monotonic() > deadline else ""


def make_request(request: Mapping[str, Any], field: str = "messages") -> dict[str, Any]:
    """Return the parent's request without messages, and without options that would make the answer unreadable here."""
    kept = {key: request[key] for key in sorted(request) if key not in _NOT_SENT}  # in the SDK's order
    kept = {key: value for key, value in kept.items() if type(value).__name__ not in _NOT_GIVEN}
    if kept.get("tool_choice", "auto") not in ("auto", {"type": "auto"}):
        del kept["tool_choice"]  # a forced call would never let the review end
    extra = request.get("extra_body")
    first = {"model": kept.pop("model", ""), field: []}
    return first | kept | (dict(extra) if isinstance(extra, Mapping) else {})


def find_call_ids(messages: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the ids of all calls and results."""
    ids = {str(message["tool_call_id"]) for message in messages if message.get("tool_call_id")}
    for message in messages:
        ids |= {str(call.get("id")) for call in message.get("tool_calls") or () if isinstance(call, Mapping)}
    return ids


def find_new_results(messages: Sequence[Mapping[str, Any]], snapshot: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the tool results of a forked conversation that are not in its snapshot, by call id, or by content if it
    has none."""
    ids = find_call_ids(snapshot)
    contents = {text_of_content(message.get("content")) for message in snapshot if message.get("role") == "tool"}
    results = []
    for message in messages:
        if message.get("role") != "tool":
            continue
        id, text = message.get("tool_call_id"), text_of_content(message.get("content"))
        if (id not in ids) if id else (text not in contents):
            results.append(text)
    return results


def count_tokens(reply: Reply, body: bytes) -> int:
    """Count the tokens of a call to the model; estimate what the endpoint does not report."""
    sent = reply.prompt_tokens if reply.prompt_tokens is not None else estimate(body.decode())
    cached = min(reply.cached_tokens or 0, sent)
    answered = reply.answer_tokens
    if answered is None:
        answered = estimate(reply.text + "".join(call.arguments for call in reply.calls))
    return sent - cached + cached // _CACHED + answered


def _answer(ran: ForkRun, reply: Reply, run_tool: RunTool, taken: set[str], form: WireForm) -> bool:
    """Run the model's calls and append them and their results to the conversation; return whether there were any."""
    if reply.calls:
        calls = [_name_call(call, taken) for call in reply.calls[:_MOST_CALLS]]
        ran.messages += form.write_calls(reply, calls)
        results = [_run_call(call, run_tool) for call in calls]
        ran.messages += form.write_results([(result["tool_call_id"], result["content"]) for result in results])
        ran.results += results
        return True
    written = [_name_call(call, taken) for call in read_written_calls(reply.text)[:_MOST_CALLS]]
    ran.messages.append(form.write_message("assistant", reply.text))
    if not written:
        return False
    results = [_run_call(call, run_tool) for call in written]
    ran.messages.append(form.write_message("user", "Results:\n" + "\n".join(result["content"] for result in results)))
    ran.results += results
    return True


def read_written_calls(text: str) -> list[AskedCall]:
    """Read calls written as text blocks by a model whose own tools do not include them."""
    calls = []
    for block in _BLOCK.findall(text):
        try:
            call = json.loads(block)
            calls.append(AskedCall("", str(call["name"]), json.dumps(call.get("arguments") or {})))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            calls.append(AskedCall("", "unreadable", "{}"))
    return calls


def _name_call(call: AskedCall, taken: set[str]) -> AskedCall:
    """Give a call an id that no other call has."""
    id, number = call.id, len(taken)
    while not id or id in taken:
        number += 1
        id = f"review_{number}"
    taken.add(id)
    return AskedCall(id, call.name, call.arguments)


def _run_call(call: AskedCall, run_tool: RunTool) -> dict[str, Any]:
    content = json.dumps(run_tool(call), ensure_ascii=False)[:_LONGEST_RESULT]
    return {"role": "tool", "tool_call_id": call.id, "content": content}
