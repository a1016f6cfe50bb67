"""`hermes` itself: enabling the plugin, `chat -q`, `--resume`, `-z`. For scheduled jobs see test_jobs.py."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from hermes.running import TASK, Hermes, answer_in_turn, lint, prefix_bytes, seed_of
from hermes.scripted_server import PROMPT_TOKENS, Answer, Call, ScriptedServer
from warmstart import Task
from warmstart.dialects.compose import EXAMPLE_MARK

pytestmark = pytest.mark.slow

GUARD = """
def register(ctx):
    def guard(tool_name="", args=None, **_):
        if "forbidden" in str(args):
            return {"action": "block", "message": "Not in this house."}
    ctx.register_hook("pre_tool_call", guard)
"""

KNOWN_FAILURES = (
    Answer(calls=[Call("terminal", {"command": "echo fine"})]),
    Answer(calls=[Call("terminal", {"command": "exit 3"})]),  # an error
    Answer(calls=[Call("read_file", {"path": "no-such-file.txt"})]),  # an error
    Answer(calls=[Call("no_such_tool", {})]),  # an error
    Answer(calls=[Call("terminal", {"command": "echo forbidden"})]),  # blocked: no error, and not judged
    Answer(calls=[Call("terminal", {"command": "grep nothing orders.csv"})]),  # no hits: no error
    Answer("There are 17 open orders."),
)


def session_of(output: str) -> str:
    resume = re.search(r"--resume (\S+)", output)
    assert resume, output
    return resume[1]


def test_enabling(hermes: Hermes) -> None:
    hermes.configure("other")
    hermes.run("plugins", "enable", "warmstart", "--no-allow-tool-override")
    listed = hermes.run("plugins", "list", "--plain", "--no-bundled").stdout
    assert re.search(r"^\s*enabled\b.*\bwarmstart\b|\bwarmstart\b.*\benabled\b", listed, re.M), listed
    templates = json.loads(hermes.run("warmstart", "templates", "list", "--json").stdout)
    assert [one["status"] for one in templates] == ["active"]


def test_chat_and_resume(hermes: Hermes, server: ScriptedServer) -> None:
    guard = hermes.home / "plugins" / "guard"
    guard.mkdir(parents=True)
    (guard / "plugin.yaml").write_text("name: guard\nversion: '1'\n")
    (guard / "__init__.py").write_text(GUARD)
    hermes.configure("warmstart", "guard")
    (hermes.work / "orders.csv").write_text("id,state\n1,open\n")

    server.script = answer_in_turn(*KNOWN_FAILURES)
    session = session_of(hermes.run("chat", "-q", TASK).stdout)
    first = server.asked()
    assert len(first) == len(KNOWN_FAILURES)
    seed = seed_of(first[0])
    assert seed and all(lint(request) == [] for request in first)
    assert len({prefix_bytes(request) for request in first}) == 1

    measures = hermes.wait_closed(session, calls=6, errors=3, judged=5)
    assert measures.tokens is not None and measures.tokens >= len(first) * PROMPT_TOKENS
    assert measures.tokens_basis == "reported" and measures.seed_tokens > 0

    server.script = answer_in_turn(Answer(calls=[Call("terminal", {"command": "exit 4"})]), Answer("Still 17."))
    hermes.run("chat", "--resume", session, "-q", "Count again")
    resumed = server.asked()[len(first) :]
    assert len(resumed) == 2
    assert {prefix_bytes(request) for request in resumed} == {prefix_bytes(first[0])}
    grown = hermes.wait_closed(session, calls=7, errors=4, judged=6)
    with hermes.open() as ws:
        ws.ingest(hermes.home / "state.db")  # by hand, without what the hooks saw
    assert hermes.measures(session) == grown

    text = str(hermes.rows("SELECT content, tool_calls, tool_call_id FROM messages"))
    assert EXAMPLE_MARK not in text and not re.search(r"warm_[0-9a-f]{8}", text)
    assert [trial.session for trial in hermes.trials()] == [session]


def refuse_seeds(*answers: Answer) -> Callable[[dict[str, Any]], Answer]:
    """Return a script of a provider that takes no seeds."""
    play = answer_in_turn(*answers)

    def script(body: dict[str, Any]) -> Answer:
        if EXAMPLE_MARK in json.dumps(body):
            return Answer("messages: this conversation is not to my taste", status=400)
        return play(body)

    return script


@pytest.mark.parametrize("words", [("-z", TASK), ("chat", "-q", TASK)], ids=["oneshot", "chat"])
def test_a_refused_seed_costs_no_turn(hermes: Hermes, server: ScriptedServer, words: tuple[str, ...]) -> None:
    server.script = refuse_seeds(Answer(calls=[Call("terminal", {"command": "exit 3"})]), Answer("17 in all"))
    assert "17 in all" in hermes.run(*words).stdout
    assert [bool(seed_of(request)) for request in server.asked()] == [True, False, False]
    (trial,) = hermes.trials()
    measures = hermes.wait_closed(trial.session, calls=1, errors=1, judged=1)
    assert (trial.arm, measures.seed_tokens) == ("warm", 0)
    with hermes.open() as ws:
        assert ws.provision(Task(session=trial.session)).reason.startswith("not seeded: the provider answered 400")
