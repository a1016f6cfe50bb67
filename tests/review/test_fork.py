"""The forked conversation over real HTTP, compared with a request of the real SDK."""

from __future__ import annotations

import copy
import json
import logging
from typing import Any

import openai
import pytest

from review.conversations import NOTE, SKILL, TOOLS, conversation, open_warmstart, settings
from review.endpoint import Endpoint, call, calls, say
from warmstart.endpoints.chat import Endpoint as Where
from warmstart.review import Reviewed, ReviewRuntime, spawn_review
from warmstart.review.fork import find_new_results


def review(messages: Any, runtime: ReviewRuntime, **policy: Any) -> Reviewed:
    done = spawn_review(messages, runtime, settings=settings(**policy)).wait(30)
    assert done is not None
    return done


def test_the_prefix_is_the_parents_byte_for_byte(endpoint: Endpoint) -> None:
    client = openai.OpenAI(base_url=endpoint.url, api_key="sk-parent-key", max_retries=0)
    endpoint.answer(say("Erledigt – done ✓"), call("terminal", command="ls"), say())
    messages: list[Any] = conversation()
    messages[1]["content"] = 'Größe \u2028 "quoted" </x> 🚀 release\n\tbilling'
    request = {"model": "m", "tools": TOOLS, "temperature": 0.25, "max_tokens": 900, "extra_body": {"top_k": 4}}
    reply = client.chat.completions.create(messages=messages, **request)  # type: ignore[call-overload]
    messages.append(reply.choices[0].message)  # as agents do: the SDK's own object
    client.chat.completions.create(messages=messages, **request)  # type: ignore[call-overload]
    before = len(endpoint.raw)
    done = review(messages, ReviewRuntime.from_client(client, request, session="s-1"))
    assert done.warning == ""
    parent = endpoint.raw[before - 1]
    end = parent.index(b'],"max_tokens":')
    for forked in endpoint.raw[before:]:
        assert forked[:end] == parent[:end]
        assert forked[end : end + 1] == b","
        assert forked[forked.rindex(b'],"max_tokens":') :] == parent[end:], (
            "model, tools and options are the parent's too"
        )
        assert b'"tools":' + json.dumps(TOOLS, ensure_ascii=False, separators=(",", ":")).encode() in forked
    last = json.loads(endpoint.raw[before])["messages"][-1]
    assert last["role"] == "user" and "[3] call: terminal" in last["content"]
    keys = [{name.lower(): value for name, value in headers.items()}["authorization"] for headers in endpoint.headers]
    assert set(keys) == {"Bearer sk-parent-key"}


def test_a_forbidden_tool_is_denied_and_the_run_goes_on(endpoint: Endpoint, runtime: ReviewRuntime) -> None:
    endpoint.answer(
        calls(("terminal", "", {"command": "rm -rf /"}), ("clarify", "", {"question": "May I?"})),
        call("memory", action="add", target="user", content=NOTE, steps=[10]),
    )
    done = review(conversation(), runtime)
    assert done.denied == ("terminal", "clarify")
    answers = [one for one in endpoint.bodies[1]["messages"] if one["role"] == "tool"][-2:]
    assert all("denied" in one["content"] for one in answers)
    assert "Nobody is there" in answers[1]["content"]
    assert [row.write_origin for row in done.proposals if row.tool_call] == ["review:model"]
    assert done.ended == "done" and done.steps == 3


def test_sixteen_steps_end_it(endpoint: Endpoint, runtime: ReviewRuntime) -> None:
    endpoint.script = lambda body: call("terminal", command="ls")
    done = review(conversation(), runtime)
    assert (done.ended, done.steps, len(endpoint.raw)) == ("steps", 16, 16)


def test_the_budget_ends_it(endpoint: Endpoint, runtime: ReviewRuntime) -> None:
    endpoint.script = lambda body: call("terminal", command="ls")
    endpoint.usage = {
        "prompt_tokens": 2_000,
        "completion_tokens": 100,
        "prompt_tokens_details": {"cached_tokens": 1_000},
    }
    done = review(conversation(), runtime, budget=3_650)
    assert (done.ended, done.steps, done.tokens) == ("budget", 3, 3_600)
    assert review(conversation() + [{"role": "user", "content": "more"}], runtime, budget=10).steps == 0


def test_without_reported_usage_the_budget_still_ends_it(endpoint: Endpoint, runtime: ReviewRuntime) -> None:
    endpoint.script = lambda body: call("terminal", command="ls")
    endpoint.usage = None
    done = review(conversation(), runtime, budget=6_000)
    assert done.ended == "budget" and 0 < done.steps < 16


def test_stale_results_are_not_reported(endpoint: Endpoint, runtime: ReviewRuntime) -> None:
    """The snapshot holds an old skill's result, and the model even reuses its id."""
    endpoint.answer(
        call("skill_manage", id="call_3", action="create", name="release", content=SKILL, steps=[3, 4, 5, 10])
    )
    done = review(conversation(), runtime, apply=["skill"])
    assert "stale" not in done.line
    assert "Skill 'release' created" in done.line
    ids = [one.get("tool_call_id") for one in endpoint.bodies[1]["messages"] if one["role"] == "tool"]
    assert len(ids) == len(set(ids)), "a repeated id was given another"


