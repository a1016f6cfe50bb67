"""A small honest agent: the model proposes a call, the call runs, the result goes back, until the task is done.

The task's check ends the session: it looks at the folder and the answer after every turn. An answer that neither calls a
tool nor does the task is an error like a wrong call, and the model and the transcript get it as one; otherwise a model
that never calls anything would have the fewest errors of all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from warmstart.endpoints.chat import LLM, AskedCall, Reply, RequestRefused, write_body
from warmstart.lab.chores.tasks import ChoreCall, Finished, LabTask
from warmstart.lab.models.tool_calls import make_harmless, write_turn
from warmstart.lab.sandbox.workshop import TOOLS, Workshop

AGENT = "warmstart-lab"
NO_CALL = "invalid_call"  # the tool recorded for an answer without a call
SYSTEM = "You do small chores with files, programs and databases in the current folder by calling tools."
CLOSING = "Done."
_NO_CALL_ERROR = "Error: no tool call in the answer. Answer with one call of one of your tools."
_ANSWER = 400  # characters kept of an answer without a call
_AT_ONCE = 4  # calls of one answer that are run


class AgentLimits(Struct, frozen=True, kw_only=True):
    """The limits of a session, and the parameters of its requests."""

    turns: int = 3
    answer_tokens: int | None = 96  # None: the server's own limit; some models refuse the field
    temperature: float | None = 0.0  # None: not sent, for models that refuse the field
    seconds: float = 5.0  # per call


class Transcript(Struct, frozen=True, kw_only=True):
    """A recorded session: OpenAI chat messages in a wrapper that `ingest` reads like any other transcript."""

    session_id: str
    agent: str
    model: str
    project: str
    label: bool  # whether the task was done
    usage: dict[str, Any] | None  # None: the model did not report it
    messages: list[dict[str, Any]]


class LabAgent:
    """Runs sessions with one model."""

    def __init__(self, llm: LLM, model: str, limits: AgentLimits, clock: Callable[[], float]) -> None:
        self._llm = llm
        self._model = model
        self._limits = limits
        self._clock = clock
        self._tools = [tool.as_openai() for tool in TOOLS]
        self.refusal: RequestRefused | None = None  # the error, if the server ended the last session

    def run(self, task: LabTask, session: str, inject: Callable[[list[Any]], list[Any]]) -> Transcript:
        """Run one session. `inject` puts the seed into the opening; the transcript does not contain it."""
        messages = [
            self.stamp({"role": "system", "content": SYSTEM}),
            self.stamp({"role": "user", "content": task.request}),
        ]
        with Workshop(task.files, seconds=self._limits.seconds) as workshop:
            talk = _Talk(self, workshop, task, messages, inject)
            done = any(talk.take_turn(turn) for turn in range(1, self._limits.turns + 1))
        self.refusal = talk.refusal
        if done and messages[-1]["role"] == "tool":
            messages.append(self.stamp({"role": "assistant", "content": CLOSING}))
        return Transcript(
            session_id=session,
            agent=AGENT,
            model=self._model,
            project=task.family,
            label=done,
            usage=talk.usage,
            messages=messages,
        )

    def ask(self, messages: Sequence[Any]) -> Reply:
        request = {"model": self._model, "messages": messages, "tools": self._tools}
        options = {"temperature": self._limits.temperature, "max_tokens": self._limits.answer_tokens}
        return self._llm.ask(
            write_body(request | {name: value for name, value in options.items() if value is not None})
        )

    def stamp(self, message: dict[str, Any]) -> dict[str, Any]:
        return put_time(message, self._clock())


def put_time(message: dict[str, Any], at: float) -> dict[str, Any]:
    """Return the message with its time, as transcripts have it."""
    return {**message, "timestamp": datetime.fromtimestamp(at, UTC).isoformat()}


class _Talk:
    """One running session."""

    def __init__(
        self,
        agent: LabAgent,
        workshop: Workshop,
        task: LabTask,
        recorded: list[dict[str, Any]],
        inject: Callable[[list[Any]], list[Any]],
    ) -> None:
        self._agent = agent
        self._workshop = workshop
        self._task = task
        self._recorded = recorded
        self._sent = inject([{key: message[key] for key in message if key != "timestamp"} for message in recorded])
        self.usage: dict[str, Any] | None = {"prompt_tokens": 0, "completion_tokens": 0}
        self.refusal: RequestRefused | None = None

    def take_turn(self, turn: int) -> bool:
        """Ask the model once and run its calls; return whether the task is done."""
        reply = self._ask()
        if reply is None:
            return self._take_refusal(turn)
        self._count(reply)
        if not reply.calls:
            return self._take_words(turn, reply.text)
        calls = reply.calls[: _AT_ONCE + 1]
        results = [self._workshop.run(_read(call)) for call in calls[:_AT_ONCE]]
        if len(calls) > _AT_ONCE:  # one error stands for all calls beyond the limit
            error = f"Error: at most {_AT_ONCE} calls of one answer are made; {len(reply.calls) - _AT_ONCE} were not."
            results.append(json.dumps({"error": error}))
        ids = [f"call_{turn}_{number}" for number in range(1, len(calls) + 1)]
        self._sent += write_turn(reply.text, ids, [make_harmless(call) for call in calls], results)
        self._record(write_turn(reply.text, ids, calls, results))
        return any(self._is_done(result) for result in results if _worked(result)) or self._is_done("")

    def _ask(self) -> Reply | None:
        """Return None if the server refuses the conversation; it is not sent again, because it would only grow."""
        if self.refusal is None:
            try:
                return self._agent.ask(self._sent)
            except RequestRefused as error:
                self.refusal = error
        return None

    def _take_refusal(self, turn: int) -> bool:
        """Record a refused turn, and each turn after it, as an answer without a call: all failed sessions are equally
        long, whatever made them fail."""
        self.usage = None
        self._record_failure(turn, "", f"Error: the server refused the request: {self.refusal}")
        return False

    def _take_words(self, turn: int, text: str) -> bool:
        """Take an answer without a call: it does the task, or it is an error that the model gets as a user message."""
        spoken = {"role": "assistant", "content": text or "(no answer)"}
        if self._is_done(text):
            self._record([spoken])
            return True
        self._sent += [spoken, {"role": "user", "content": _NO_CALL_ERROR}]
        self._record_failure(turn, text, _NO_CALL_ERROR)
        return False

    def _record_failure(self, turn: int, text: str, error: str) -> None:
        invalid = AskedCall("", NO_CALL, json.dumps({"answer": text[:_ANSWER]}, ensure_ascii=False))
        self._record(write_turn("", [f"call_{turn}_1"], [invalid], [json.dumps({"error": error})]))

    def _is_done(self, answer: str) -> bool:
        """Return whether the check passes; a result that breaks it (JSON nested a thousand deep) does not."""
        try:
            return self._task.check(Finished(self._workshop.folder, answer))
        except Exception:  # noqa: BLE001 - a model may leave anything in the folder
            return False

    def _record(self, messages: Sequence[dict[str, Any]]) -> None:
        self._recorded += [self._agent.stamp(message) for message in messages]

    def _count(self, reply: Reply) -> None:
        if self.usage is None or reply.prompt_tokens is None or reply.answer_tokens is None:
            self.usage = None
            return
        self.usage["prompt_tokens"] += reply.prompt_tokens
        self.usage["completion_tokens"] += reply.answer_tokens
        if reply.cached_tokens is not None:
            details = self.usage.setdefault("prompt_tokens_details", {"cached_tokens": 0})
            details["cached_tokens"] += reply.cached_tokens


def _read(call: AskedCall) -> ChoreCall:
    """Return the call with its arguments parsed; anything but a JSON object is passed on for the workshop to refuse."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = {"": call.arguments}
    return ChoreCall(call.name, arguments if isinstance(arguments, dict) else {"": arguments})


def _worked(result: str) -> bool:
    answer = json.loads(result)
    return not answer.get("error") and not answer.get("exit_code")
