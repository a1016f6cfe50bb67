"""ATIF, the Agent Trajectory Interchange Format v1.0-1.8, as Harbor and its agents write it: one JSON document per session.

A file may also hold one document per line.

A `.cont-N.json` file, which continues another, and each of the `subagent_trajectories` are sessions of their own. The
format has no error flag. The label is the verifier's reward in `result.json` beside the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from warmstart.formats.fields import (
    count_of,
    dollars_of,
    parse_arguments,
    parse_time,
    string_of,
    text_of,
    without_cached,
)
from warmstart.formats.lenient import DECODE_ERRORS
from warmstart.formats.outcomes import read_outcome
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Session, Signal, Usage
from warmstart.ports import Judge

NAME = "atif"

_CONTINUED = re.compile(r"\.cont-(\d+)\.json$")
_MAX_RESULT = 16 << 20  # bytes; a larger result.json is not read
_MAX_DEPTH = 8


class _Call(msgspec.Struct, gc=False):
    tool_call_id: str | None = None
    function_name: str | None = None
    arguments: Any = None


class _Observed(msgspec.Struct, gc=False):
    source_call_id: str | None = None
    content: Any = None


class _Observation(msgspec.Struct, gc=False):
    results: list[_Observed] | None = None


class _Metrics(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None


class _Ours(msgspec.Struct, gc=False):
    outcomes: list[str | None] | None = None  # of the results, in their order
    texts: list[int] | None = None  # numbers of the calls whose arguments are one text


class _Extra(msgspec.Struct, gc=False):
    tool_result_is_error: bool | None = None  # Harbor keeps Claude Code's flag here
    warmstart: _Ours | None = None  # written by `sessions export`


class _Step(msgspec.Struct, gc=False):
    source: str | None = None
    message: Any = None
    timestamp: str | float | None = None
    model_name: str | None = None
    tool_calls: list[_Call] | None = None
    observation: _Observation | None = None
    metrics: _Metrics | None = None
    is_copied_context: bool | None = None
    extra: _Extra | None = None


class _Agent(msgspec.Struct, gc=False):
    name: str | None = None
    model_name: str | None = None


class _Totals(msgspec.Struct, gc=False):
    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cached_tokens: int | None = None
    total_cost_usd: float | None = None


class _Trajectory(msgspec.Struct, gc=False):
    session_id: str | None = None
    trajectory_id: str | None = None
    agent: _Agent | None = None
    final_metrics: _Totals | None = None
    steps: list[_Step] | None = None
    subagent_trajectories: list[Any] | None = None


class _Rewards(msgspec.Struct, gc=False):
    reward: float | None = None


class _Verified(msgspec.Struct, gc=False):
    rewards: _Rewards | None = None
    reward: float | None = None


class _Result(msgspec.Struct, gc=False):
    verifier_result: _Verified | None = None


_step = msgspec.json.Decoder(_Step)
_trajectory = msgspec.json.Decoder(_Trajectory)
_result = msgspec.json.Decoder(_Result)


def sniff(head: SourceHead) -> bool:
    version = head.first.get("schema_version")
    return head.root in ("object", "lines") and isinstance(version, str) and version.startswith("ATIF")


def read(source: Source, judge: Judge) -> Iterator[Session]:
    if not _is_line_by_line(source):
        yield from _read_document(source, judge)
        return
    for number, line in source.lines():
        if trajectory := source.decode(line, _trajectory, number):
            reader = _Reader(source, judge)
            reader.draft.fragment = f"L{number}"
            reader.learn(trajectory)
            for step in trajectory.steps or ():
                reader.take(step)
            yield from reader.sessions()
            for value in trajectory.subagent_trajectories or ():
                if subagent := source.decode(msgspec.json.encode(value), _trajectory, number):
                    yield from _read_subagent(source, judge, subagent, reader.draft.id, 1)


def _is_line_by_line(source: Source) -> bool:
    lines = Source(source.path).lines()
    first, second = next(lines, None), next(lines, None)
    try:
        return first is not None and second is not None and _trajectory.decode(first[1]).steps is not None
    except DECODE_ERRORS:
        return False


def _read_document(source: Source, judge: Judge) -> Iterator[Session]:
    """Read a trajectory that is the whole file, one step at a time: it may be too long to hold."""
    reader = _Reader(source, judge)
    subagents: list[tuple[bytes, int | None]] = []
    for key, raw, number in source.walk("steps", "subagent_trajectories"):
        if key == "steps":
            if step := source.decode(raw, _step, number):
                reader.take(step)
        elif key == "subagent_trajectories":
            subagents.append((bytes(raw), number))
        elif key in _Trajectory.__struct_fields__:
            wrapped = b'{"%s":%s}' % (key.encode(), bytes(raw))
            if facts := source.decode(wrapped, _trajectory, number):
                reader.learn(facts)
    continued = _CONTINUED.search(source.path.name)
    if continued and reader.draft.id:
        reader.draft.parent = reader.draft.id
        reader.draft.id += f"/cont-{continued[1]}"
    reader.draft.label = _read_label(source)
    yield from reader.sessions()
    for raw, number in subagents:
        if subagent := source.decode(raw, _trajectory, number):
            yield from _read_subagent(source, judge, subagent, reader.draft.id, 1)


def _read_subagent(source: Source, judge: Judge, subagent: _Trajectory, parent: str, depth: int) -> Iterator[Session]:
    reader = _Reader(source, judge)
    reader.learn(subagent)
    draft = reader.draft
    own = subagent.trajectory_id or subagent.session_id or "helper"
    draft.id = f"{parent}/{own}"
    draft.fragment = own
    draft.parent = parent or None
    for step in subagent.steps or ():
        reader.take(step)
    yield from reader.sessions()
    for value in subagent.subagent_trajectories or ():
        raw = msgspec.json.encode(value)
        if depth < _MAX_DEPTH and (inner := source.decode(raw, _trajectory)):
            yield from _read_subagent(source, judge, inner, draft.id, depth + 1)


class _Reader:
    def __init__(self, source: Source, judge: Judge) -> None:
        self.draft = SessionBuilder(source, judge, format=NAME, agent=NAME)
        self._totals: _Totals | None = None
        self._cached: int | None = None  # tokens from the cache, summed over the steps
        self._steps = 0

    def learn(self, facts: _Trajectory) -> None:
        draft = self.draft
        draft.id = facts.session_id or draft.id
        self._totals = facts.final_metrics or self._totals
        if facts.agent is not None:
            draft.agent = facts.agent.name or draft.agent
            draft.model = facts.agent.model_name or draft.model

    def take(self, step: _Step) -> None:
        self._steps += 1
        at = parse_time(step.timestamp)
        text = text_of(step.message)
        if step.source == "user":
            self.draft.message("user", text, at)
        elif step.source == "agent":
            self.draft.model = self.draft.model or step.model_name
            self.draft.message("assistant", text, at)
        elif step.source == "system":
            self.draft.message("system", text, at)
        if not step.is_copied_context:  # the calls of a copied step are in the session it was copied from
            self._add_calls(step, at)
            if step.metrics is not None and (usage := _usage(step.metrics)) is not None:
                self.draft.spend(usage, step.model_name, at)
                if usage.cache_read is not None:
                    self._cached = (self._cached or 0) + usage.cache_read

    def _add_calls(self, step: _Step, at: float | None) -> None:
        unanswered: list[str] = []
        ours = (step.extra.warmstart if step.extra else None) or _Ours()
        outcomes = ours.outcomes or []
        for number, call in enumerate(step.tool_calls or (), 1):
            call_id = call.tool_call_id or f"step_{self._steps}.{number}"
            unanswered.append(call_id)
            arguments = parse_arguments(call.arguments)
            if isinstance(arguments, dict) and number - 1 in (ours.texts or ()):
                arguments = string_of(arguments.get("input"))
            self.draft.call(call_id, call.function_name or "", arguments, at)
        flag = step.extra.tool_result_is_error if step.extra else None
        signal = None if flag is None else Signal(failed=flag)
        results = (step.observation.results if step.observation else None) or ()
        for result in results:
            if result.source_call_id in unanswered:
                unanswered.remove(result.source_call_id)
        for number, result in enumerate(results, 1):
            if result.content is None and result.source_call_id is None:
                continue  # it only points to a subagent's trajectory
            next_call = unanswered.pop(0) if unanswered and not result.source_call_id else ""
            call_id = result.source_call_id or next_call or f"step_{self._steps}.result_{number}"
            outcome = read_outcome(outcomes[number - 1]) if number <= len(outcomes) else None
            self.draft.result(call_id, text_of(result.content), at, outcome or signal)

    def sessions(self) -> Iterator[Session]:
        if (totals := self._totals) is not None:
            self.draft.usage = _usage(
                _Metrics(
                    prompt_tokens=totals.total_prompt_tokens,
                    completion_tokens=totals.total_completion_tokens,
                    cached_tokens=self._cached if totals.total_cached_tokens is None else totals.total_cached_tokens,
                    cost_usd=totals.total_cost_usd,
                )
            )
        if self.draft.id or not self.draft.empty:
            yield self.draft.close()


def _usage(metrics: _Metrics) -> Usage | None:
    prompt, output, cached = map(count_of, (metrics.prompt_tokens, metrics.completion_tokens, metrics.cached_tokens))
    cost = dollars_of(metrics.cost_usd)
    if prompt is output is cached is cost is None:
        return None
    return Usage(input=without_cached(prompt, cached), output=output, cache_read=cached, cost=cost)


def _read_label(source: Source) -> bool | None:
    """Return the verifier's reward as a label: from `result.json` beside the file or, in Harbor's folders, above `agent/`."""
    folder = source.path.absolute().parent
    folders = (folder, folder.parent) if folder.name == "agent" else (folder,)
    for path in (f / "result.json" for f in folders):
        try:
            if not path.is_file() or path.stat().st_size > _MAX_RESULT:
                continue
            verified = _result.decode(path.read_bytes()).verifier_result
        except OSError as error:
            source.report(f"the label in {path.name} cannot be read: {error.strerror}")
            continue
        except DECODE_ERRORS as error:
            source.report(f"the label in {path.name} cannot be read: {error}")
            continue
        if verified is not None:
            rewards = (verified.rewards.reward if verified.rewards else None, verified.reward)
            reward = next((r for r in rewards if r is not None), None)
            if reward is not None:
                return reward == 1.0
    return None
