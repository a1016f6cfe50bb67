"""A review after a turn of the real Hermes: it runs, keeps its findings, and leaves no trace in the conversation."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hermes.running import REVIEW_QUESTION, TASK, Hermes, variant
from hermes.scripted_server import Answer, Call, Request
from warmstart import Warmstart, config
from warmstart.doors.hermes.review import TurnReviewer, show_result
from warmstart.doors.hermes.seeder import HermesCall
from warmstart.endpoints.chat import AskedCall, Reply, ScriptedLLM
from warmstart.review import Reviewed, ReviewRuntime, spawn_review

RUN = Path(__file__).with_name("review_run.py")
NOTE = "Open orders in orders.csv are counted with `echo 17` in the {mode} shell"
FIELDS = {"chat": "messages", "anthropic": "messages", "responses": "input"}


def is_review(request: Request) -> bool:
    return REVIEW_QUESTION in request.raw.decode()


def make_script(mode: str) -> Callable[[dict[str, Any]], Answer]:
    """Return a script that counts with one call, and answers a review with a forbidden call and a note."""

    def script(body: dict[str, Any]) -> Answer:
        whole = json.dumps(body)
        has_result = json.dumps(body[FIELDS[mode]][-1]).find('"tool') > 0 or "function_call_output" in str(
            body.get("input", [""])[-1]
        )
        if REVIEW_QUESTION in whole:
            if has_result:
                return Answer("Nothing more.")
            note = {"action": "add", "target": "memory", "content": NOTE.format(mode=mode), "steps": [1, 2, 3, 4]}
            return Answer(calls=[Call("terminal", {"command": "touch forbidden"}), Call("memory", note)])
        if has_result:
            return Answer("There are 17.")
        return Answer(calls=[Call("terminal", {"command": f"echo 17; echo in the {mode} shell"})])

    return script


def configure(hermes: Hermes, /, **review: Any) -> None:
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in review.items())
    (hermes.warm_home / "config.toml").write_text(f"[review]\n{lines}")


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [True, pytest.param(False, marks=variant)])
def test_a_review_runs_and_the_next_request_is_unchanged(hermes: Hermes, wanted: bool) -> None:
    configure(hermes, hermes=wanted, every_turns=1, every_calls=1)
    hermes.server.scenes = {mode: make_script(mode) for mode in FIELDS}
    told = hermes.script(RUN, hermes.server.url)
    for mode, field in FIELDS.items():
        played, requests = told[mode], hermes.server.asked(mode)
        reviews = [request for request in requests if is_review(request)]
        own = [request for request in requests if not is_review(request)]
        assert bool(reviews) is wanted, mode
        assert len(own) == 4 and played["answers"] == ["There are 17.", "There are 17."], (mode, played)
        assert REVIEW_QUESTION not in json.dumps(played) and not (hermes.work / "forbidden").exists()
        first, second = own[1].body[field], own[2].body[field]
        assert drop_marks(second)[: len(first)] == drop_marks(first), (
            "the next request goes on where the last one ended"
        )
        if wanted:
            check_prefix(mode, field, reviews[0], own[1])
            line = "💾 Self-improvement review: "
            assert any(line in shown and "Memory note proposed" in shown for shown in played["shown"]), played["shown"]
            assert any(line in sent and "Memory note proposed" in sent for sent in played["sent"]), played["sent"]
    stored = json.dumps(hermes.rows("SELECT content, tool_calls FROM messages"))
    assert REVIEW_QUESTION not in stored and "forbidden" not in stored
    if wanted:
        check_proposals(hermes, told)


def drop_marks(messages: list[Any]) -> list[Any]:
    """Return the messages without the marks of Anthropic's cache, which Hermes moves to the latest ones."""

    def drop(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: drop(inner) for key, inner in value.items() if key != "cache_control"}
        if (
            isinstance(value, list)
            and len(value) == 1
            and isinstance(value[0], dict)
            and value[0].get("type") == "text"
        ):
            return value[0]["text"]  # a mark needs a block to stand in
        return [drop(inner) for inner in value] if isinstance(value, list) else value

    return [drop(message) for message in messages]


def check_prefix(mode: str, field: str, review: Request, parent: Request) -> None:
    """Byte for byte what Hermes has sent, seed and all: conversation, tools and system prompt."""
    assert review.path == parent.path
    for name in (field, "tools", "system", "instructions"):
        if name in parent.body:
            sent = json.dumps(parent.body[name], separators=(",", ":"), ensure_ascii=False).encode()
            sent = sent[:-1] if name == field else sent
            assert sent in parent.raw and sent in review.raw, (mode, name)
    assert TASK in review.raw.decode()


def check_proposals(hermes: Hermes, told: dict[str, Any]) -> None:
    with hermes.open() as ws:
        rows = [row for row in ws.reviews.list() if row.tool_call]
    assert {row.summary for row in rows} == {NOTE.format(mode=mode) for mode in FIELDS}
    assert {(row.platform, row.execution_context) for row in rows} == {("library", "background_review")}
    assert not (hermes.warm_home / "memory").exists() and not (hermes.home / "memories" / "MEMORY.md").exists()
    assert "Proposals that wait for you:" in told["status"]
    assert all(f"{row.id[:8]}  memory add: Open orders" in told["proposals"] for row in rows)
    spent = (hermes.warm_home / "review-spent.jsonl").read_text().splitlines()
    assert len(spent) == sum(is_review(request) for request in hermes.server.requests)


