"""Replay of recorded sessions: all is real but the model, which is a function of its request."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from msgspec import structs

from transcripts import write_jsonl
from warmstart import config
from warmstart.doors.cli import lab
from warmstart.doors.cli.main import main
from warmstart.doors.render.replay import show_replay
from warmstart.endpoints.chat import AskedCall, Endpoint, EndpointError, HttpLLM, Reply
from warmstart.errors import Refused
from warmstart.judging.outcome import judge_result
from warmstart.lab.replay.match import (
    NO_OBJECT,
    NO_SUCH_TOOL,
    NOTHING_RECORDED,
    RecordedCall,
    RecordPlayer,
    normal_form,
)
from warmstart.lab.replay.recordings import (
    NO_NAME,
    NO_REQUEST,
    NO_SUCCESS,
    STARTED,
    Gatherer,
    Recording,
    Toolbox,
    split_families,
)
from warmstart.lab.replay.replay import ReplayPlan, ReplayStopped, replay
from warmstart.lab.replay.report import MEASURES, ReplayReport
from warmstart.lab.replay.ties import Traces, join
from warmstart.model import Task
from warmstart.store import TrialStore, open_store

pytestmark = pytest.mark.slow

SERVICES = [f"{first}{second}" for first in ("amber", "birch", "cedar", "dune") for second in ("gate", "hall", "mill")]
SECRET = "zq7" + "Lw9vTn4Kx2Rb8Yp5Hd3Mc6Js1Gf0"  # configured by the user, known by its value
TOKEN = "ghp_" + "a8Kd03jXq7Zr1Vw5Tn9Lb2Ym6Pc4Hs0GfEuR"  # known by its form
CLOCK = 1_790_000_000.0

Model = Callable[[dict[str, Any]], Reply]


# A recorded agent, and models to try


def transcript(name: str, task: str | None, calls: list[tuple[Any, ...]], **facts: Any) -> list[dict[str, Any]]:
    """A Claude Code session; a call is (tool, input, result) or (tool, input, result, failed)."""
    common = {"sessionId": name, "cwd": "/home/dev/shop", "version": "2.1.0", "timestamp": "2026-10-01T10:00:00.000Z"}
    common |= facts
    lines = []
    if task is not None:
        lines.append(common | {"type": "user", "uuid": f"{name}-u", "message": {"role": "user", "content": task}})
    for n, (tool, given, result, *failed) in enumerate(calls):
        use = {"type": "tool_use", "id": f"toolu_{name}_{n}", "name": tool, "input": given}
        answer = {"type": "tool_result", "tool_use_id": use["id"], "content": result, "is_error": bool(failed)}
        said = {"id": f"m{n}", "role": "assistant", "model": "m", "content": [use]}
        heard = {"role": "user", "content": [answer]}
        lines.append(common | {"type": "assistant", "uuid": f"{name}-a{n}", "message": said})
        lines.append(common | {"type": "user", "uuid": f"{name}-r{n}", "message": heard})
    return lines


def deployment(service: str) -> list[tuple[Any, ...]]:
    return [
        ("Bash", {"command": f"helm deploy {service}"}, "Error: unknown command deploy for helm", True),
        (
            "Bash",
            {"command": f"helm upgrade {service}", "description": "deploy"},
            f"release {service} upgraded rev-{service}",
        ),
        ("Read", {"file_path": f"/srv/{service}/values.yaml"}, f"replicas: 3 rev-{service}"),
    ]


def ask_for(service: str) -> str:
    return f"deploy the service {service} to the cluster with helm and look at its values"


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Return twelve services, each deployed in two sessions with the same request."""
    folder = tmp_path / "recorded"
    for service in SERVICES:
        for n in (1, 2):
            name = f"{service}-{n}"
            write_jsonl(folder / f"{name}.jsonl", transcript(name, ask_for(service), deployment(service)))
    return folder


@pytest.fixture
def settings(tmp_path: Path) -> config.Settings:
    return config.load(tmp_path / "own-home", environ={"SHOP_API_KEY": SECRET})


class Asked:
    """A model that is a function of the request and keeps its requests."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.bodies: list[bytes] = []

    def ask(self, body: bytes) -> Reply:
        self.bodies.append(body)
        return self._model(json.loads(body))


def call(tool: str, arguments: dict[str, Any] | str, call_id: str = "") -> AskedCall:
    return AskedCall(call_id, tool, arguments if isinstance(arguments, str) else json.dumps(arguments))


def seeded_calls(request: dict[str, Any]) -> list[dict[str, Any]]:
    made = (one for message in request["messages"] for one in message.get("tool_calls") or ())
    return [one["function"] for one in made if one["id"].startswith("warm_")]


def service_in(request: dict[str, Any]) -> str:
    asked = request["messages"][-1 - answers_in(request)]["content"]
    return next(word for word in asked.split() if word in SERVICES)


def answers_in(request: dict[str, Any]) -> int:
    """Return the messages after the user's request."""
    at = max(n for n, message in enumerate(request["messages"]) if message["role"] == "user")
    return len(request["messages"]) - 1 - at


def copies_the_seed(request: dict[str, Any]) -> Reply:
    """Copy the seed's call with the requested service; without a seed, guess as the recorded agent did."""
    service = service_in(request)
    if answers_in(request) > 2:
        return Reply(text="Done.")
    helm = next((one for one in seeded_calls(request) if "helm upgrade" in one["arguments"]), None)
    return Reply(calls=(call("Bash", {"command": f"helm {'upgrade' if helm else 'deploy'} {service}"}),))


