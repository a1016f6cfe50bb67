"""Provisioning: which examples are chosen and which are omitted and why; chosen once per session, then repeated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import warmstart
from command_line import start_python
from homes import make_roomy, read_everything
from places import SRC
from template_files import DEPLOY, REPORT, example, old_template, template, write_bundle
from transcripts import GITHUB, cart_sessions, teach, work_lines
from warmstart.dialects.lint import lint
from warmstart.dialects.tokens import estimate
from warmstart.errors import NotFound, Refused
from warmstart.model import DIALECTS, Task
from warmstart.pipeline import Warmstart
from warmstart.store import TrialStore

FULL = os.environ.get("WARMSTART_FULL") == "1"
CART_TASK = "fix the failing cart tests"


DEPLOY_BAR = template(
    "deploy bar",
    example("terminal", "make ship", "deploy the bar to the cluster"),
    category="ops",
    task_type="code",
    tags=["bar"],
    provenance={"project": "/home/dev/bar", "agent": "hermes"},
)


@pytest.fixture
def ws(tmp_path):
    with warmstart.open() as opened:
        opened.templates.import_(write_bundle(tmp_path / "t.json", DEPLOY, REPORT, DEPLOY_BAR), approve=True)
        yield opened


def counters(ws: Warmstart) -> tuple[int, int]:
    stats = ws.templates.stats()
    return stats["provisions"], stats["uses"]


def names(seed: Any) -> set[str]:
    return {name.rpartition("@")[0] for name in seed.templates}


def reasons(seed: Any) -> dict[str, str]:
    return {omission.template: omission.reason for omission in seed.omitted}


def commands(seed: Any) -> list[str]:
    """The calls an openai seed shows, in order."""
    calls = [call for message in seed.messages for call in message.get("tool_calls") or ()]
    return [json.loads(call["function"]["arguments"])["command"] for call in calls]


class TestPreview:
    def test_it_writes_nothing(self, ws):
        before = read_everything(ws.settings.home)
        for dialect in DIALECTS:
            seed = ws.provision(Task(text="deploy the shop to the cluster", dialect=dialect))
            assert seed
            assert seed.arm is None
        assert ws.provision(Task(text="deploy the shop to the cluster", cold=True)).arm is None
        assert read_everything(ws.settings.home) == before
        assert counters(ws) == (0, 0)

    def test_it_is_deterministic(self, ws):
        task = Task(text="deploy the shop to the cluster")
        assert msgspec.json.encode(ws.provision(task)) == msgspec.json.encode(ws.provision(task))


class TestRequestedTemplates:
    TEXT = "deploy the shop to the cluster"

    def ask(self, ws: Warmstart, *names: str, **more: Any) -> Any:
        return ws.provision(Task(**{"text": self.TEXT, "project": "*", "templates": names} | more))

    def test_unknown_names_are_not_found(self, ws):
        for more in ({}, {"session": "s"}, {"examples": 0}):
            with pytest.raises(NotFound, match="no templates nosuch, report@9; see: warmstart templates list"):
                self.ask(ws, "deploy", "nosuch", "report@9", **more)
        assert counters(ws) == (0, 0), "no trial"

    def test_a_recorded_seed_is_repeated_though_its_template_is_gone(self, ws):
        seed = self.ask(ws, "deploy", session="s")
        ws.templates.delete("deploy")
        assert self.ask(ws, "deploy", session="s") == seed

    def test_those_that_cannot_be_used_say_why(self, ws, tmp_path):
        ws.templates.import_(write_bundle(tmp_path / "new.json", old_template("waiting")))
        ws.templates.retire("report")
        seed = self.ask(ws, "deploy", "waiting", "report", "deploy bar", project=None)
        assert names(seed) == {"deploy"}
        assert reasons(seed) == {
            "waiting@1": "it waits for approval",
            "report@1": "it is retired",
            "deploy bar@1": "it belongs to another project",
        }
        assert self.ask(ws, "report").reason.startswith("no requested template can be used: it is retired; 1 template")
        alone = self.ask(ws, "waiting")
        assert alone.reason.startswith("no requested template can be used: it waits for approval; 1 template waits")
        assert reasons(alone) == {"waiting@1": "it waits for approval"}

    def test_what_does_not_fit_is_not_blamed_on_the_others(self, ws):
        assert self.ask(ws, "report").reason == "no example of the requested templates fits the task"

    def test_a_weak_one_is_found_without_a_task(self, tmp_path):
        many = write_bundle(tmp_path / "many.json", *(old_template(f"t{n}") for n in range(20)))
        with warmstart.open(make_roomy(tmp_path / "roomy")) as roomy:
            roomy.templates.import_(many, approve=True)
            for n in range(20):
                assert names(self.ask(roomy, f"t{n}", text="")) == {f"t{n}"}

    def test_templates_of_others_do_not_exist(self, ws):
        with pytest.raises(NotFound):
            self.ask(ws, "deploy", scope="profile:work")


@pytest.mark.parametrize("field", ["text", "session", "project"])
def test_a_task_is_made_of_texts(ws, field):
    with pytest.raises(TypeError, match=f"Task.{field} must be a str.* not int"):
        ws.provision(Task(**{field: 5}))
    with pytest.raises(TypeError, match=r"Task\.text must be a str, not NoneType"):
        ws.provision(Task(text=None))


class TestSession:
    TASK = Task(text="deploy the shop to the cluster", session="new-1")

    def test_a_trial_is_written_once(self, ws):
        seed = ws.provision(self.TASK)
        assert seed.arm == "warm"
        assert counters(ws) == (1, len(seed.templates))
        for _ in range(3):
            ws.provision(self.TASK)
        ws.provision(msgspec.structs.replace(self.TASK, dialect="anthropic"))
        assert counters(ws) == (1, len(seed.templates))

    @pytest.mark.parametrize("shown", [True, False])
    def test_a_withdrawn_seed_is_empty_ever_after(self, ws, shown):
        seed = ws.provision(self.TASK)
        part = ws.provision(msgspec.structs.replace(self.TASK, session="new-1#part", parent="new-1", continues=True))
        assert ws.find_withdrawn("new-1") == "" and part
        assert ws.withdraw_seed("new-1", "the provider refused it", shown=shown)
        assert not ws.withdraw_seed("never provisioned", "why not")
        for task in (self.TASK, Task(session="new-1#part"), Task(session="new-1", dialect="anthropic")):
            empty = ws.provision(task)
            assert not empty and (empty.arm, empty.withdrawn) == ("warm", "the provider refused it")
            assert (empty.tokens > 0) == shown and bool(empty.templates) == shown
        said = "no longer shown" if shown else "not seeded"
        assert empty.reason == f"{said}: the provider refused it" and ws.find_withdrawn("new-1") == empty.withdrawn
        later = ws.provision(Task(session="new-2", parent="new-1", continues=True, text=self.TASK.text))
        assert not later and later.withdrawn == empty.withdrawn and later.tokens == 0
        assert ws.provision(Task(session="child", parent="new-1", text=self.TASK.text)).templates == seed.templates
        assert (TrialStore(ws.store).seed_tokens("new-1") > 0) == shown

    def test_the_same_bytes_ever_after(self, ws, tmp_path):
        first = msgspec.json.encode(ws.provision(self.TASK))
        other = Task(text="something else altogether", session="new-1", budget=10, examples=1)
        assert msgspec.json.encode(ws.provision(other)) == first
        ws.templates.import_(write_bundle(tmp_path / "u.json", DEPLOY | {"description": "new"}), approve=True)
        assert msgspec.json.encode(ws.provision(self.TASK)) == first
        ws.templates.retire("deploy")
        ws.templates.delete("deploy")
        ws.templates.delete("deploy bar")
        assert msgspec.json.encode(ws.provision(self.TASK)) == first
        code = (
            "import sys, msgspec, warmstart\nfrom warmstart.model import Task\n"
            "with warmstart.open() as ws:\n"
            "    sys.stdout.buffer.write(msgspec.json.encode(ws.provision(Task(text='x', session='new-1'))))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=os.environ | {"PYTHONPATH": SRC})
        assert done.stdout == first, done.stderr

    def test_another_dialect_shows_the_same_examples(self, ws):
        openai = ws.provision(self.TASK)
        shown = commands(openai)
        assert shown
        for dialect in DIALECTS[1:]:
            seed = ws.provision(msgspec.structs.replace(self.TASK, dialect=dialect, text="the quarterly report"))
            assert (set(seed.templates), seed.arm) == (set(openai.templates), "warm")
            body = seed.text or msgspec.json.encode(seed.messages).decode()
            assert all(command in body for command in shown)
            assert "quarterly" not in body

    def test_an_omitted_example_does_not_return_in_another_dialect(self, ws, tmp_path):
        big = [example("terminal", f"make {n} {'abcd ' * 150}", f"polish the widget {n}") for n in "abc"]
        ws.templates.import_(write_bundle(tmp_path / "big.json", template("big", *big)), approve=True)
        task = Task(text="polish the widget", session="new-2", budget=600)
        shown = commands(ws.provision(task))
        assert 0 < len(shown) < 3
        later = ws.provision(msgspec.structs.replace(task, dialect="text", budget=50_000)).text
        assert [letter for letter in "abc" if f"make {letter} abcd" in later] == [c.split()[1] for c in sorted(shown)]

    def test_an_empty_seed_is_remembered_too(self, ws, tmp_path):
        task = Task(text="entirely unrelated poetry matters", session="new-3")
        empty = ws.provision(task)
        assert not empty
        assert counters(ws) == (1, 0)
        ws.templates.import_(
            write_bundle(tmp_path / "p.json", template("p", example("pen", "x", task.text))), approve=True
        )
        assert ws.provision(task) == empty

    @pytest.mark.parametrize("nothing", ["", "  ", "\n"])
    def test_an_empty_id_is_not_a_session(self, ws, nothing):
        with pytest.raises(Refused, match="empty"):
            ws.provision(Task(text="deploy", session=nothing))
        assert counters(ws) == (0, 0)

    @pytest.mark.parametrize(
        "id_", ["a\0b", "\ud800", "../x", "s" * 5_000, "日本", "'; DROP TABLE trials; --", "\x1b[31m"]
    )
    def test_odd_ids_are_ids(self, ws, id_):
        task = msgspec.structs.replace(self.TASK, session=id_)
        assert ws.provision(task) == ws.provision(task)
        assert counters(ws)[0] == 1

    def test_ids_that_hold_secrets_stay_apart_and_out_of_the_store(self, ws):
        ids = [GITHUB, GITHUB[:-4] + "ZZZZ", "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY", "pat-na1-9c0d43a8-e24c-4c00-8973-93114153e325"]  # fmt: skip
        for id_ in ids:
            task = Task(text="deploy the shop", session=id_, project=f"/home/{id_}/x", agent=id_, model=id_)
            assert ws.provision(task) == ws.provision(task)
        assert counters(ws)[0] == len(ids)
        store = read_everything(ws.settings.home)
        for id_ in ids:
            assert id_.encode() not in store

    def test_the_environments_values_stay_out_too(self, ws, monkeypatch):
        monkeypatch.setenv("ACME_TOKEN", "plain words")
        with warmstart.open() as fresh:
            fresh.provision(Task(text="deploy the shop", session="s plain words", project="/plain words"))
            assert b"plain words" not in read_everything(fresh.settings.home)

    def test_the_task_itself_is_not_kept(self, ws):
        ws.provision(Task(text="deploy the shop for a customer called Zebedee", session="new-4"))
        assert b"Zebedee" not in read_everything(ws.settings.home)


class TestBudget:
    @pytest.mark.parametrize("dialect", DIALECTS)
    def test_never_over(self, ws, dialect):
        for budget in (0, 1, 50, 100, 150, 200, 400, 1_500):
            seed = ws.provision(Task(text="deploy the shop to the cluster", budget=budget, dialect=dialect))
            assert seed.tokens <= budget
            assert seed.budget == budget
            real = estimate(seed.text or "") if seed.text else sum(estimate(json.dumps(m)) for m in seed.messages)
            assert not seed or real <= max(budget, 1) + 12 * len(seed.messages)

    def test_nothing_fits_in_nothing(self, ws):
        seed = ws.provision(Task(text="deploy the shop to the cluster", budget=0))
        assert not seed
        assert (seed.tokens, seed.templates) == (0, ())
        assert "over budget" in seed.reason
        assert {"deploy", "deploy bar"} & set(reasons(seed))

    def test_examples_are_a_limit_too(self, ws):
        assert len(commands(ws.provision(Task(text="deploy the shop to the cluster", examples=1)))) == 1
        assert not ws.provision(Task(text="deploy the shop to the cluster", examples=0))


class TestChoosing:
    def test_nothing_similar(self, ws):
        for text in ("bake a chocolate cake", "bake a chocolate cake in the shop", "zzz", "1234 5678", "!!!" * 10):
            seed = ws.provision(Task(text=text))
            if seed:
                assert text[0] in "1!", "without words the strongest templates"
            else:
                assert seed.reason.startswith("no example is similar enough")

    def test_no_templates_at_all(self, tmp_path):
        with warmstart.open(tmp_path / "empty") as empty:
            assert "no active templates" in empty.provision(Task(text="deploy the shop")).reason
            assert not empty.provision(Task(text="deploy the shop", session="x"))
            assert empty.provision(Task()).reason.startswith(
                "there are no active templates of no project; no session is"
            )

    def test_by_text(self, ws):
        assert names(ws.provision(Task(text="please write the quarterly report"))) == {"report"}
        assert "deploy" in names(ws.provision(Task(text="deploy the shop to the cluster")))

    def test_a_name_is_a_pick(self, ws):
        for text in ("report", "REPORT", "Report"):
            seed = ws.provision(Task(text=text))
            assert names(seed) == {"report"}
            assert "by name" in seed.reason
        ws.templates.retire("report")
        assert not ws.provision(Task(text="report"))

    def test_a_category_is_a_pick(self, ws):
        seed = ws.provision(Task(text="Research"))
        assert names(seed) == {"report"}
        assert "of the category research" in seed.reason
        assert not ws.provision(Task(text="coding"))

    def test_no_text_gives_the_strongest(self, tmp_path):
        with warmstart.open(tmp_path / "home") as ws:
            weak = [work_lines(f"weak-{n}", ("Bash", {"command": "make a"}, "ok"), ("Bash", {"command": "make a"}, "ok"), cwd="/a/alpha", task="build alpha") for n in range(2)]  # fmt: skip
            strong = [work_lines(f"strong-{n}", ("Bash", {"command": "make z"}, "ok"), ("Bash", {"command": "make z"}, "ok"), cwd="/z/zulu", task="build zulu", day=n + 1) for n in range(6)]  # fmt: skip
            teach(ws, *weak, *strong)
            ws.learn()
            assert len(ws.templates.find("active")) == 2
            (name,) = names(ws.provision(Task(examples=1, project="*")))
            assert "zulu" in name
            for n in range(3):
                ws.provision(Task(examples=1, session=f"s-{n}", project="*"))
            assert names(ws.provision(Task(examples=1, project="*"))) == {name}, "use is only for ties"

    def test_ties_go_to_the_less_used(self, tmp_path):
        twins = [template(f"twin {n}", example("terminal", "make", "polish the widget")) for n in range(3)]
        with warmstart.open(tmp_path / "home") as ws:
            ws.templates.import_(write_bundle(tmp_path / "twins.json", *twins), approve=True)
            for text in ("polish the widget", ""):
                shown = [ws.provision(Task(text=text, session=f"{text}{n}", examples=1)).templates for n in range(6)]
                assert {names: shown.count(names) for names in shown} == {(f"twin {n}@1",): 2 for n in range(3)}
            assert [row.used for row, _ in ws.templates.find()] == [4, 4, 4]

    def test_retired_examples_are_not_shown(self, ws):
        ws.templates.retire("deploy")
        for text in ("deploy the shop to the cluster", "deploy", "ops", ""):
            seed = ws.provision(Task(text=text, examples=10))
            assert "deploy" not in names(seed)
            assert "helm" not in str(seed.messages)

    def test_proposed_ones_neither(self, ws, tmp_path):
        ws.templates.import_(
            write_bundle(tmp_path / "n.json", template("new", example("terminal", "x", "deploy the shop")))
        )
        for text in ("deploy the shop to the cluster", "new", ""):
            assert "new" not in names(ws.provision(Task(text=text, examples=10)))

    def test_the_addendum_comes_along(self, ws):
        assert "Reports are in English." in str(ws.provision(Task(text="report")).messages)
        assert "Reports are in English." in ws.provision(Task(text="report", dialect="text")).text


class TestFilters:
    TEXT = "deploy the shop and the bar to the cluster"

    @pytest.mark.parametrize(
        ("wish", "shown", "reason"),
        [
            ({"tools": ("kubectl",)}, {"deploy"}, "the session has no tool terminal"),
            ({"tools": ()}, set(), "the session has no tool"),
            ({"category": "coding"}, set(), "its category is ops"),
            ({"task_type": "file"}, set(), "its type is code"),
            ({"tags": ("bar", "x")}, {"deploy bar"}, "it has none of the requested tags"),
            ({"agent": "codex"}, {"deploy"}, "it is of another agent: hermes"),
        ],
    )
    def test_each_says_what_it_left_out(self, ws, wish, shown, reason):
        seed = ws.provision(Task(text=self.TEXT, project="*", **wish))
        assert names(seed) == shown
        assert any(reason in why for why in reasons(seed).values())
        if not shown:
            assert seed.reason.startswith("no example that this session can use")
        without_text = ws.provision(Task(project="*", **wish))
        assert names(without_text) <= shown | {"report"}
        assert ("so the strongest templates" in without_text.reason) == bool(without_text), without_text.reason

    def test_project_scope(self, ws):
        assert names(ws.provision(Task(text=self.TEXT, project="/home/dev/shop"))) == {"deploy"}
        for project in ("/home/dev/bar", "*"):
            task = Task(text="deploy the bar to the cluster", project=project)
            seed = ws.provision(task)
            assert "deploy bar@1" in {*seed.templates, *reasons(seed)}
        for project in ("", None):
            assert names(ws.provision(Task(text=self.TEXT, project=project))) == {"deploy"}
            assert "bar" not in str(ws.provision(Task(text="deploy bar", project=project)))
        assert "deploy bar" not in names(ws.provision(Task(project="/home/dev/shop", examples=10)))
        ws.templates.delete("deploy")
        ws.templates.delete("report")
        assert "for this project" in ws.provision(Task(text=self.TEXT, project="/home/dev/shop")).reason

    def test_agents_are_not_mixed(self, ws):
        seed = ws.provision(Task(text=self.TEXT, examples=10, project="*"))
        assert len(names(seed)) == 1
        assert any("another agent" in why for why in reasons(seed).values())

    def test_filters_come_before_nearness(self, tmp_path):
        """Twenty more similar templates that the filters reject must not hide the one that passes."""
        near = [template(f"near {n}", example("terminal", "x", f"polish the widget {n}")) for n in range(20)]
        far = template("far", example("hammer", "x", "polish something; the widget perhaps, or another thing"))
        with warmstart.open(make_roomy(tmp_path / "home")) as ws:
            ws.templates.import_(write_bundle(tmp_path / "n.json", *near, far), approve=True)
            seed = ws.provision(Task(text="polish the widget", tools=("hammer",)))
            assert names(seed) == {"far"}
            assert len(seed.omitted) == 20
            assert names(ws.provision(Task(tools=("hammer",)))) == {"far"}


class TestHostileText:
    @pytest.mark.parametrize(
        "text",
        [
            "deploy " * 200_000,
            "\0deploy\0cluster",
            "\ud800 deploy the cluster",
            "déployer le cluster 部署 🚀 deploy",
            '"; DROP TABLE terms; -- deploy cluster',
            'deploy" OR NEAR(cluster) * ^ : AND NOT',
            "\u202edeploy\u200b cluster",
            "{{SECRET:github#1}} deploy cluster",
            "x" * 100_000,
            "\n" * 1_000,
            "%' OR 1=1",
        ],
    )
    def test_never_breaks(self, ws, text):
        for session in (None, "s-1"):
            seed = ws.provision(Task(text=text, session=session, project=text[:50], tags=()))
            assert seed.reason
            assert seed.tokens <= seed.budget
        assert ws.provision(Task(text=text)).reason
        assert ws.store.health()["integrity"] == "ok"


PROVISION = """import sys, warmstart
from warmstart.model import Task
with warmstart.open() as ws:
    for n in range(int(sys.argv[2])):
        ws.provision(Task(text="deploy the shop to the cluster", session=f"{sys.argv[1]}-{n}"))