def test_results_without_an_id_are_compared_by_content() -> None:
    old = {"role": "tool", "content": "old"}
    assert find_new_results([old, {"role": "tool", "content": "new"}], [old]) == ["new"]
    known = {"role": "tool", "tool_call_id": "a", "content": "old"}
    again = {"role": "tool", "tool_call_id": "b", "content": "old"}
    assert find_new_results([known, again], [known]) == ["old"]


def test_the_line_tells_only_what_this_review_did(endpoint: Endpoint, runtime: ReviewRuntime) -> None:
    endpoint.answer(
        calls(
            ("memory", "", {"action": "add", "target": "memory", "content": NOTE, "steps": [10]}),
            ("skill_manage", "", {"action": "create", "name": "release", "content": SKILL, "steps": [3, 4, 5, 10]}),
        )
    )
    finished: list[Reviewed] = []
    waiting = spawn_review(
        conversation(), runtime, settings=settings(apply=["memory", "skill"]), on_done=finished.append
    )
    done = waiting.wait(30)
    assert done is not None and finished == [done] and waiting.done.is_set()
    assert done.line.startswith("Self-improvement review: ")
    assert done.line.endswith(" · Skill 'release' created") and "Memory updated" in done.line


def test_calls_written_as_text(endpoint: Endpoint, runtime: ReviewRuntime) -> None:
    """If the parent has no such tool: its list of tools must not change."""
    wanted = {"name": "memory", "arguments": {"action": "add", "target": "user", "content": f"{NOTE} [steps: 10]"}}
    endpoint.answer(say(f"I keep this:\n```tool_call\n{json.dumps(wanted)}\n```\n"))
    done = review(conversation(), runtime)
    assert [row.summary for row in done.proposals if row.tool_call] == [NOTE]
    assert '"success": true' in endpoint.bodies[1]["messages"][-1]["content"]
    assert "User note proposed" in done.line


def test_the_conversation_is_never_touched(endpoint: Endpoint, runtime: ReviewRuntime) -> None:
    messages = conversation()
    before = copy.deepcopy(messages)
    endpoint.answer(call("memory", action="add", target="user", content=NOTE, steps=[10]))
    waiting = spawn_review(messages, runtime, settings=settings())
    messages.append({"role": "user", "content": "meanwhile"})
    waiting.wait(30)
    assert messages[:-1] == before
    assert "meanwhile" not in json.dumps(endpoint.bodies)


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["dead", "slow", "500", "redirect", "nonsense", "no choices", "401"])
def test_trouble_leaves_one_warning(
    trouble: str, endpoint: Endpoint, runtime: ReviewRuntime, caplog: pytest.LogCaptureFixture
) -> None:
    from msgspec import structs

    answers = {
        "slow": {"sleep": 1.0, "role": "assistant", "content": "late"},
        "500": {"status": 500},
        "401": {"status": 401},
        "redirect": {"status": 307, "redirect": "http://127.0.0.1:9/v1"},
        "nonsense": {"bytes": b"<html>"},
        "no choices": {"bytes": b'{"choices": []}'},
    }
    endpoint.script = lambda body: answers[trouble]
    if trouble == "dead":
        runtime = structs.replace(runtime, endpoint=Where(url="http://127.0.0.1:1/v1", key="sk-parent-key"))
    with caplog.at_level(logging.WARNING):
        done = review(conversation(), runtime, timeout=0.3 if trouble == "slow" else 5.0)
    assert len(caplog.records) == 1 and done.warning in caplog.text
    assert "sk-parent-key" not in caplog.text
    assert done.ended == "failed"
    assert any(row.write_origin == "review:corrected_call" for row in done.proposals), "what is free is still found"
    assert len(endpoint.raw) == {"500": 3, "dead": 0}.get(trouble, 1)


def test_a_crash_is_one_warning_and_the_host_goes_on(runtime: ReviewRuntime, caplog: pytest.LogCaptureFixture) -> None:
    def crash(_done: Reviewed) -> None:
        raise RuntimeError("secret stuff")

    from msgspec import structs

    from warmstart.endpoints.chat import ScriptedLLM

    scripted = structs.replace(runtime, llm=ScriptedLLM([ZeroDivisionError("inside")]))
    done = spawn_review(conversation(), scripted, settings=settings()).wait(30)
    assert done is not None and "ZeroDivisionError" in done.warning
    waiting = spawn_review(conversation(), structs.replace(runtime, endpoint=None), settings=settings(), on_done=crash)
    assert waiting.wait(30) is not None
    assert len(caplog.records) == 2
    assert "secret stuff" not in "".join(record.getMessage() for record in caplog.records)


def test_reviewed_once_nothing_is_new(endpoint: Endpoint, runtime: ReviewRuntime) -> None:
    review(conversation(), runtime)
    asked = len(endpoint.raw)
    assert review(conversation(), runtime).ended == "nothing new"
    assert len(endpoint.raw) == asked
    with open_warmstart() as ws:
        assert ws.reviews.list()


def test_a_flood_of_calls_is_cut(endpoint: Endpoint, runtime: ReviewRuntime) -> None:
    endpoint.answer(calls(*(("memory", "", {"n": n}) for n in range(500))))
    done = review(conversation(), runtime)
    assert len(done.refused) == 20 and done.ended == "done"