def run(recorded: Path, model: Model | Asked, settings: config.Settings, **plan: Any) -> ReplayReport:
    llm = model if isinstance(model, Asked) else Asked(model)
    out = plan.pop("out", recorded.parent / "out")
    made = ReplayPlan(paths=(str(recorded),), model="scripted", **plan)
    return replay(made, llm, out, settings=settings, clock=lambda: CLOCK)


def effects(report: ReplayReport) -> dict[str, Any]:
    return {one.effect.metric: one.effect for one in report.compared}


# What is found


def test_a_seed_that_helps_is_found_as_better(recorded, settings, capsys):
    report = run(recorded, copies_the_seed, settings)
    assert (report.recorded, report.planned, report.replayed, report.seeded) == (24, 24, 24, 24)
    assert [half.sessions for half in report.halves] == [12, 12]
    assert all(half.templates for half in report.halves)
    found = effects(report)
    assert set(found) == {measure.name for measure in MEASURES}
    for name in ("first_own", "first_shape", "first_exact", "own", "shape", "exact"):
        assert (found[name].verdict, found[name].values) == ("better", {"warm": 1.0, "cold": 0.0}), name
        assert found[name].low > 0
    for name in ("first_failed", "failed"):
        assert (found[name].verdict, found[name].values) == ("better", {"warm": 0.0, "cold": 1.0}), name
    assert found["first_tool"].verdict == "inconclusive"
    assert (found["shape"].clustered_by, found["shape"].clusters) == ("task", 12), "one project alone shows nothing"
    first = report.compared[0]
    assert (first.effect.metric, first.crossing.helped, first.crossing.harmed) == ("first_own", 24, 0)
    assert (report.tasks, report.left_loose, report.given_away) == (12, 0, 0)
    assert all(one.effect.high <= 1 and one.effect.low >= -1 for one in report.compared), "no share exceeds 1"
    assert report.arms["warm"].seed_tokens > 0 == report.arms["cold"].seed_tokens
    assert msgspec.json.decode(msgspec.json.encode(report), type=ReplayReport) == report

    show_replay(report)
    shown = capsys.readouterr().out
    assert "first call: exact, not in a seed" in shown and "better" in shown
    assert "+100.0 pt" in shown and "+100.0%" not in shown, "a difference of two percentages is in points"
    assert "0 of 24 seeds contained a call that worked in the session's own record" in shown
    assert "of 12 tasks" in shown and "--arms cold,warm,mismatched" in shown
    assert "cannot show" in shown and "whether a task gets solved" in shown
    assert "inferred from recorded calls" in shown and "redacted before they are sent" in shown


def test_a_seed_that_does_nothing_is_inconclusive(recorded, settings):
    def model(request: dict[str, Any]) -> Reply:
        if answers_in(request):
            return Reply(text="Done.")
        service = service_in(request)
        wording = "upgrade" if SERVICES.index(service) % 2 else "deploy"
        return Reply(calls=(call("Bash", {"command": f"helm {wording} {service}"}),))

    report = run(recorded, model, settings)
    for effect in effects(report).values():
        assert (effect.difference, effect.verdict) == (0, "inconclusive"), effect.metric
        assert effect.low < 0 < effect.high
    assert effects(report)["first_exact"].values == {"warm": 0.5, "cold": 0.5}


def test_no_call_at_all_counts_as_an_attempt_that_agrees_with_nothing(recorded, settings):
    def model(request: dict[str, Any]) -> Reply:
        return copies_the_seed(request) if seeded_calls(request) else Reply(text="I would run helm.")

    report = run(recorded, model, settings)
    assert (report.arms["cold"].no_call, report.arms["cold"].calls, report.arms["warm"].no_call) == (24, 0, 0)
    found = effects(report)
    assert found["shape"].n == {"warm": 24, "cold": 24}
    assert found["shape"].values == {"warm": 1.0, "cold": 0.0}
    assert (found["first_unusable"].verdict, found["unusable"].values["cold"]) == ("better", 1.0)
    silent = run(recorded, lambda _request: Reply(text="No."), settings, out=recorded.parent / "silent", limit=10)
    assert {effect.verdict for effect in effects(silent).values()} == {"inconclusive"}


@pytest.mark.parametrize(
    ("asked", "counted", "told"),
    [
        (call("Bash", '{"command": "helm'), "malformed", NO_OBJECT),
        (call("Bash", '["helm"]'), "malformed", NO_OBJECT),
        (call("launch_rocket", {"to": "moon"}), "unknown_tools", NO_SUCH_TOOL),
        (call("not a name!", {}), "unknown_tools", NO_SUCH_TOOL),
    ],
)
def test_what_cannot_be_called_is_counted_and_answered(recorded, settings, asked, counted, told):
    llm = Asked(lambda request: Reply(text="Done.") if answers_in(request) else Reply(calls=(asked,)))
    report = run(recorded, llm, settings, limit=4)
    for arm in ("cold", "warm"):
        assert getattr(report.arms[arm], counted) == 4 == report.arms[arm].first_unusable
        assert report.arms[arm].first_shape == report.arms[arm].matched == 0
    later = [json.loads(body)["messages"] for body in llm.bodies if b"[replay]" in body]
    assert len(later) == 8
    for messages in later:
        assistant, answer = messages[-2:]
        (made,) = assistant["tool_calls"]
        assert (answer["tool_call_id"], answer["content"]) == (made["id"], told)
        json.loads(made["function"]["arguments"])
        assert made["function"]["name"].replace("_", "").isalnum(), "nothing that an endpoint would refuse is sent back"


