"""Hermes as a library, all scenarios in one process: arms, protocols, descendants, failures, commands, the tool."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import warmstart
from hermes.running import REVIEW_QUESTION, TASK, Hermes, answer_in_turn, lint, prefix_bytes, seed_of
from hermes.scripted_server import Answer, Call, Request, ScriptedServer
from warmstart.dialects.compose import EXAMPLE_MARK
from warmstart.store import TrialRow
from warmstart.store.trials import read_scope

pytestmark = pytest.mark.slow

RUNS = Path(__file__).with_name("library_runs.py")
ONE_CALL = (Answer(calls=[Call("terminal", {"command": "echo 17"})]), Answer("There are 17."))
BAD_CALL = Answer(calls=[Call("terminal", '{"command": echo 17}')])
SUBSCRIBED = (Answer(calls=[Call("mcp__terminal", {"command": "echo 17"})]), Answer("There are 17."))


def in_order(*answers: Answer) -> Callable[[dict[str, Any]], Answer]:
    rest = iter(answers)
    return lambda body: next(rest)


def delegate(body: dict[str, Any]) -> Answer:
    if "CHILD" in json.dumps(body["messages"][-1]):
        return Answer("I am the child.")
    if body["messages"][-1]["role"] == "tool":
        return Answer("There are 17.")
    return Answer(calls=[Call("delegate_task", {"goal": f"CHILD {TASK}"})])


def review(body: dict[str, Any]) -> Answer:
    """Call a tool that Hermes blocks in its own review."""
    if body["messages"][-1]["role"] == "tool":
        return Answer("Nothing to save.")
    return Answer(calls=[Call("terminal", {"command": "echo 17"})])


def refuse(body: dict[str, Any]) -> Answer:
    if EXAMPLE_MARK in json.dumps(body):
        return Answer("messages: this conversation is not to my taste", status=400)
    return Answer("There are 17.")


def overflow(body: dict[str, Any]) -> Answer:
    """A context in which a seed and a result do not fit together."""
    text = json.dumps(body)
    if "echo 17" not in text.rpartition(TASK)[2]:  # the seed may show the same request and its call
        return ONE_CALL[0]
    if EXAMPLE_MARK in text:
        return Answer("This model's maximum context length is 64000 tokens. However, you requested 64100.", status=400)
    return ONE_CALL[1]


class Played(NamedTuple):
    """The results of all scenarios."""

    hermes: Hermes
    told: dict[str, Any]

    def asked(self, scene: str) -> list[Request]:
        return self.hermes.server.asked(scene)

    def trials(self, scene: str) -> list[TrialRow]:
        sessions = {one["session"] for one in self.told[scene]}
        return [trial for trial in self.hermes.trials() if trial.session in sessions]

    def notes(self, scene: str) -> list[str]:
        sessions = {one["session"] for one in self.told[scene]}
        return [note["reason"] for note in self.hermes.notes() if note["session"] in sessions]

    def answers(self, scene: str) -> list[str]:
        return [one["answer"] for one in self.told[scene]]


@pytest.fixture(scope="module")
def played(hermes_venv: Path, past: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    server = ScriptedServer()
    server.script = answer_in_turn(*ONE_CALL)
    server.scenes = {
        "responses": in_order(*ONE_CALL),
        "anthropic": in_order(*ONE_CALL),
        "subscription": in_order(*SUBSCRIBED),
        "delegation": delegate,
        "review": review,
        "bad_arguments": in_order(BAD_CALL, *ONE_CALL),
        "refusal": refuse,
        "refusal_gateway": refuse,
        "refusal_cron": refuse,
        "overflow": overflow,
        "small_talk": lambda body: Answer("Hello!"),
        "topics": lambda body: Answer("There are 17."),
    }
    root = tmp_path_factory.mktemp("library")
    shutil.copytree(past, root / "warmstart")
    hermes = Hermes(hermes_venv, root, server)
    yield Played(hermes, hermes.script(RUNS, server.url))
    server.close()


def test_arms(played: Played) -> None:
    arms = {trial.session: trial.arm for trial in played.trials("arms")}
    assert arms == {"drawn-0": "warm", "drawn-1": "cold"}
    warm, cold = played.asked("arms")[:2], played.asked("arms")[2:]
    assert len(warm) == len(cold) == 2
    assert all(seed_of(request) and lint(request) == [] for request in warm)
    assert EXAMPLE_MARK not in json.dumps([request.body for request in cold])


def test_codex_responses(played: Played) -> None:
    assert played.answers("responses") == ["There are 17."]
    requests = played.asked("responses")
    assert [request.path for request in requests] == ["/v1/responses"] * 2
    assert all(seed_of(request, "input") and lint(request, "responses", "input") == [] for request in requests)
    assert len({json.dumps(seed_of(request, "input")) for request in requests}) == 1


@pytest.mark.parametrize("scene", ["anthropic", "subscription"])
def test_anthropic(played: Played, scene: str) -> None:
    assert played.answers(scene) == ["There are 17."]
    requests = played.asked(scene)
    assert [request.path.partition("?")[0] for request in requests] == ["/v1/messages"] * 2
    for request in requests:
        seed = seed_of(request)
        blocks = [block for message in seed for block in message["content"] if isinstance(block, dict)]
        called = {block["name"] for block in blocks if "name" in block}
        assert called and called <= {tool["name"] for tool in request.body["tools"]}
        assert lint(request, "anthropic") == []
    assert len({json.dumps(seed_of(request)) for request in requests}) == 1


def test_an_unknown_mode_is_noted_once(played: Played) -> None:
    assert played.told["unknown_mode"] is True
    (note,) = [note for note in played.hermes.notes() if note["session"] == "s-unknown"]
    assert "bedrock_converse" in note["reason"]
    assert "s-unknown" not in {trial.session for trial in played.hermes.trials()}


def test_rotated_sessions_inherit(played: Played) -> None:
    first, second = (one["session"] for one in played.told["rotation"])
    assert first != second
    trials = {trial.session: trial for trial in played.trials("rotation")}
    assert (trials[second].parent, trials[second].assignment) == (first, "inherited")
    requests = played.asked("rotation")
    assert len({json.dumps(seed_of(request)) for request in requests if TASK in request.raw.decode()}) == 1
    assert seed_of(requests[0]) and seed_of(requests[-1])


def test_sessions_begun_before_stay_as_they_are(played: Played) -> None:
    assert played.trials("begun") == []
    assert EXAMPLE_MARK not in json.dumps([request.body for request in played.asked("begun")])
    assert played.notes("begun") == ["it began before Warmstart was enabled"]


def test_subagents_get_the_brief_of_their_own_task(played: Played) -> None:
    requests = played.asked("delegation")
    parents = [request for request in requests if "delegate_task" in json.dumps(request.body["tools"])]
    children = [request for request in requests if request not in parents]
    assert children and all(seed_of(request) and lint(request) == [] for request in children)
    assert parents and all(seed_of(request) for request in parents)
    (parent,) = played.trials("delegation")
    query = "SELECT id FROM sessions WHERE source = 'subagent' AND parent_session_id = ?"
    (child,) = played.hermes.rows(query, parent.session)
    trials = {trial.session: trial for trial in played.hermes.trials()}
    assert (trials[child[0]].assignment, trials[child[0]].parent) == ("inherited", parent.session)
    assert json.loads(trials[child[0]].task)["project"] == str(played.hermes.work), "where its parent works"


def test_the_review_is_seeded_but_not_measured(played: Played) -> None:
    requests = played.asked("review")
    assert len(requests) == 4 and len({prefix_bytes(request) for request in requests}) == 1
    (trial,) = played.trials("review")
    played.hermes.wait_closed(trial.session, calls=1, errors=0, judged=1)
    assert trial.session not in (played.hermes.warm_home / "hermes" / "observations.jsonl").read_text()


def test_there_is_no_review_of_ours_unless_it_is_switched_on(played: Played) -> None:
    assert not any(REVIEW_QUESTION in request.raw.decode() for request in played.hermes.server.requests)


def test_a_gateway(played: Played) -> None:
    (told,) = played.told["gateway"]
    assert f"This session ({told['session']}): warm, nothing shown" in told["status"], "others' work is not its own"
    assert "No templates yet" in told["templates"] and "only the session of this chat" in told["other"]
    assert told["tool"]["success"] and told["tool"]["count"] == 0
    requests = played.asked("gateway")
    assert requests and not any(EXAMPLE_MARK in request.raw.decode() for request in requests)
    (trial,) = played.trials("gateway")
    played.hermes.wait_closed(trial.session, calls=1, errors=0, judged=1)


def test_calls_that_hermes_throws_away_are_counted(played: Played) -> None:
    assert played.answers("bad_arguments") == ["There are 17."]
    (trial,) = played.trials("bad_arguments")
    kept = played.hermes.rows(
        "SELECT tool_calls FROM messages WHERE tool_calls IS NOT NULL AND session_id=?", trial.session
    )
    assert len(kept) == 1
    played.hermes.wait_closed(trial.session, calls=2, errors=1, judged=2)


def is_seeded(request: Request) -> bool:
    return EXAMPLE_MARK in json.dumps(request.body)


@pytest.mark.parametrize("scene", ["refusal", "refusal_gateway", "refusal_cron"])
def test_a_provider_that_refuses_seeds_costs_no_turn(played: Played, scene: str) -> None:
    """As a library, in the gateway and as a scheduled job; for the terminal see test_command_line.py."""
    told = played.told[scene]
    answers = [told["answer"]] if scene == "refusal_cron" else played.answers(scene)
    assert answers == ["There are 17."] * len(answers)
    assert [is_seeded(request) for request in played.asked(scene)] == [True, *([False] * len(answers))]
    trials = (
        [trial for trial in played.hermes.trials() if told["job"] in trial.session]
        if scene == "refusal_cron"
        else played.trials(scene)
    )
    (trial,) = trials
    with played.hermes.open() as ws:
        seed = ws.provision(warmstart.Task(session=trial.session, scope=read_scope(trial)))
    assert (trial.arm, seed.tokens) == ("warm", 0) and seed.reason.startswith("not seeded: the provider answered 400")
    (note,) = [note for note in played.hermes.notes() if note["session"] == trial.session]
    assert "400" in note["reason"]


def test_a_job_of_a_chat_belongs_to_the_chat(played: Played) -> None:
    assert played.told["places"] == [["telegram", "9", "9", str(played.hermes.work)]] * 3


def test_the_seed_is_dropped_first_when_the_context_is_full(played: Played) -> None:
    assert played.answers("overflow") == ["There are 17."]
    assert [is_seeded(request) for request in played.asked("overflow")] == [True, True, False]
    (session,) = (one["session"] for one in played.told["overflow"])
    assert played.hermes.rows("SELECT count(*) FROM messages WHERE session_id=? AND compacted", session) == [(0,)]
    (trial,) = played.trials("overflow")
    with played.hermes.open() as ws:
        seed = ws.provision(warmstart.Task(session=trial.session))
    assert seed.reason == "no longer shown: the model's context was full" and seed.tokens > 0


def test_small_talk_gets_no_seed_until_a_task_comes(played: Played) -> None:
    assert [is_seeded(request) for request in played.asked("small_talk")] == [False, True, False]
    seeded = played.asked("small_talk")[1].body["messages"]
    assert EXAMPLE_MARK in json.dumps(seeded[1]), "behind the system prompt"
    (trial,) = played.trials("small_talk")
    assert trial.session == played.told["small_talk"][0]["session"] and played.notes("small_talk") == []


def test_a_new_topic_gets_its_brief_at_a_compaction(played: Played) -> None:
    requests = played.asked("topics")
    assert [is_seeded(request) for request in requests] == [True] * 6 + [False]
    assert len({json.dumps(seed_of(request)) for request in requests[:6]}) == 1, "never inside a cached prefix"
    assert {one["session"] for one in played.told["topics"]} == {played.told["topics"][0]["session"]}
    (trial,) = played.trials("topics")
    (part,) = [part for part in played.hermes.trials() if part.session.startswith(f"{trial.session}#")]
    assert (part.arm, part.assignment, part.parent) == (trial.arm, "inherited", trial.session)


def test_notes_in_hermes_own_files(played: Played) -> None:
    told = played.told["memories"]
    assert told["seen"] == ["The tests need a database.", "Tags are signed."]
    assert told["removed"]["success"] and told["left"] == ["Tags are signed."]
    assert told["full"].startswith("MEMORY.md is full: it has 2,1") and "of 2,200 characters" in told["full"]
    assert told["replaced"]["success"], "Hermes can still change what it has"


def test_commands(played: Played) -> None:
    told = played.told["commands"]
    assert "@1  active" in told["templates"] and "unknown word" in told["nonsense"]
    assert "Arm: warm" in told["why"] and "Shown:" in told["why"]
    assert "continues cold" in told["cold"] and "Arm: cold" in told["after"]
    assert " active" in told["status"] and "not seeded in the last 7 days: 1, because" in told["status"]
    requests = played.asked("commands")
    assert [bool(EXAMPLE_MARK in request.raw.decode()) for request in requests] == [True, True, False, False]
    (trial,) = [trial for trial in played.hermes.trials() if trial.session == told["session"]]
    assert (trial.arm, trial.chosen) == ("warm", "cold")


def test_the_tool(played: Played) -> None:
    (before, built, listed, loaded, deleted, missing, nameless, unknown, by_source, by_nobody) = played.told["tool"]
    assert before["success"] and before["count"] >= 1, "more were learned by themselves"
    assert built["success"] and built["examples"] >= 2 and built["sessions"] >= 3, built
    assert {one["name"] for one in listed["sessions"]} > {"orders"}
    assert loaded["success"] and loaded["preview"].startswith("user: [Example")
    assert warmstart.lint(loaded["messages"]) == [] and loaded["description"] == "Counting orders"
    assert deleted["success"] and deleted["deleted"] == ["orders@1"]
    assert missing == {"success": False, "error": "no warm session orders; the action list shows those there are"}
    assert not nameless["success"] and "name is missing" in nameless["error"]
    assert not unknown["success"] and "build, list, load, delete" in unknown["error"]
    for refused, source in ((by_source, "telegram"), (by_nobody, "fax")):
        assert not refused["success"] and f"no sessions of the source '{source}'" in refused["error"], (
            "a chat's are its own"
        )
        assert "call build again" in refused["error"] and "warmstart " not in refused["error"]
    assert "warm_session" in [tool["function"]["name"] for tool in played.asked("arms")[0].body["tools"]]


@pytest.mark.parametrize("scene", ["broken_store", "broken_settings"])
def test_a_broken_plugin_lets_the_turn_through(played: Played, scene: str) -> None:
    assert played.answers(scene) == ["There are 17."] * 2
    assert EXAMPLE_MARK not in json.dumps([request.body for request in played.asked(scene)])
    if scene == "broken_store":
        notes = (played.hermes.root / "warmstart-broken-store" / "hermes" / "not-seeded.jsonl").read_text().splitlines()
        assert [json.loads(note)["session"] for note in notes] == [one["session"] for one in played.told[scene]]
        assert "not a SQLite database" in notes[0]
