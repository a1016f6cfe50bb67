"""The real model on this machine: SmolLM2-135M by llama.cpp. `make lab-test` runs these."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.lab_world import read_sessions, without_times
from warmstart.endpoints.chat import EndpointError, write_body
from warmstart.lab.models.local import LocalLLM, describe_weights, find_weights
from warmstart.lab.run.agent import SYSTEM, AgentLimits
from warmstart.lab.run.lab import Lab, Plan
from warmstart.lab.run.report import report_lab
from warmstart.lab.run.summary import LabReport
from warmstart.lab.sandbox.workshop import TOOLS

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(
        os.environ.get("WARMSTART_LAB") != "1", reason="needs the real local model: WARMSTART_LAB=1, or make lab-test"
    ),
]
OPENAI = [tool.as_openai() for tool in TOOLS]
REQUESTS = ("How many lines does report.txt have?", "Write hello into note.txt.", "What is 12 raised to 4?")


def show(path: str, lines: int) -> list[dict[str, Any]]:
    """One example of a seed."""
    function = {"name": "terminal", "arguments": json.dumps({"command": f"wc -l < {path}"})}
    return [
        {"role": "user", "content": f"How many lines does {path} have?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": function}]},
        {"role": "tool", "tool_call_id": "1", "content": json.dumps({"output": f"{lines}\n", "exit_code": 0})},
        {"role": "assistant", "content": "Done, that call worked."},
    ]


SHOWN = [*show("notes.txt", 12), *show("diary.txt", 3), *show("plan.md", 40), *show("todo.txt", 7)]


def ask_for(request: str, shown: tuple[dict[str, Any], ...] | list[dict[str, Any]] = (), tokens: int = 64) -> bytes:
    messages = [{"role": "system", "content": SYSTEM}, *shown, {"role": "user", "content": request}]
    return write_body({"model": "m", "messages": messages, "tools": OPENAI, "max_tokens": tokens})


@pytest.fixture(scope="module")
def model() -> Iterator[LocalLLM]:
    yield LocalLLM(find_weights())


@pytest.fixture(scope="module")
def bound() -> Iterator[LocalLLM]:
    """Return the same model, restricted to calls."""
    yield LocalLLM(find_weights(), grammar=True)


def test_the_weights_are_told_by_what_is_in_them():
    facts = describe_weights(find_weights(), "smollm2")
    assert facts.digest is not None
    assert len(facts.digest) == 64
    assert facts.runtime.startswith("xllamacpp ")


def test_a_greedy_answer_repeats_exactly(model):
    """Other requests in between, and their cached prompts, change nothing."""
    first = [model.ask(ask_for(request, SHOWN)) for request in REQUESTS]
    again = [model.ask(ask_for(request, SHOWN)) for request in reversed(REQUESTS)][::-1]
    assert [(one.text, one.calls) for one in first] == [(one.text, one.calls) for one in again]
    assert [one.answer_tokens for one in first] == [one.answer_tokens for one in again]
    assert all(one.prompt_tokens and one.prompt_tokens > 100 for one in first)


def test_what_it_is_shown_it_does(model):
    reply = model.ask(ask_for(REQUESTS[0], SHOWN))
    assert [(one.name, json.loads(one.arguments)) for one in reply.calls] == [
        ("terminal", {"command": "wc -l < report.txt"})
    ]
    assert not model.ask(ask_for(REQUESTS[0])).calls  # without examples it talks


def test_the_beginning_of_a_conversation_is_kept(model):
    model.ask(ask_for("Write one into a.txt.", SHOWN))
    reply = model.ask(ask_for("Write two into b.txt.", SHOWN))
    assert reply.prompt_tokens is not None
    assert reply.cached_tokens is not None
    assert reply.cached_tokens > reply.prompt_tokens / 2


@pytest.mark.parametrize("request_", REQUESTS[:2])
def test_with_a_grammar_the_answer_is_a_call_of_a_tool(bound, request_):
    (asked,) = bound.ask(ask_for(request_)).calls
    tool = next(one for one in TOOLS if one.name == asked.name)
    given = json.loads(asked.arguments)
    assert set(tool.parameters["required"]) <= set(given) <= set(tool.parameters["properties"])
    assert all(isinstance(value, str) for value in given.values())


def test_with_a_grammar_only_the_limit_of_tokens_ends_a_call_early(bound):
    reply = bound.ask(ask_for(REQUESTS[2], tokens=12))
    assert not reply.calls
    assert reply.answer_tokens == 12
    assert reply.text.startswith('<call>{"name": "')


def test_a_conversation_that_is_too_long_is_no_end_of_a_run(model):
    reply = model.ask(ask_for("word " * 6_000))
    assert (reply.text, reply.calls, reply.prompt_tokens) == ("", (), 0)
    assert model.ask(ask_for(REQUESTS[0], SHOWN)).calls


def run_lab(folder: Path, stop_after: int | None = None) -> LabReport:
    class Stops:
        def __init__(self) -> None:
            self._llm, self._answers = LocalLLM(find_weights()), 0

        def ask(self, body: bytes) -> Any:
            if self._answers == stop_after:
                raise EndpointError("stopped")
            self._answers += 1
            return self._llm.ask(body)

    plan = Plan(tasks=3, model=describe_weights(find_weights(), "smollm2"), limits=AgentLimits(turns=2))
    lab = Lab(folder, plan, Stops())
    try:
        lab.run()
    except EndpointError:
        assert stop_after is not None
    report = report_lab(lab, "warmstart lab run", 0.0)
    lab.close()
    return report


def without_caching(files: dict[str, bytes]) -> dict[str, Any]:
    """Remove the cached tokens, which depend on earlier requests."""
    told = without_times(files)
    for transcript in told.values():
        (transcript["usage"] or {}).pop("prompt_tokens_details", None)
    return told


def test_two_runs_with_the_same_seed_are_the_same_and_so_is_one_that_was_stopped(tmp_path):
    reports = [run_lab(tmp_path / name) for name in ("one", "two")]
    assert all(report.finished for report in reports)
    for part in ("training", "sessions"):
        one, two = (without_times(read_sessions(tmp_path / name, part)) for name in ("one", "two"))
        assert one == two
    cold, warm = ({line.arm: line.solved for line in reports[0].arms}[arm] for arm in ("cold", "warm"))
    print(f"solved of 3: cold {cold}, warm {warm}")
    assert warm >= cold
    shutil.copytree(tmp_path / "one" / "training", tmp_path / "three" / "training")
    stopped = run_lab(tmp_path / "three", stop_after=4)
    assert 0 < stopped.done < stopped.planned
    assert run_lab(tmp_path / "three").finished
    broken, whole = (without_caching(read_sessions(tmp_path / name)) for name in ("three", "one"))
    assert broken == whole