def test_parallel_calls_each_get_their_own_answer(recorded, settings):
    def model(request: dict[str, Any]) -> Reply:
        service = service_in(request)
        if answers_in(request):
            return Reply(text="Done.")
        wanted = [
            call("Read", {"file_path": f"/srv/{service}/values.yaml"}),
            call("Bash", {"command": f"helm deploy {service}"}),
            call("Bash", {"command": "ls"}),
        ]
        return Reply(calls=tuple(wanted), text="Three at once.")

    llm = Asked(model)
    report = run(recorded, llm, settings, limit=3)
    counts = report.arms["cold"]
    assert (counts.calls, counts.exact, counts.failed, counts.matched, counts.shape) == (9, 3, 3, 6, 3)
    assert counts.first_exact == 3
    messages = next(body for body in map(json.loads, llm.bodies) if answers_in(body))["messages"]
    assistant, *answers = messages[-4:]
    ids = [made["id"] for made in assistant["tool_calls"]]
    assert len(set(ids)) == 3
    assert [answer["tool_call_id"] for answer in answers] == ids
    assert answers[0]["content"].startswith("replicas: 3")
    assert answers[1]["content"].startswith("Error: unknown command")
    assert answers[2]["content"] == NOTHING_RECORDED


def test_turns_end_where_the_plan_says(recorded, settings):
    llm = Asked(lambda _request: Reply(calls=(call("Bash", {"command": "ls"}),)))
    report = run(recorded, llm, settings, limit=2, turns=3)
    counts = report.arms["cold"]
    assert counts.turns == 6
    assert (counts.calls, counts.repeated) == (2, 4), "the same call again says nothing new"
    assert len(llm.bodies) == 12 == report.asked


# Help and copying


def repeats_the_last_example(request: dict[str, Any]) -> Reply:
    shown = seeded_calls(request)
    made = (shown[-1]["name"], shown[-1]["arguments"]) if shown else (request["tools"][0]["function"]["name"], "{}")
    return Reply(calls=(call(*made),))


def test_a_parrot_wins_nothing(recorded, settings, capsys):
    report = run(recorded, repeats_the_last_example, settings, turns=2)
    assert report.seeded == 24 == report.arms["warm"].copied
    for name, effect in effects(report).items():
        assert effect.verdict != "better", name
    assert effects(report)["first_own"].values == effects(report)["first_shape"].values == {"warm": 0, "cold": 0}
    show_replay(report)
    assert "The first line rests on little: 0 sessions" in capsys.readouterr().out


def test_a_shown_call_that_is_the_very_call_agrees_but_not_in_the_first_line():
    calls = [
        RecordedCall(tool="Bash", arguments={"command": "make test"}, result="ok", status="ok"),
        RecordedCall(tool="Bash", arguments={"command": "make lint"}, result="ok", status="ok"),
    ]
    shown = [normal_form("Bash", {"command": line}) for line in ("make test", "make deploy")]
    player = RecordPlayer(calls, ["Read"], shown)
    lines = ("make test", "make deploy", "make lint", "make lint")
    test, deploy, lint, again = (player.answer(call("Bash", {"command": line}), 1)[0] for line in lines)
    assert (test.exact, test.own, test.shape_worked, test.tool_worked) == (True, False, True, True)
    assert (deploy.shown, deploy.shape_worked, deploy.tool_worked) == (True, False, False), "merely copied"
    assert (lint.own, lint.repeated, again.repeated) == (True, False, True)
    read, text = player.answer(call("Read", {}), 2)
    assert (read.form, read.tool_worked, text) == ("good", False, NOTHING_RECORDED), "offered, and a wrong choice"


def test_all_tools_of_the_agent_are_offered(recorded, settings):
    calls = [("Grep", {"pattern": "todo"}, "a.py:1: todo"), ("Glob", {"pattern": "*.py"}, "a.py")]
    write_jsonl(recorded / "search.jsonl", transcript("search", "where is anything left to do", calls))
    llm = Asked(copies_the_seed)
    run(recorded, llm, settings, limit=2)
    for request in map(json.loads, llm.bodies):
        assert [tool["function"]["name"] for tool in request["tools"]] == ["Bash", "Glob", "Grep", "Read"]


def test_where_an_agent_has_too_many_tools_the_usual_and_the_own_are_offered():
    def recording(name: str, *tools: str) -> Recording:
        calls = tuple(RecordedCall(tool=tool, arguments={}, result="", status="ok") for tool in tools)
        return Recording(name=name, agent="a", half=1, family=name, task="t", calls=calls)

    usual = [f"usual_{n:02}" for n in range(40)]
    odd, plain = recording("odd", "rare_one"), recording("plain", *usual)
    box = Toolbox([odd, plain, recording("more", *usual), recording("else", "rare_two")])
    assert box.names(plain) == tuple(usual)
    assert box.names(odd) == ("rare_one", *usual)