# Without a Hermes


def play_turn(reviewer: TurnReviewer, calls: int) -> None:
    call = HermesCall(session="s-1", api_mode="chat_completions", platform="cli", model="m")
    request = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    tool_calls = [SimpleNamespace(id=str(n)) for n in range(calls)]
    message = SimpleNamespace(content="Hi!", tool_calls=tool_calls)
    reviewer.begin_turn("s-1")
    reviewer.see_call(
        call,
        {"provider": "custom", "base_url": "http://127.0.0.1:1/v1"},
        request,
        SimpleNamespace(choices=[SimpleNamespace(message=message)]),
    )
    reviewer.end_turn("s-1")


def make_reviewer(home: Path, text: str) -> TurnReviewer:
    (home / "config.toml").write_text(f"[review]\nhermes = true\n{text}")
    ws = Warmstart(config.load(home))
    return TurnReviewer(lambda: ws, lambda *_anything: None, lambda _session: None)


def test_only_the_documented_triggers_start_a_review(home: Path) -> None:
    reviewer = make_reviewer(home, "every_turns = 3\nevery_calls = 5\n")
    play_turn(reviewer, 0)
    play_turn(reviewer, 4)
    assert reviewer._running == [], "hello is nothing to look back at"
    play_turn(reviewer, 0)
    assert len(reviewer._running) == 1
    reviewer.end_process()
    started = list(reviewer._running)
    play_turn(reviewer, 0)
    assert reviewer._running == started, "the turns are counted anew"
    play_turn(reviewer, 1)
    assert reviewer._running != started, "the fifth call since the last review of skills"
    reviewer.end_process()


CONVERSATION: list[dict[str, Any]] = [
    {"role": "user", "content": "Count the open orders"},
    {"role": "assistant", "content": "There are 17 open orders in orders.csv."},
]


def ask_twice() -> ScriptedLLM:
    note = {"action": "add", "target": "memory", "content": "There are 17 open orders in orders.csv", "steps": [2]}
    return ScriptedLLM(
        [Reply(calls=(AskedCall("a", "memory", json.dumps(note)),), prompt_tokens=900, answer_tokens=100)]
    )


def test_a_review_that_is_stopped_pays_for_nothing(home: Path) -> None:
    """Before the first question nothing is paid; what an answer under way brings is kept."""
    gate, asked = threading.Event(), threading.Event()

    class SlowLLM:
        def __init__(self) -> None:
            self.inner = ask_twice()

        def ask(self, body: bytes) -> Reply:
            asked.set()
            gate.wait(30)
            return self.inner.ask(body)

    llm = SlowLLM()
    review = spawn_review(CONVERSATION, ReviewRuntime(llm=llm, session="slow"), settings=config.load(home))
    assert asked.wait(30)
    review.stop()
    gate.set()
    done = review.wait(30)
    assert done is not None and (done.ended, done.steps, len(done.proposals)) == ("stopped", 1, 1), done

    unasked = ask_twice()
    second = spawn_review(CONVERSATION, ReviewRuntime(llm=unasked, session="x"), settings=config.load(home))
    second.stop()
    done = second.wait(30)
    assert done is not None and (done.steps, done.ended) in ((0, "stopped"), (1, "stopped"), (2, "done"))
    assert (len(unasked.bodies) > 0) == (done.steps > 0)


def test_a_days_budget(home: Path) -> None:
    (home / "config.toml").write_text("[review]\ndaily_budget = 1500\n")
    settings = config.load(home)
    first, second = ask_twice(), ask_twice()
    done = spawn_review(CONVERSATION, ReviewRuntime(llm=first, session="a"), settings=settings).wait(60)
    assert done is not None and done.tokens >= 1_000
    done = spawn_review([*CONVERSATION, *CONVERSATION], ReviewRuntime(llm=second, session="b"), settings=settings).wait(
        60
    )
    assert done is not None and second.bodies == []
    assert "today's 1,500 tokens for reviews are used up" in done.warning or done.ended == "day"


def test_the_line_is_shown_where_hermes_shows_its_own() -> None:
    shown: list[str] = []
    sent: list[str] = []
    agent = SimpleNamespace(_safe_print=shown.append, background_review_callback=sent.append, memory_notifications="on")
    reviewed = Reviewed(session="s", line="Self-improvement review: Memory updated")
    show_result(agent, Reviewed(session="s"))
    show_result(None, reviewed)
    assert (shown, sent) == ([], [])
    show_result(agent, reviewed)
    assert shown == ["  💾 Self-improvement review: Memory updated"] and sent == [shown[0].strip()]
    agent.memory_notifications = "off"
    show_result(agent, reviewed)
    assert len(shown) == 2 and len(sent) == 1
