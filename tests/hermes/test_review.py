"""A review after a turn of the real Hermes: it runs, keeps its findings, and leaves no trace in the conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes.running import REVIEW_QUESTION, TASK, Hermes, variant
from hermes.scripted_server import Answer, Call, Request

RUN = Path(__file__).with_name("review_run.py")
NOTE = "Open orders in orders.csv are counted with `echo 17`"


def is_review(request: Request) -> bool:
    return REVIEW_QUESTION in json.dumps(request.body["messages"])


def script(body: dict[str, Any]) -> Answer:
    messages = body["messages"]
    if any(REVIEW_QUESTION in str(one.get("content")) for one in messages):
        if messages[-1]["role"] == "tool":
            return Answer("Nothing more.")
        steps = list(range(1, 5))
        call = {"action": "add", "target": "memory", "content": NOTE, "steps": steps}
        return Answer(calls=[Call("terminal", {"command": "touch forbidden"}), Call("memory", call)])
    if messages[-1]["role"] == "tool":
        return Answer("There are 17.")
    return Answer(calls=[Call("terminal", {"command": "echo 17"})])


def configure(hermes: Hermes, /, **review: Any) -> None:
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in review.items())
    (hermes.warm_home / "config.toml").write_text(f"[review]\n{lines}")


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [True, pytest.param(False, marks=variant)])
def test_a_review_runs_and_the_next_request_is_unchanged(hermes: Hermes, wanted: bool) -> None:
    configure(hermes, hermes=wanted, every_turns=1, every_calls=1)
    hermes.server.script = script
    told = hermes.script(RUN, hermes.server.url)
    requests = hermes.server.asked()
    reviews = [request for request in requests if is_review(request)]
    own = [request for request in requests if not is_review(request)]
    assert bool(reviews) is wanted
    assert len(own) == 4 and told["answers"] == ["There are 17.", "There are 17."]
    assert REVIEW_QUESTION not in json.dumps(told) and not (hermes.work / "forbidden").exists()
    stored = json.dumps(hermes.rows("SELECT content, tool_calls FROM messages"))
    assert REVIEW_QUESTION not in stored and "forbidden" not in stored
    first, second = own[1].body["messages"], own[2].body["messages"]
    assert second[: len(first)] == first, "the next request goes on where the last one ended"
    if wanted:
        check_reviews(hermes, reviews, own[1])


def check_reviews(hermes: Hermes, reviews: list[Request], parent: Request) -> None:
    sent = json.dumps(parent.body["messages"], separators=(",", ":"), ensure_ascii=False).encode()[:-1]
    tools = json.dumps(parent.body["tools"], separators=(",", ":"), ensure_ascii=False).encode()
    assert sent in parent.raw and tools in parent.raw
    assert sent in reviews[0].raw and tools in reviews[0].raw, "byte for byte what Hermes has sent, seed and all"
    assert TASK in reviews[0].raw.decode()
    with hermes.open() as ws:
        rows = [row for row in ws.reviews.list() if row.tool_call]
    assert [row.summary for row in rows] == [NOTE]
    assert (rows[0].platform, rows[0].execution_context) == ("library", "background_review")
    assert not (hermes.warm_home / "memory").exists() and not (hermes.home / "memories" / "MEMORY.md").exists()