def test_the_mismatched_arm_shows_what_any_example_does(recorded, settings, capsys):
    """Against other work of the same agent, fitting examples make the difference, and the table shows it."""
    for word in ("maple", "north", "ocean", "pearl", "quill", "river"):
        calls = [
            ("mcp__code__usages", {"pattern": f"import {word}"}, f"{word}.py:1: import {word}"),
            ("mcp__code__rename", {"file_path": f"/srv/lib/{word}.py", "old": word, "new": f"{word}2"}, "renamed"),
        ]
        write_jsonl(recorded / f"{word}.jsonl", transcript(word, f"rename python module {word} in all imports", calls))

    def model(request: dict[str, Any]) -> Reply:
        if "module" in request["messages"][-1 - answers_in(request)]["content"]:
            return Reply(text="No.")
        return copies_the_seed(request)

    llm = Asked(model)
    report = run(recorded, llm, settings, arms=("cold", "warm", "mismatched"))
    assert list(report.arms) == ["cold", "warm", "mismatched"]
    assert report.replayed == 30 and report.arms["mismatched"].examples > 0
    first = report.compared_mismatched[0].effect
    assert (first.metric, first.control, first.verdict) == ("first_own", "mismatched", "better")
    assert set(first.missing) == {"warm", "mismatched"}
    show_replay(report)
    shown = capsys.readouterr().out
    assert "cold, warm and mismatched" in shown and "Against examples of other work" in shown
    assert not run(recorded, model, settings, out=recorded.parent / "two").compared_mismatched


# Matching


@pytest.mark.parametrize(
    ("recorded_arguments", "proposed", "same"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}}, True),
        ({"n": 5}, {"n": 5.0}, True),
        ({"n": [1, 2.5]}, {"n": [1.0, 2.50]}, True),
        ({"n": 5}, {"n": "5"}, False),
        ({"n": 1}, {"n": True}, False),
        ({"n": [1, 2]}, {"n": [2, 1]}, False),
        ({"n": 10**40}, {"n": 10**40}, True),
        ({"command": "ls  -la\t/srv "}, {"command": "ls -la /srv"}, True),
        ({"command": "ls -la"}, {"command": "ls -l"}, False),
        ({"code": "if x:\r\n    y  \r\n"}, {"code": "if x:\n    y"}, True),
        ({"code": "if x:\n    y"}, {"code": "if x:\n  y"}, False),
        ({"command": "ls", "description": "list"}, {"command": "ls"}, True),
        ({"command": "ls", "timeout": 5}, {"command": "ls", "timeout": 9}, True),
        ({"command": "ls", "cwd": None}, {"command": "ls"}, True),
        ({"command": "ls", "cwd": "/"}, {"command": "ls"}, False),
        ({"path": "A.txt"}, {"path": "a.txt"}, False),
        ({"content": "word " * 900}, {"content": "word " * 900}, True),
        ({"content": "word " * 900}, {"content": "word " * 901}, False),
    ],
)
def test_which_calls_are_the_same(recorded_arguments, proposed, same):
    assert (normal_form("t", recorded_arguments) == normal_form("t", proposed)) is same
    assert normal_form("t", proposed) != normal_form("u", proposed)


def test_a_repeated_call_gets_the_next_recorded_result_and_then_the_last():
    calls = [
        RecordedCall(tool="Bash", arguments={"command": "pytest"}, result="1 failed", status="error"),
        RecordedCall(tool="Bash", arguments={"command": "pytest"}, result="", status="ok"),
        RecordedCall(tool="Edit", arguments={"path": "a"}, result="stopped", status="rejected"),
    ]
    player = RecordPlayer(calls)
    asked = call("Bash", {"command": " pytest "})
    found = [player.answer(asked, turn) for turn in (1, 2, 3)]
    assert [text for _proposed, text in found] == ["1 failed", "(no output)", "(no output)"]
    assert [proposed.matched for proposed, _text in found] == ["error", "ok", "ok"]
    assert [proposed.repeats_error for proposed, _text in found] == [True, False, False]
    proposed, _text = player.answer(call("Edit", {"path": "a"}), 4)
    assert (proposed.matched, proposed.exact, proposed.repeats_error, proposed.tool_worked) == ("rejected",) + (
        False,
    ) * 3


def test_what_nothing_was_recorded_for_is_no_error():
    player = RecordPlayer([RecordedCall(tool="Bash", arguments={"command": "cat a.txt"}, result="x", status="ok")])
    proposed, text = player.answer(call("Bash", {"command": "cat b.txt"}), 1)
    assert (proposed.tool_worked, proposed.shape_worked, proposed.matched, proposed.form) == (True, True, None, "good")
    assert judge_result(None, text).status != "error"


def test_schemas_are_inferred_from_calls_that_did_not_fail():
    def recording(*calls: RecordedCall) -> Recording:
        return Recording(name="n", agent="a", half=1, family="f", task="t", calls=calls)

    one = recording(
        RecordedCall(tool="read", arguments={"path": "a", "limit": 5}, result="", status="ok"),
        RecordedCall(tool="read", arguments={"file": "a"}, result="", status="error"),
        RecordedCall(tool="odd", arguments={"x": 1}, result="", status="error"),
    )
    other = recording(
        RecordedCall(tool="read", arguments={"path": "b", "limit": 2.5, "tags": None}, result="", status="ok")
    )
    offered = {tool["function"]["name"]: tool["function"]["parameters"] for tool in Toolbox([one, other]).describe(one)}
    assert list(offered) == ["odd", "read"]
    assert offered["odd"]["properties"] == {"x": {"type": "integer"}}
    assert offered["read"] == {
        "type": "object",
        "properties": {"limit": {"type": "number"}, "path": {"type": "string"}, "tags": {}},
        "required": ["limit", "path"],
    }


