"""Whole runs of the lab: all is real but the model, which imitates its examples."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec import json as coded
from msgspec import structs

from lab.lab_world import (
    NAME,
    START,
    Answer,
    Clock,
    Imitator,
    as_model,
    copy_trained,
    families_shown,
    is_seeded,
    make_plan,
    read_sessions,
    serve,
    shows_how,
    trained,
    without_times,
    write_answer,
)
from warmstart import __version__, config
from warmstart.dialects.compose import EXAMPLE_MARK
from warmstart.doors.render.lab_findings import describe_finding, describe_run, judge_effect
from warmstart.endpoints.chat import LLM, Endpoint, EndpointError, HttpLLM, Reply
from warmstart.errors import Refused
from warmstart.lab.chores.draw import POOLS
from warmstart.lab.chores.families import FAMILIES
from warmstart.lab.chores.tasks import LabTask
from warmstart.lab.models.facts import ModelFacts
from warmstart.lab.run.agent import AgentLimits
from warmstart.lab.run.lab import ARMS, Lab, Plan, SavedPlan, clear
from warmstart.lab.run.report import report_lab
from warmstart.lab.run.summary import LabReport
from warmstart.pipeline import Warmstart

__all__ = ["trained"]
pytestmark = pytest.mark.slow  # the training that all of them share takes seconds
TASKS = 12  # of as many families: enough for an interval
HELD_OUT = {family.name for family in FAMILIES if family.held_out}


class Ran(NamedTuple):
    report: LabReport
    steps: list[tuple[LabTask, str]]
    trouble: EndpointError | None


def run_lab(folder: Path, llm: LLM, plan: Plan) -> Ran:
    """Run the lab as the command line does, until it is done or the model fails, and report it."""
    lab = Lab(folder, plan, llm, Clock())
    trouble = None
    try:
        lab.run()
    except EndpointError as error:
        trouble = error
    report = report_lab(lab, "warmstart lab run", 1.79e9)
    steps = list(lab.steps())
    lab.close()
    return Ran(report, steps, trouble)


# What a run shows


class All(NamedTuple):
    """A run of every arm."""

    report: LabReport
    openings: list[tuple[LabTask, str, list[dict[str, Any]]]]  # task, arm, opening messages
    folder: Path


@pytest.fixture(scope="module")
def every_arm(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> All:
    folder = copy_trained(trained, tmp_path_factory.mktemp("all") / "run", ("training",))
    model = Imitator()
    ran = run_lab(folder, model, make_plan(arms=ARMS, tasks=TASKS))
    openings = [one["messages"] for one in model.asked if one["messages"][-1]["content"] in model.tasks]
    return All(
        ran.report,
        [(task, arm, messages) for (task, arm), messages in zip(ran.steps, openings, strict=True)],
        folder,
    )


def test_warm_beats_cold_through_the_whole_path(every_arm):
    report = every_arm.report
    assert (report.done, report.planned, report.finished) == (5 * TASKS, 5 * TASKS, True)
    assert not report.report.blocked
    lines = {line.arm: line for line in report.arms}
    stuck = sum(task.family in Imitator.STUCK for task in {task.id: task for task, *_ in every_arm.openings}.values())
    assert stuck, "the model fails at nothing, so there is no spread to judge by"
    assert {arm: line.solved for arm, line in lines.items()} == {
        "cold": 0,
        "warm": TASKS - stuck,
        "random": 0,
        "mismatched": 0,
        "text": TASKS - stuck,
    }
    solved = next(one for one in report.report.effects if one.arm == "warm")
    assert (solved.metric, report.report.metric) == ("success", "success")
    assert solved.verdict == "better"
    assert solved.low > 0
    errors = next(one for one in report.report.secondary if (one.arm, one.metric) == ("warm", "error_rate"))
    assert errors.high < 0
    crossing = report.report.crossings["warm"]
    assert (crossing.both, crossing.helped, crossing.harmed, crossing.neither) == (0, TASKS - stuck, 0, stuck)
    assert crossing.p < 0.01
    assert judge_effect(report, solved) == ("better", "better")
    assert judge_effect(report, errors) == ("open", "less")
    assert describe_finding(report).headline.startswith("warm beats cold")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere programs word their output otherwise")
def test_sessions_of_a_model_that_behaves_are_what_they_always_were(every_arm):
    """Handling of odd answers changes nothing for a model without them. New tasks, tools or seeds do: then update the hash."""
    told = json.dumps(without_times(read_sessions(every_arm.folder)), sort_keys=True)
    assert hashlib.blake2b(told.encode(), digest_size=8).hexdigest() == "d4eb22284d126f4a"


def test_control_arms_are_shown_beside_it_and_show_nothing(every_arm):
    effects = {one.arm: one for one in every_arm.report.report.effects}
    assert set(effects) == set(ARMS) - {"cold"}
    for arm in ("random", "mismatched"):
        assert effects[arm].verdict not in ("better", "worse")
        assert effects[arm].values == {arm: 0.0, "cold": 0.0}
    assert effects["text"].verdict == "better"


def test_lines_and_cells_tell_what_happened(every_arm):
    lines = {line.arm: line for line in every_arm.report.arms}
    assert all(line.sessions == TASKS for line in lines.values())
    assert (lines["cold"].seed_tokens, lines["cold"].examples) == (0, 0)
    seeds = [messages[1:-1] for _task, arm, messages in every_arm.openings if arm == "warm"]
    shown = [sum(EXAMPLE_MARK in str(said["content"]) for said in seed) for seed in seeds]
    assert 2 <= min(shown) < max(shown) == 4, "at most four; exchanges of several calls leave room for fewer"
    assert lines["warm"].examples == pytest.approx(sum(shown) / TASKS)
    assert 100 < lines["warm"].seed_tokens <= 1_000
    assert lines["warm"].tokens > lines["cold"].tokens
    assert lines["cold"].turns_to_success == 2  # no success within its two turns
    assert 1 <= lines["warm"].turns_to_success < 2
    assert all(line.seconds > 0 for line in lines.values())
    for told in every_arm.report.tasks:
        cold, warm = told.arms["cold"], told.arms["warm"]
        assert (cold.solved, cold.errors, cold.calls, cold.success_turn, cold.turns) == (False, 2, 2, None, 2)
        if told.family in Imitator.STUCK:
            assert (warm.solved, warm.errors, warm.calls, warm.success_turn) == (False, 2, 2, None)
        elif "-reworded-" in told.task:
            assert (warm.solved, warm.errors, warm.success_turn) == (True, 1, 2)
        else:
            assert (warm.solved, warm.errors, warm.success_turn) == (True, 0, 1)


def test_facts_of_the_run(every_arm):
    report = every_arm.report
    assert report.templates > 10
    assert report.training_sessions == len(list((every_arm.folder / "training").iterdir()))
    assert set(report.held_out) == HELD_OUT
    assert len(report.families) == TASKS
    assert not set(report.families) & HELD_OUT
    assert report.walls
    assert coded.decode(coded.encode(report), type=LabReport) == report


def test_control_arms_see_held_out_families_alone_and_cold_sees_none(every_arm):
    shown = {arm: set() for arm in ARMS}
    for _task, arm, messages in every_arm.openings:
        shown[arm] |= families_shown(messages)
        assert bool(families_shown(messages)) == (arm != "cold")
    assert shown["random"] <= HELD_OUT
    assert shown["mismatched"] <= HELD_OUT
    assert shown["random"]
    assert shown["mismatched"]
    assert not shown["warm"] <= HELD_OUT  # warm may see all active templates
    assert all(shows_how(task, messages) for task, arm, messages in every_arm.openings if arm in ("warm", "text"))


def test_no_seed_tells_a_name_or_value_of_a_tested_task(every_arm):
    tested = {word for pool in POOLS.values() for word in pool["test"]}
    words = {word for task, *_ in every_arm.openings for path in task.files for word in re.findall(r"[a-z]+", path)}
    assert words & tested, "no task has the names that are searched for"
    for task, arm, messages in every_arm.openings:
        seed = json.dumps(messages[1:-1])
        found = set(re.findall(r"[a-z]+", seed.lower())) & {word.lower() for word in tested}
        assert not found, (arm, task.id)
        assert all(other.request not in seed for other, *_ in every_arm.openings)


def test_what_is_learned_from_and_what_is_tested_are_different_sessions(every_arm):
    ids = {
        part: {coded.decode(data)["session_id"] for data in read_sessions(every_arm.folder, part).values()}
        for part in ("training", "sessions")
    }
    assert len(ids["sessions"]) == 5 * TASKS
    assert not ids["training"] & ids["sessions"]
    ws = Warmstart(config.load(every_arm.folder / "home", environ={}), Clock())
    keys = {row.key: row.id for row in ws.sessions(limit=1_000)}
    sources = {keys[key] for _row, one in ws.templates.find(status="active") for key in one.source_sessions}
    assert sources
    assert sources <= ids["training"]
    ws.close()


def test_every_arm_does_the_same_tasks_in_an_order_of_its_own(every_arm):
    tasks = [[task.id for task, arm, _messages in every_arm.openings if arm == one] for one in ARMS]
    assert all(one == tasks[0] for one in tasks)
    orders = {tuple(arm for _task, arm, _messages in every_arm.openings[n : n + 5]) for n in range(0, 5 * TASKS, 5)}
    assert len(orders) > 3


# The same again


def test_same_seed_same_transcripts_to_the_byte(trained, tmp_path):
    found = []
    for place in ("here", "elsewhere/deeper"):
        folder = copy_trained(trained, tmp_path / place)
        run_lab(folder, Imitator(), make_plan())
        found.append((read_sessions(folder), read_sessions(folder, "training")))
    assert len(found[0][0]) == 12
    assert found[0] == found[1]


def test_what_is_learned_is_the_same_again_whatever_the_clock_says(trained, tmp_path):
    """On a busier machine the solver takes longer; transcripts, some solved again here, and templates stay the same."""
    folder, ahead = copy_trained(trained, tmp_path / "again", ("training",)), count(START + 1e6, 977.7)
    for path in sorted((folder / "training").iterdir())[::12]:
        path.unlink()
    lab = Lab(folder, make_plan(tasks=1), Imitator(fails_after=0), lambda: next(ahead))
    with suppress(EndpointError):
        lab.run()
    assert read_sessions(folder, "training") == read_sessions(trained, "training")
    assert _templates_of(folder) == _templates_of(trained)
    lab.close()


def _templates_of(folder: Path) -> dict[str, tuple[str, str]]:
    ws = Warmstart(config.load(folder / "home", environ={}), Clock())
    found = {row.name: (row.status, row.digest) for row, _template in ws.templates.find()}
    ws.close()
    assert len(found) > 10
    return found


def test_another_seed_makes_other_tasks(trained, tmp_path):
    requests = {}
    for seed in (1, 2):
        lab = Lab(tmp_path / str(seed), make_plan(random_seed=seed), Imitator(), Clock())
        requests[seed] = {task.request for task in lab.tasks()}
        lab.close()
    assert len(requests[1]) == len(requests[2]) == 6
    assert not requests[1] & requests[2]


# Runs that were stopped


@pytest.fixture(scope="module")
def unbroken(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Imitator]:
    folder = copy_trained(trained, tmp_path_factory.mktemp("unbroken") / "run")
    model = Imitator()
    assert run_lab(folder, model, make_plan()).report.finished
    return folder, model


@pytest.mark.parametrize("answers", [0, 1, 7])
def test_a_stopped_run_goes_on_and_asks_nothing_twice(trained, tmp_path, unbroken, answers):
    whole, straight = unbroken
    folder = copy_trained(trained, tmp_path / "run")
    first = Imitator(fails_after=answers)
    ran = run_lab(folder, first, make_plan())
    assert str(ran.trouble) == "the model is gone"
    kept = read_sessions(folder)
    assert len(kept) == ran.report.done < ran.report.planned == 12
    (folder / "sessions" / "warm").mkdir(parents=True, exist_ok=True)
    unfinished = next(f"{task.id}.jsonl" for task, arm in ran.steps if f"sessions/{arm}/{task.id}.jsonl" not in kept)
    for arm in ("cold", "warm"):
        (folder / "sessions" / arm).mkdir(exist_ok=True)
        (folder / "sessions" / arm / f".{unfinished}.0123456789abcdef.part").write_bytes(b'{"session_id": "half a ses')
    second = Imitator()
    again = run_lab(folder, second, make_plan())
    assert again.report.finished
    assert {name: data for name, data in read_sessions(folder).items() if name in kept} == kept
    for path in folder.rglob("*.part"):
        path.unlink()
    assert without_times(read_sessions(folder)) == without_times(read_sessions(whole))
    asked_again = len(first.bodies) + len(second.bodies) - len(straight.bodies)
    assert 0 <= asked_again <= 1  # the session that was interrupted
    assert straight.bodies[: len(first.bodies)] == first.bodies
    assert straight.bodies[len(straight.bodies) - len(second.bodies) :] == second.bodies  # with the same seeds
    assert any(is_seeded(one) for one in second.asked)


def test_a_finished_run_asks_nothing(unbroken):
    folder, _model = unbroken
    silent = Imitator(fails_after=0)
    ran = run_lab(folder, silent, make_plan())
    assert ran.trouble is None
    assert ran.report.finished


def test_training_that_was_stopped_goes_on(trained, tmp_path):
    folder = copy_trained(trained, tmp_path / "run", ("training",))
    (folder / ".plan.json.0123456789abcdef.part").write_bytes(b'{"arms": ["co')
    files = sorted((folder / "training").iterdir())
    for path in files[::20]:
        half = path.with_name(f".{path.name}.0123456789abcdef.part")
        half.write_bytes(path.read_bytes()[:100])
        os.utime(half, (0, 0))
        path.unlink()
    report = run_lab(folder, Imitator(), make_plan(tasks=1)).report
    assert report.finished
    assert sorted((folder / "training").iterdir()) == files
    assert report.templates > 10


def test_a_run_stopped_after_learning_learns_nothing_twice(trained, tmp_path):
    folder = copy_trained(trained, tmp_path / "run", ("training",))
    ws = Warmstart(config.load(folder / "home", environ={}), Clock())
    ws.ingest(folder / "training")
    ws.close()
    report = run_lab(folder, Imitator(), make_plan(tasks=1)).report
    other = run_lab(copy_trained(trained, tmp_path / "other"), Imitator(), make_plan(tasks=1)).report
    assert (report.templates, report.done) == (other.templates, other.done)


def test_an_unfinished_run_gives_no_verdict(trained, tmp_path):
    """Even with enough tasks for one: the interval is for one look, when all is done."""
    folder = copy_trained(trained, tmp_path / "run")
    plan = make_plan(tasks=14)
    report = run_lab(folder, Imitator(fails_after=46), plan).report
    told = min(report.report.effects[0].n.values())
    assert 10 <= told < 14
    assert not report.finished
    effects = [*report.report.effects, *report.report.secondary]
    assert {one.verdict for one in effects} <= {"inconclusive", "too_few"}
    assert all(one.blocked for one in effects)
    assert describe_finding(report).headline.startswith("Unfinished: no verdict")
    done = run_lab(folder, Imitator(), plan).report
    assert done.report.effects[0].verdict == "better"
    assert done.report.effects[0].blocked is None


# Folders


@pytest.mark.parametrize(
    "other",
    [
        {"tasks": 7},
        {"random_seed": 2},
        {"arms": ("cold", "text")},
        {"limits": AgentLimits(turns=3)},
        {"grammar": True},
        {"examples": 2},
    ],
    ids=str,
)
def test_a_folder_of_another_plan_is_refused(tmp_path, other):
    Lab(tmp_path / "run", make_plan(), Imitator(), Clock()).close()
    with pytest.raises(Refused, match="holds another run; give another --out, or --fresh"):
        Lab(tmp_path / "run", make_plan(**other), Imitator(), Clock())
    Lab(tmp_path / "run", make_plan(), Imitator(), Clock()).close()


@pytest.mark.parametrize(
    ("arms", "said"),
    [
        (("cold", "hot"), "not hot"),
        (("cold", "warm", "cold"), "not one twice"),
        (("warm",), "nothing can be compared with a single arm"),
        ((), "nothing can be compared"),
    ],
)
def test_arms_that_make_no_sense_are_refused_before_anything_is_written(tmp_path, arms, said):
    with pytest.raises(Refused, match=said):
        Lab(tmp_path / "run", make_plan(arms=arms), Imitator(), Clock())
    assert not (tmp_path / "run").exists()


def test_no_task_is_counted_twice(tmp_path):
    """Arms are compared request by request: two tasks with the same request would count as one."""
    with pytest.raises(Refused, match=r"--tasks: 243 at most, then random seed 1 makes the same again"):
        Lab(tmp_path / "run", make_plan(tasks=1_000), Imitator(), Clock())
    assert not (tmp_path / "run").exists()
    lab = Lab(tmp_path / "run", make_plan(tasks=243), Imitator(), Clock())
    assert len({task.request for task in lab.tasks()}) == 243
    lab.close()


def test_clear_forgets_a_run_and_nothing_else(trained, tmp_path):
    folder = copy_trained(trained, tmp_path / "run")
    run_lab(folder, Imitator(), make_plan(tasks=1))
    (folder / ".report.json.0123456789abcdef.part").write_text("half")
    (tmp_path / "link").symlink_to(folder)
    clear(tmp_path / "link")
    assert not list(folder.iterdir())
    Lab(folder, make_plan(tasks=2), Imitator(), Clock()).close()
    clear(tmp_path / "nothing")


@pytest.mark.parametrize(
    "theirs",
    [
        "plan.json",
        "thesis.txt",
        "download.part",
        "sessions/keep.txt",
        "sessions/warm/keep.txt",
        "home",
        "training/mine",
    ],
)
def test_clear_leaves_alone_what_is_no_run(tmp_path, theirs):
    """A folder without a plan, and a run's folder with the user's own files in it."""
    folder = tmp_path / "mine"
    (folder / theirs).parent.mkdir(parents=True)
    (folder / theirs).write_text("years of work")
    (folder / "photos").mkdir()
    with pytest.raises(Refused, match="is no run of the lab and not empty"):
        Lab(folder, make_plan(), Imitator(), Clock())
    if theirs != "plan.json":
        (folder / "photos").rmdir()
        (folder / "plan.json").write_bytes(coded.encode(SavedPlan(**structs.asdict(make_plan()), version="0")))
    before = sorted(folder.rglob("*"))
    with pytest.raises(Refused, match="left as it is"):
        clear(folder)
    assert sorted(folder.rglob("*")) == before
    assert (folder / theirs).read_text() == "years of work"


@pytest.mark.parametrize("plan", ["{}", "[]", "no JSON", '{"arms": ["cold"]}'])
def test_what_only_has_the_names_of_a_run_is_none(tmp_path, plan):
    (tmp_path / "plan.json").write_text(plan)
    (tmp_path / "sessions").mkdir()
    with pytest.raises(Refused, match="is no run of the lab; it is left as it is"):
        clear(tmp_path)
    assert (tmp_path / "sessions").is_dir()


def test_a_run_at_another_endpoint_is_another_run(trained, tmp_path):
    folder = copy_trained(trained, tmp_path / "run")
    assert run_lab(folder, Imitator(), make_plan(tasks=1)).report.version == __version__
    elsewhere = ModelFacts(name=NAME, runtime="endpoint", endpoint="http://127.0.0.1:1/v1")
    with pytest.raises(Refused, match="another run"):
        Lab(folder, make_plan(tasks=1, model=elsewhere), Imitator(), Clock())


def test_a_run_tells_the_version_and_the_days_that_were_its_own(trained, tmp_path):
    folder = copy_trained(trained, tmp_path / "run")
    first = run_lab(folder, Imitator(), make_plan(tasks=1)).report
    said = json.loads((folder / "plan.json").read_bytes())
    (folder / "plan.json").write_text(json.dumps(said | {"version": "0.0.1"}))
    later = Lab(folder, make_plan(tasks=1), Imitator(fails_after=0), Clock())
    report = report_lab(later, "warmstart lab run", START + 9e6)
    later.close()
    assert (report.version, report.began, report.ended) == ("0.0.1", first.began, first.ended)
    assert first.began < first.ended < report.at
    assert f"{first.began} to {first.ended}, shown {report.at}" in dict(describe_run(report))["Run (UTC)"]
    next((folder / "sessions").rglob("*.jsonl")).unlink()
    with pytest.raises(Refused, match=r"a run that Warmstart 0\.0\.1 began, and this is"):
        Lab(folder, make_plan(tasks=1), Imitator(), Clock())


# Endpoints that fail


def ask_quickly(url: str) -> HttpLLM:
    return HttpLLM(Endpoint(url=url, timeout=0.3), sleep=lambda _seconds: None)


def answer_late(_body: bytes) -> Answer:
    time.sleep(0.6)
    return 200, {}, write_answer(Reply(text="still there?"))


@pytest.mark.parametrize(
    ("answer", "said", "tries"),
    [
        ((500, {}, b"oh no"), "answered with status 500", 3),
        ((401, {}, b"who are you"), "answered with status 401", 1),
        ((302, {"Location": "http://127.0.0.1:9/"}, b""), "answered with a redirect, which is not followed", 1),
        ((200, {}, b"<html>login</html>"), "the endpoint's answer is not a chat completion", 1),
        ((200, {}, b'{"choices": []}'), "the endpoint's answer has no choices", 1),
        ((200, {"Content-Length": "999"}, b'{"cho'), "closed the connection before its answer was complete", 3),
        (answer_late, "did not answer in 0.3 seconds", 1),
    ],
    ids=["500", "401", "redirect", "garbage", "empty", "cut off", "hangs"],
)
def test_an_endpoint_that_fails_in_the_middle(trained, tmp_path, answer, said, tries):
    folder = copy_trained(trained, tmp_path / "run")
    model, plan = Imitator(), make_plan(tasks=2)
    fail = answer if callable(answer) else lambda _body: answer
    with serve(lambda body: (as_model(model) if len(model.bodies) < 3 else fail)(body)) as endpoint:
        ran = run_lab(folder, ask_quickly(endpoint.url), plan)
        assert len(endpoint.bodies) == 3 + tries
    assert said in str(ran.trouble)
    kept = read_sessions(folder)
    assert 0 < ran.report.done == len(kept) < 4
    assert sum(line.sessions for line in ran.report.arms) == ran.report.done
    with serve(as_model(Imitator())) as endpoint:
        again = run_lab(folder, ask_quickly(endpoint.url), plan)
    assert again.trouble is None
    assert again.report.finished
    assert kept.items() <= read_sessions(folder).items()


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_session_that_is_refused_fails_and_the_run_goes_on(trained, tmp_path, unbroken, status):
    whole, _straight = unbroken
    folder = copy_trained(trained, tmp_path / "run")
    model, refused = Imitator(), []

    def answer(body: bytes) -> Answer:
        reply = as_model(model)(body)
        if is_seeded(json.loads(body)) and len(refused) < 2:
            refused.append(body)
            return status, {}, b'{"error": {"message": "maximum context length is 4096 tokens"}}'
        return reply

    with serve(answer) as endpoint:
        ran = run_lab(folder, ask_quickly(endpoint.url), make_plan())
        assert ran.trouble is None
        assert ran.report.finished
        asked = len(endpoint.bodies)
        run_lab(folder, ask_quickly(endpoint.url), make_plan())
        assert len(endpoint.bodies) == asked
    told = [cell for task in ran.report.tasks for cell in task.arms.values()]
    assert all((cell.calls, cell.turns) == (2, 2) for cell in told if not cell.solved)
    kept, straight = (without_times(read_sessions(one)) for one in (folder, whole))
    others = {name for name, one in kept.items() if "4096 tokens" not in json.dumps(one)}
    assert len(kept) - len(others) == 2
    assert all(kept[name] == straight[name] for name in others)


@pytest.mark.parametrize(("tasks", "row"), [(1, 2), (6, 5)])
def test_a_server_that_refuses_everything_ends_the_run_with_its_words(trained, tmp_path, tasks, row):
    """Nothing is kept: a wrongly started server is no failure of the model."""
    folder = copy_trained(trained, tmp_path / "run")
    plan = make_plan(tasks=tasks)
    with serve(lambda _body: (400, {}, b'{"error": "start me with --jinja"}')) as endpoint:
        ran = run_lab(folder, ask_quickly(endpoint.url), plan)
        assert len(endpoint.bodies) == row
    assert "answered with status 400: start me with --jinja" in str(ran.trouble)
    assert ran.report.done == 0
    with serve(as_model(Imitator())) as endpoint:
        assert run_lab(folder, ask_quickly(endpoint.url), plan).report.finished


def test_an_endpoint_that_is_not_there(trained, tmp_path):
    with serve(as_model(Imitator())) as endpoint:
        url = endpoint.url
    folder = copy_trained(trained, tmp_path / "run")
    ran = run_lab(folder, ask_quickly(url), make_plan())
    assert "cannot be reached" in str(ran.trouble)
    assert ran.report.done == 0
    assert all(line.sessions == 0 for line in ran.report.arms)
    assert not (folder / "sessions").exists()


def test_real_tool_calls_of_an_endpoint_lead_to_the_same_sessions(trained, tmp_path, unbroken):
    whole, straight = unbroken
    folder = copy_trained(trained, tmp_path / "run")
    with serve(as_model(Imitator())) as endpoint:
        run_lab(folder, ask_quickly(endpoint.url), make_plan())
        assert endpoint.bodies == straight.bodies
    assert {one["path"] for one in endpoint.headers} == {"/v1/chat/completions"}
    assert all("Authorization" not in one for one in endpoint.headers)
    assert without_times(read_sessions(folder)) == without_times(read_sessions(whole))
    request = json.loads(endpoint.bodies[0])
    assert (request["model"], request["temperature"]) == (NAME, 0)
    assert {one["function"]["name"] for one in request["tools"]} >= {"terminal", "read_file", "write_file"}