"""


@pytest.mark.slow
def test_parallel_processes_lose_no_count(ws):
    """Smaller by default; WARMSTART_FULL=1 runs the figures of the issue (16 x 1,000 sessions)."""
    processes, each = (16, 1_000) if FULL else (5, 40)
    running = [start_python(PROVISION, f"p{n}", str(each)) for n in range(processes)]
    for child in running:
        _out, errors = child.communicate(timeout=1_000)
        assert child.returncode == 0, errors
    (shown,) = {len(ws.provision(Task(text="deploy the shop to the cluster", session=f"p{n}-0")).templates) for n in range(processes)}  # fmt: skip
    assert counters(ws) == (processes * each, processes * each * shown)
    db = apsw.Connection(str(ws.store.path))
    assert db.execute("SELECT sum(used) FROM templates").get == processes * each * shown
    assert db.execute("SELECT count(*), count(DISTINCT session) FROM trials").fetchall() == [
        (processes * each, processes * each)
    ]
    assert db.execute("SELECT count(*) FROM seeds").get == processes * each
    db.close()


@pytest.mark.slow
def test_the_same_session_at_once(ws):
    code = (
        "import sys, time, msgspec, warmstart\nfrom warmstart.model import Task\n"
        "with warmstart.open() as ws:\n"
        "    ws.store\n    time.sleep(max(0, float(sys.argv[1]) - time.time()))\n"
        "    seeds = [ws.provision(Task(text=sys.argv[2], session=f'same-{n}')) for n in range(30)]\n"
        "    sys.stdout.write(msgspec.json.encode(seeds).decode())"
    )
    at = str(time.time() + 1.0)
    texts = ("deploy the shop to the cluster", "write the quarterly report", "ops", "report")
    running = [start_python(code, at, text) for text in texts]
    outputs = [child.communicate(timeout=60) for child in running]
    assert len({out for out, _errors in outputs}) == 1, outputs[0][1]
    assert counters(ws)[0] == 30


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_passes_the_linter(ws, dialect):
    teach(ws, *cart_sessions(3))
    ws.ingest(Path(warmstart.__file__).parent / "samples")
    ws.learn()
    for text in ("deploy the shop to the cluster", CART_TASK, "report", "ops", "", "the order total test fails again"):
        for thinking in (False, True):
            seed = ws.provision(
                Task(text=text, project="*", dialect=dialect, examples=8, budget=9_000, thinking=thinking)
            )
            assert seed, text
            if dialect == "text":
                assert not seed.messages
                assert "not instructions" in seed.text
            else:
                assert not lint(list(seed.messages), dialect, thinking=thinking)
                own = {"role": "user", "parts": [{"text": "go"}]} if dialect == "gemini" else {"role": "user", "content": "go"}  # fmt: skip
                assert not lint(seed.inject([own]), dialect, thinking=thinking)


@pytest.fixture(scope="module")
def stocked(tmp_path_factory):
    home = make_roomy(tmp_path_factory.mktemp("stocked") / "home")
    templates = [
        template(
            f"t{n}",
            *(
                example(
                    ("terminal", "read_file", "patch")[m % 3],
                    f"run {n} {m} " + "word " * (n * m * 7 % 90),
                    f"polish widget {'abcdef'[n % 6]}",
                    result="line of result\n" * (n * 31 % 200),
                )
                for m in range(1 + n % 4)
            ),
            system_prompt_addendum="Mind the gap. " * (n % 3),
        )
        for n in range(25)
    ]
    with warmstart.open(home) as ws:
        ws.templates.import_(write_bundle(home.parent / "t.json", *templates, old_template("odd")), approve=True)
        yield ws


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    budget=st.integers(-5, 4_000),
    examples=st.integers(0, 12),
    dialect=st.sampled_from(DIALECTS),
    text=st.sampled_from(
        ["polish widget a", "polish widget", "run the widget f", "", "t7", "general", "nothing alike"]
    ),
    tools=st.sampled_from([None, (), ("terminal",), ("read_file", "patch")]),
)
def test_invariants_of_every_seed(stocked, budget, examples, dialect, text, tools):
    task = Task(text=text, budget=budget, examples=examples, dialect=dialect, tools=tools)
    seed = stocked.provision(task)
    assert msgspec.json.encode(stocked.provision(task)) == msgspec.json.encode(seed)
    assert seed.tokens <= max(budget, 0)
    assert seed.reason
    assert all(omission.reason for omission in seed.omitted)
    if seed.messages:
        assert not lint(list(seed.messages), dialect)
        counted = sum(estimate(msgspec.json.encode(m).decode()) for m in seed.messages)
        assert counted <= seed.tokens
    if seed.text:
        assert estimate(seed.text) <= seed.tokens
    if tools is not None:
        shown = msgspec.json.encode(seed.messages).decode() + (seed.text or "")
        assert not [tool for tool in ("terminal", "read_file", "patch") if tool not in tools and f'"name":"{tool}"' in shown]  # fmt: skip
    assert len(seed.templates) <= examples