# Nothing leaks


def test_halves_share_no_task_and_no_kin():
    ties = {"a": ["task 1", "session x"], "b": ["task 1"], "c": ["task 2", "session x"], "d": ["task 3"], "e": []}
    families = join({key: Traces(tuple(found)) for key, found in ties.items()}).families
    assert families["a"] == families["b"] == families["c"]
    assert len({families[key] for key in "ade"}) == 3
    splits = [split_families(families, seed) for seed in range(20)]
    assert split_families(families, 3) == splits[3]
    assert len({split[families["a"]] for split in splits}) == 2, "the random seed decides"
    for split in splits:
        sizes = [sum(split[family] == half for family in families.values()) for half in (1, 2)]
        assert sorted(sizes) in ([1, 4], [2, 3]), "as even as families in any order allow"


def test_no_session_is_shown_what_its_own_task_taught(recorded, settings):
    llm = Asked(copies_the_seed)
    report = run(recorded, llm, settings)
    warm = 0
    for request in map(json.loads, llm.bodies):
        if seeded_calls(request) and not answers_in(request):
            warm += 1
            assert f"rev-{service_in(request)}" not in str(request["messages"][:-1])
            assert service_in(request) not in str(seeded_calls(request))
    assert warm == 24
    by_task: dict[str, set[int]] = {}
    for line in report.sessions:
        by_task.setdefault(line.task, set()).add(line.half)
    assert all(len(halves) == 1 for halves in by_task.values())
    halves = {line.name: line.half for line in report.sessions}
    for half in (1, 2):
        store = open_store(str(recorded.parent / "out" / f"half-{half}.db"))
        trial_store = TrialStore(store)
        trials = trial_store.trials("replay")
        assert len(trials) == 24 and {trial.assignment for trial in trials} == {"paired"}
        for trial in trials:
            name, _dash, arm = trial.session.rpartition("-")
            assert halves[name] == 3 - half and arm == trial.arm
            taught = {halves[pick.example.session[:16]] for pick in trial_store.picks(trial) or ()}
            assert taught == {half}
        store.close()


def test_sessions_of_one_task_stand_in_one_half_however_it_was_worded(tmp_path, settings):
    """Simulated users word a task differently each time; the values in the calls identify it."""
    wordings = ("please upgrade {}", "could {} get its new release?", "I need you to roll {} out", "{} is behind, act")
    for service in SERVICES:
        for n, wording in enumerate(wordings):
            calls = [
                ("get_release", {"service_id": f"{service}_{4000 + SERVICES.index(service)}"}, f"found rev-{service}"),
                ("upgrade", {"service_id": f"{service}_{4000 + SERVICES.index(service)}", "wait": True}, "done"),
            ]
            lines = transcript(f"{service}-{n}", wording.format(service), calls)
            write_jsonl(tmp_path / "worded" / f"{service}-{n}.jsonl", lines)
    llm = Asked(lambda _request: Reply(text="No."))
    report = run(tmp_path / "worded", llm, settings, turns=1)
    assert (report.replayed, report.tasks, report.left_loose) == (48, 12, 0)
    assert report.compared[0].effect.clusters == 12, "four wordings of a task count once"
    assert report.seeded and report.given_away == 0
    halves: dict[str, set[int]] = {}
    for line in report.sessions:
        service = next(word for word in SERVICES if word in line.task)
        halves.setdefault(service, set()).add(line.half)
    assert all(len(found) == 1 for found in halves.values())


def test_seeds_that_hold_a_call_of_the_record_are_counted(recorded, settings, capsys):
    for path in recorded.glob("*.jsonl"):
        path.unlink()
    for service in SERVICES:
        calls = [("Bash", {"command": "helm repo update"}, "updated"), *deployment(service)[1:]]
        write_jsonl(recorded / f"{service}.jsonl", transcript(service, ask_for(service), calls))
    report = run(recorded, copies_the_seed, settings)
    assert report.seeded == 12 == report.given_away, "all sessions begin with the same call, and seeds show it"
    assert all(line.given_away for line in report.sessions)
    show_replay(report)
    assert "12 of 12 seeds contained a call that worked in the session's own record" in capsys.readouterr().out


def test_no_secret_reaches_the_endpoint_or_the_folder(recorded, settings):
    for n, service in enumerate(("elkgate", "elkmill", "fernhall", "ferngate")):
        calls = [
            *deployment(service),
            (
                "Bash",
                {"command": f"curl -H 'Authorization: Bearer {TOKEN}' https://api.example.com/{service}"},
                f"token {TOKEN}",
            ),
            ("Bash", {"command": f"echo {SECRET}"}, f"{SECRET}\n{TOKEN}"),
            ("Login", {"password": "hunter2-" + SECRET, "user": "dev"}, "welcome"),
        ]
        task = f"{ask_for(service)}; the key is {SECRET}, the token {TOKEN}. " + "Take care. " * (200 * (n % 2))
        lines = transcript(f"{service}-{TOKEN}", task, calls, cwd=f"/home/dev/{SECRET}/shop")
        write_jsonl(recorded / f"{service}-{SECRET}.jsonl", lines)
    (recorded / f"broken-{SECRET}.jsonl").write_text('{"type": "user", "sessionId": "x"\n' * 3)

    def model(request: dict[str, Any]) -> Reply:
        return Reply(calls=(call("Bash", {"command": f"echo {SECRET} {TOKEN}"}),), text=f"I know {TOKEN}")

    llm = Asked(model)
    out = recorded.parent / "out"
    report = run(recorded, llm, settings, out=out)
    assert report.replayed == 28
    secrets = (SECRET.encode(), TOKEN.encode())
    assert not any(secret in body for secret in secrets for body in llm.bodies)
    assert any(b"{{SECRET:" in body for body in llm.bodies)
    files = [path for path in out.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {
        "plan.json",
        "recordings.jsonl",
        "answers.jsonl",
        "report.json",
        "half-1.db",
    }
    for path in files:
        content = path.read_bytes()
        assert not any(secret in content or secret in str(path).encode() for secret in secrets), path.name
        assert path.stat().st_mode & 0o077 == 0 or path.name == ".warmstart-replay"
    assert SECRET not in str(report) and TOKEN not in str(report)


def test_the_users_own_store_is_not_touched(recorded, settings):
    run(recorded, copies_the_seed, settings, limit=2)
    assert not settings.home.exists()


# Stopped and resumed


def answered(out: Path) -> set[tuple[str, str, int]]:
    """Return the requests that the journal has an answer to, each once."""
    lines = [json.loads(line) for line in (out / "answers.jsonl").read_text().splitlines()]
    places = [(line["session"], line["arm"], line["turn"]) for line in lines if line["reply"]]
    assert len(set(places)) == len(places)
    return set(places)


class Killed(Exception):
    pass


@contextmanager
def killed() -> Iterator[None]:
    with pytest.raises(Killed):
        yield


def test_a_killed_run_goes_on_and_asks_nothing_twice(recorded, settings):
    whole = Asked(copies_the_seed)
    expected = run(recorded, whole, settings, out=recorded.parent / "whole")
    first = Asked(copies_the_seed)

    def dies(request: dict[str, Any]) -> Reply:
        if len(first.bodies) == 31:
            raise Killed
        return copies_the_seed(request)

    first._model = dies
    with killed():
        run(recorded, first, settings)
    for path in recorded.glob("amber*"):  # the folder changes meanwhile, the sessions to replay stay
        path.unlink()
    second = Asked(copies_the_seed)
    report = run(recorded, second, settings)
    assert [*first.bodies[:-1], *second.bodies] == whole.bodies
    assert structs.replace(report, asked=expected.asked) == expected
    third = Asked(copies_the_seed)
    assert structs.replace(run(recorded, third, settings), asked=expected.asked) == expected
    assert not third.bodies


def test_a_torn_line_of_the_journal_is_asked_for_again(recorded, settings):
    expected = run(recorded, copies_the_seed, settings, limit=5)
    journal = recorded.parent / "out" / "answers.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    again = Asked(copies_the_seed)
    report = run(recorded, again, settings, limit=5)
    assert (len(again.bodies), structs.replace(report, asked=expected.asked)) == (1, expected)
    last = Asked(copies_the_seed)
    run(recorded, last, settings, limit=5)
    assert not last.bodies


def test_a_run_killed_while_it_read_starts_over(recorded, settings, tmp_path):
    out = tmp_path / "out"
    run(recorded, copies_the_seed, settings, limit=2)
    (out / "plan.json").unlink()
    assert run(recorded, copies_the_seed, settings, limit=2).replayed == 2


def test_more_sessions_may_be_asked_for_later(recorded, settings):
    less = Asked(copies_the_seed)
    few = run(recorded, less, settings, limit=3)
    more = Asked(copies_the_seed)
    report = run(recorded, more, settings, limit=6)
    assert (few.replayed, report.replayed) == (3, 6)
    assert report.sessions[:3] == few.sessions
    assert len(less.bodies) + len(more.bodies) == len(answered(recorded.parent / "out"))
    assert few.compared[0].effect.verdict == "too_few" and few.compared[0].effect.low is None


def test_a_folder_belongs_to_one_plan(recorded, settings, tmp_path):
    run(recorded, copies_the_seed, settings, limit=1)
    with pytest.raises(Refused, match="other turns, budget"):
        run(recorded, copies_the_seed, settings, limit=1, turns=2, budget=500)
    with pytest.raises(Refused, match="other arms"):
        run(recorded, copies_the_seed, settings, limit=1, arms=("cold", "warm", "mismatched"))
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "report.json").write_text("mine")
    with pytest.raises(Refused, match="holds other files"):
        run(recorded, copies_the_seed, settings, out=foreign)
    assert (foreign / "report.json").read_text() == "mine"


def test_a_folder_of_other_rules_is_refused_and_left_as_it_is(recorded, settings):
    run(recorded, copies_the_seed, settings, limit=1)
    plan = recorded.parent / "out" / "plan.json"
    plan.write_text(json.dumps(json.loads(plan.read_bytes()) | {"rules": 1}))
    before = {path.name: path.read_bytes() for path in plan.parent.iterdir()}
    with pytest.raises(Refused, match=r"another version of Warmstart, .* give another folder"):
        run(recorded, copies_the_seed, settings, limit=1)
    assert {path.name: path.read_bytes() for path in plan.parent.iterdir()} == before


@pytest.mark.parametrize("inside", [False, True])
def test_a_file_is_no_folder(recorded, settings, inside):
    file = recorded.parent / "notes.txt"
    file.write_text("mine")
    with pytest.raises(Refused, match=r"notes\.txt.* cannot be used as a folder: Not a directory"):
        run(recorded, copies_the_seed, settings, out=file / "deeper" if inside else file)
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"turns": 0}, "--turns"),
        ({"limit": 0}, "--limit"),
        ({"examples": 0}, "--examples"),
        ({"arms": ("cold",)}, "--arms"),
        ({"arms": ("cold", "warm", "random")}, "--arms"),
        ({"arms": ("cold", "warm", "warm")}, "--arms"),
    ],
)
def test_plans_that_make_no_sense_are_refused(recorded, settings, wrong, said):
    with pytest.raises(Refused, match=said):
        run(recorded, copies_the_seed, settings, **wrong)


# The command line


def type_in(home: Path, *words: object) -> Result:
    options = ("--endpoint", "http://127.0.0.1:9/v1", "--model", "m")
    return CliRunner().invoke(main, ["--home", str(home), "lab", "replay", *map(str, words), *options])


def test_arms_and_patience_come_from_the_command_line(recorded, tmp_path, monkeypatch):
    given: list[Any] = []

    def scripted(endpoint: Endpoint) -> Asked:
        given.append(endpoint)
        return Asked(copies_the_seed)

    monkeypatch.setattr(lab, "HttpLLM", scripted)
    words = ("--out", tmp_path / "out", "--limit", 2, "--timeout", 900, "--arms", "cold, warm, mismatched", "--json")
    done = type_in(tmp_path / "home", recorded, *words)
    assert done.exit_code == 0, done.output
    assert list(json.loads(done.stdout)["arms"]) == ["cold", "warm", "mismatched"]
    assert given[0].timeout == 900


def test_a_mistyped_path_is_named_with_the_reason(tmp_path):
    done = type_in(tmp_path / "home", tmp_path / "recordde", "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert f"{tmp_path / 'recordde'}: no such file or directory" in done.output


def test_what_would_be_refused_is_not_offered(recorded, tmp_path):
    done = type_in(tmp_path / "home", recorded, "--examples", 0)
    assert (done.exit_code, "1<=x<=50" in done.output) == (2, True)


# Endpoints that fail


@contextmanager
def closing_server() -> Iterator[int]:
    """A real server that accepts connections and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        stopping = threading.Event()

        def serve() -> None:
            while not stopping.is_set():
                connection, _address = server.accept()
                connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = server.getsockname()[1]
        yield port
        stopping.set()
        socket.create_connection(("127.0.0.1", port)).close()
        thread.join()


def test_a_dead_endpoint_ends_with_a_clear_message_and_keeps_what_it_has(recorded, settings):
    with closing_server() as port:
        dead = HttpLLM(Endpoint(url=f"http://127.0.0.1:{port}/v1", key="k", timeout=5), sleep=lambda _seconds: None)
        alive = Asked(copies_the_seed)

        class Failing:
            def ask(self, body: bytes) -> Reply:
                return alive.ask(body) if len(alive.bodies) < 20 else dead.ask(body)

        plan = ReplayPlan(paths=(str(recorded),), model="scripted")
        out = recorded.parent / "out"
        with pytest.raises(
            ReplayStopped, match=r"127\.0\.0\.1:\d+ cannot be reached: .* 3 of 24 sessions .* goes on"
        ) as stopped:
            replay(plan, Failing(), out, settings=settings, clock=lambda: CLOCK)
    assert isinstance(stopped.value, EndpointError)
    partial = stopped.value.report
    assert (partial.replayed, partial.planned, partial.finished) == (3, 24, False)
    assert sum(partial.unanswered.values()) >= 3
    assert msgspec.json.decode((out / "report.json").read_bytes(), type=ReplayReport) == partial
    again = Asked(copies_the_seed)
    report = run(recorded, again, settings)
    assert report.finished
    assert len(alive.bodies) + len(again.bodies) == len(answered(out))


def test_one_request_that_is_refused_does_not_end_the_run(recorded, settings, capsys):
    def model(request: dict[str, Any]) -> Reply:
        if service_in(request) == "cedarhall" and seeded_calls(request):
            raise EndpointError("the endpoint answered with status 400")
        return copies_the_seed(request)

    report = run(recorded, model, settings)
    assert (report.replayed, report.planned, report.unanswered["warm"]) == (22, 24, 2)
    assert report.compared[0].effect.missing["warm"] == 2
    show_replay(report)
    assert "status 400" in capsys.readouterr().out


def test_requests_that_are_always_refused_do_not_stand_in_the_way_of_others(recorded, settings):
    """Three in a row look like a dead endpoint; the next run asks the others first."""
    order = [line.name for line in run(recorded, copies_the_seed, settings, out=recorded.parent / "whole").sessions]

    def model(request: dict[str, Any]) -> Reply:
        if service_in(request) in SERVICES[:7]:
            raise EndpointError("too long")
        return copies_the_seed(request)

    done = []
    for _again in range(6):
        with pytest.raises(ReplayStopped, match="too long") as stopped:
            run(recorded, model, settings)
        done.append(stopped.value.report)
    assert (done[0].replayed < 10, done[-1].replayed) == (True, 10)
    names = [line.name for line in done[-1].sessions]
    assert names == sorted(names, key=order.index)


# What is not replayed


def test_what_cannot_be_replayed_is_counted_with_the_reason(recorded, settings):
    extra = {
        "silent": transcript("silent", None, deployment("silent")),
        "failed": transcript("failed", "break it", [("Bash", {"command": "x"}, "no such thing", True)] * 2),
        "odd": transcript("odd", "use the odd tool", [("odd tool!", {"a": 1}, "fine")]),
    }
    for name, lines in extra.items():
        write_jsonl(recorded / f"{name}.jsonl", lines)
    with (recorded / "failed.jsonl").open("a") as file:
        file.write('{"type": "user", "sessionId": \n')
    messages = [{"role": "user", "content": "look"}, {"role": "assistant", "content": "no"}]
    (recorded / "chat.json").write_text(json.dumps({"messages": messages}))
    report = run(recorded, copies_the_seed, settings, limit=2)
    assert report.left_out[NO_REQUEST] == 1
    assert report.left_out[NO_NAME] == 1
    assert report.left_out[NO_SUCCESS] >= 1
    assert (report.planned, report.replayed) == (2, 2)
    assert any("failed.jsonl" in problem.path for problem in report.problems)


def test_sessions_that_others_started_are_learned_from_and_not_replayed(recorded, settings):
    agent = "recorded/child"
    lines = transcript("amberhall-1", "look at the values", deployment("amberhall"), isSidechain=True, agentId="a1")
    write_jsonl(recorded / agent / "subagents" / "agent-a1.jsonl", lines)
    report = run(recorded, copies_the_seed, settings, limit=2)
    assert report.left_out == {STARTED: 1}
    assert sum(half.sessions for half in report.halves) == 25


def test_without_anything_to_replay_the_reasons_are_told(tmp_path, settings):
    with pytest.raises(Refused, match=r"no session to replay: .*nowhere: \w+"):
        run(tmp_path / "nowhere", copies_the_seed, settings)
    write_jsonl(tmp_path / "only" / "a.jsonl", transcript("a", "break it", [("Bash", {"command": "x"}, "no", True)]))
    with pytest.raises(Refused, match="no call that worked"):
        run(tmp_path / "only", copies_the_seed, settings)
    assert not (tmp_path / "out").exists()


def test_without_templates_both_arms_are_asked_once(tmp_path, settings, capsys):
    for n, service in enumerate(SERVICES[:2]):
        write_jsonl(tmp_path / "few" / f"{n}.jsonl", transcript(f"s{n}", ask_for(service), deployment(service)[1:]))
    llm = Asked(copies_the_seed)
    report = run(tmp_path / "few", llm, settings)
    assert (report.replayed, report.seeded, len(llm.bodies)) == (2, 0, len(set(llm.bodies)))
    assert report.arms["warm"] == report.arms["cold"]
    show_replay(report)
    assert "Neither half gave a usable template" in capsys.readouterr().out


def test_the_seed_is_what_provision_gives(recorded, settings):
    """The model was sent the seed that a preview from that half's store shows."""
    from warmstart.pipeline import Warmstart

    llm = Asked(copies_the_seed)
    report = run(recorded, llm, settings)
    line = report.sessions[0]
    own = structs.replace(settings, store=str(recorded.parent / "out" / f"half-{3 - line.half}.db"))
    task = Task(text=line.task, project="/home/dev/shop", tools=("Bash", "Read"), model="scripted")
    with Warmstart(own) as ws:
        seed = ws.provision(task)
    sent = [json.loads(body)["messages"] for body in llm.bodies]
    assert any(messages[1 : 1 + len(seed.messages)] == list(seed.messages) for messages in sent[:8])


# Real transcripts


@pytest.mark.parametrize("seed", [1, 2])
def test_real_trials_of_one_task_stand_in_one_half(corpus, settings, seed):
    """Fifty tasks, four trials each, worded by a simulated user; the session's id begins with the task's."""
    gathered = Gatherer(settings, lambda: CLOCK).gather([corpus / "openai_chat"], seed)
    halves: dict[str, set[int]] = {}
    for half, records in gathered.records.items():
        for record in records:
            halves.setdefault(record.session.id.partition("-")[0], set()).add(half)
    assert len(halves) == 50 and all(len(found) == 1 for found in halves.values())
    sizes = [len(records) for records in gathered.records.values()]
    assert min(sizes) > 70, "enough on either side"
    assert len({one.family for one in gathered.recordings}) > 20, "and not all one task"


def test_real_transcripts_can_be_replayed(corpus, tmp_path, settings):
    def model(request: dict[str, Any]) -> Reply:
        if shown := seeded_calls(request):
            return Reply(calls=(call(shown[-1]["name"], shown[-1]["arguments"]),))
        return Reply(text="No.")

    plan = ReplayPlan(paths=(str(corpus / "claude_code"), str(corpus / "gemini_cli")), model="m", limit=30, turns=2)
    report = replay(plan, Asked(model), tmp_path / "out", settings=settings)
    assert report.replayed == report.planned == 30
    assert report.seeded and report.arms["warm"].calls and not report.arms["cold"].calls
    assert report.arms["warm"].unknown_tools == report.arms["warm"].malformed == 0
