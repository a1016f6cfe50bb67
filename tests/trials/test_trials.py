"""Trials: every provisioned session has a trial, its arm is drawn once, and its transcript closes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

import warmstart
from template_files import DEPLOY, REPORT, example, template, write_bundle
from transcripts import outcome_lines, write_jsonl, write_now
from warmstart.arms import assign, holdout_shares
from warmstart.dialects.lint import lint
from warmstart.errors import NotFound, Refused
from warmstart.model import DIALECTS, Measures, Outcome, PastCall, PastSession, Task, Usage
from warmstart.pipeline import Warmstart
from warmstart.store import TrialRow, TrialStore
from warmstart.trials.measures import measure

TEXT = "deploy the shop to the cluster"


def task(session: str, **more: Any) -> Task:
    return Task(text=TEXT, session=session, **more)


def trial(ws: Warmstart, session: str) -> TrialRow:
    found = TrialStore(ws.store).trial(session)
    assert found is not None
    return found


def ids(arm: str, many: int, share: float = 0.1) -> list[str]:
    """Session ids that the holdout assigns to an arm."""
    found = (f"id-{n}" for n in range(10_000))
    return [name for name in found if assign(name, holdout_shares(share)) == arm][:many]


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("WARMSTART_HOLDOUT")
    with warmstart.open() as opened:
        opened.templates.import_(write_bundle(tmp_path / "t.json", DEPLOY, REPORT), approve=True)
        yield opened


class TestHoldout:
    def test_one_session_in_ten_is_cold(self, ws):
        arms = [ws.provision(task(f"id-{n}")).arm for n in range(300)]
        assert arms == [assign(f"id-{n}", holdout_shares(0.1)) for n in range(300)]
        assert 15 <= arms.count("cold") <= 45

    def test_a_cold_seed_is_empty_and_says_why(self, ws):
        (name,) = ids("cold", 1)
        for dialect in DIALECTS:
            seed = ws.provision(task(name, dialect=dialect))
            assert (seed.arm, seed.messages, seed.text or "", seed.tokens, seed.templates) == ("cold", (), "", 0, ())
            assert not seed
            assert "to compare with" in seed.reason
        assert ws.provision(task(name)).inject([{"role": "user", "content": "hi"}]) == [
            {"role": "user", "content": "hi"}
        ]

    def test_held_back_examples_are_recorded_but_not_counted_as_used(self, ws):
        (name,) = ids("cold", 1)
        ws.provision(task(name))
        assert [pick.template for pick in TrialStore(ws.store).picks(trial(ws, name))]
        stats = ws.templates.stats()
        assert (stats["provisions"], stats["uses"], stats["recent"][0]["templates"]) == (1, 0, [])

    def test_propensities_are_stored(self, ws):
        for name in (*ids("cold", 1), *ids("warm", 1)):
            ws.provision(task(name))
            row = trial(ws, name)
            assert json.loads(row.propensities) == {"cold": 0.1, "warm": 0.9}
            assert (row.assignment, row.experiment, row.parent, row.measures) == ("random", "", None, None)

    def test_a_restart_changes_nothing(self, ws, tmp_path):
        first = [msgspec.json.encode(ws.provision(task(f"id-{n}"))) for n in range(20)]
        with warmstart.open() as again:
            assert [msgspec.json.encode(again.provision(task(f"id-{n}"))) for n in range(20)] == first

    def test_another_store_draws_the_same(self, ws, tmp_path):
        with warmstart.open(tmp_path / "elsewhere") as other:
            for n in range(50):
                assert other.provision(task(f"id-{n}")).arm == ws.provision(task(f"id-{n}")).arm

    def test_the_share_can_be_set(self, ws, tmp_path, monkeypatch):
        (ws.settings.home / "config.toml").write_text("holdout = 0.5\n")
        with warmstart.open() as half:
            assert half.settings.holdout == 0.5
            (name,) = [n for n in ids("cold", 40, 0.5) if assign(n, holdout_shares(0.1)) == "warm"][:1]
            assert half.provision(task(name)).arm == "cold"
        monkeypatch.setenv("WARMSTART_HOLDOUT", "0.25")
        with warmstart.open() as quarter:
            assert quarter.settings.holdout == 0.25

    @pytest.mark.parametrize("value", ["1", "-0.1", "lots", "nan"])
    def test_an_impossible_share_is_refused(self, value, monkeypatch):
        monkeypatch.setenv("WARMSTART_HOLDOUT", value)
        with pytest.raises(warmstart.ConfigError, match="WARMSTART_HOLDOUT"):
            warmstart.open()

    def test_the_outlook_counts_with_the_holdouts_share(self, ws, tmp_path):
        for n in range(12):
            write_jsonl(tmp_path / "in" / f"{n}.jsonl", outcome_lines(f"past-{n}", [True, False, n % 3 > 0]))
        ws.ingest(tmp_path / "in")
        assert (ws.experiments.outlook(ws.report()) or "").startswith("At your traffic, with 10% of sessions cold,")


class TestByChoice:
    def test_cold_is_recorded_as_choice(self, ws):
        (name,) = ids("warm", 1)
        seed = ws.provision(task(name, cold=True))
        assert (seed.arm, bool(seed), seed.reason) == ("cold", False, "cold by choice")
        assert (trial(ws, name).assignment, trial(ws, name).propensities) == ("choice", "{}")
        assert ws.provision(task(name)).arm == "cold"  # and stays so
        later = ws.provision(task(name, dialect="text"))
        assert later.reason == "cold by choice", "also where the seed is asked for again without the wish"

    def test_a_warm_session_can_be_made_cold(self, ws):
        (name,) = ids("warm", 1)
        for dialect in ("openai", "anthropic"):
            assert ws.provision(task(name, dialect=dialect))
        assert not ws.provision(task(name, cold=True))
        for dialect in DIALECTS:
            assert not ws.provision(task(name, dialect=dialect))
        row = trial(ws, name)
        assert (row.arm, row.assignment, row.given, row.chosen) == ("warm", "random", "cold", "cold")
        assert row.chosen_at is not None and ws.find_arm(name) == "cold"

    def test_the_drawn_arm_decides_where_a_session_counts(self, ws, tmp_path):
        warm = ids("warm", 4)
        for name in warm:
            ws.provision(task(name))
        ws.provision(task(warm[0], cold=True))
        for name in warm:
            write_jsonl(tmp_path / "in" / f"{name}.jsonl", outcome_lines(name, [False]))
        ws.ingest(tmp_path / "in")
        report = ws.report()
        assert (report.arms["warm"].assigned, report.arms["cold"].assigned, report.left_out) == (4, 0, {})

    def test_no_choice_once_the_outcome_is_known(self, ws, tmp_path):
        (warm,), (cold,) = ids("warm", 1), ids("cold", 1)
        for name in (warm, cold):
            ws.provision(task(name))
            write_jsonl(tmp_path / "in" / f"{name}.jsonl", outcome_lines(name, [False, False]))
        ws.ingest(tmp_path / "in")
        with pytest.raises(Refused, match="has been measured in the arm warm"):
            ws.provision(task(warm, cold=True))
        assert ws.provision(task(warm)), "it keeps its seed"
        assert not ws.provision(task(cold, cold=True)), "it is cold anyway"
        assert [trial(ws, name).assignment for name in (warm, cold)] == ["random", "random"]
        assert ws.report().left_out == {}

    def test_it_is_left_out_of_the_comparison(self, ws):
        for name in ids("warm", 3):
            ws.provision(task(name, cold=True))
        report = ws.report()
        assert report.left_out == {"cold by choice": 3}
        assert sum(arm.assigned for arm in report.arms.values()) == 0


class TestInheriting:
    @pytest.mark.parametrize("arm", ["cold", "warm"])
    def test_subagents_keep_the_arm(self, ws, arm):
        (parent,) = ids(arm, 1)
        ws.provision(task(parent))
        for n in range(20):
            child = ws.provision(task(f"child-{n}", parent=parent))
            assert child.arm == arm
        grandchild = ws.provision(task("grandchild", parent="child-3"))
        assert grandchild.arm == arm
        row = trial(ws, "grandchild")
        assert (row.assignment, row.parent, json.loads(row.propensities)) == (
            "inherited",
            parent,
            {"cold": 0.1, "warm": 0.9},
        )

    def test_a_continued_session_keeps_the_same_seed(self, ws):
        (parent,) = ids("warm", 1)
        first = ws.provision(task(parent))
        later = ws.provision(Task(text="write the quarterly report", session="rotated", parent=parent, continues=True))
        assert (later.messages, later.templates) == (first.messages, first.templates)
        other = ws.provision(Task(text="write the quarterly report", session="sub", parent=parent))
        assert other.templates != first.templates

    def test_an_added_seed_repeats_no_example(self, ws):
        (parent,) = ids("warm", 1)
        first = ws.provision(task(parent, examples=1))
        more = ws.provision(task(f"{parent}#prompt", parent=parent, adds=True))
        again = ws.provision(task(f"{parent}#other", parent=parent))
        assert more.templates and again.templates
        shown = {json.dumps(message) for message in first.messages}
        assert shown & {json.dumps(message) for message in again.messages}
        calls = [{c["id"] for m in seed.messages for c in m.get("tool_calls", ())} for seed in (first, more)]
        assert calls[0] and calls[1] and not calls[0] & calls[1]

    def test_children_of_an_unknown_parent_agree(self, ws):
        arms = {ws.provision(task(f"child-{n}", parent="unheard of")).arm for n in range(30)}
        assert arms == {assign("unheard of", holdout_shares(0.1))}

    def test_what_a_hook_adds_to_a_session_is_not_another_session(self, ws):
        ws.provision(task("s"))
        ws.provision(task("s#prompt", parent="s", adds=True))
        assert ws.report().left_out == {}

    def test_what_a_hook_adds_to_a_subagent_is_not_another_session(self, ws):
        ws.provision(task("s"))
        ws.provision(task("sub", parent="s"))
        ws.provision(task("sub#prompt", parent="sub", adds=True))
        assert ws.report().left_out == {"subagents, or continuations of another session": 1}

    def test_a_child_of_a_session_cold_by_choice_is_cold(self, ws):
        ws.provision(task("mine", cold=True))
        assert ws.provision(task("child", parent="mine")).arm == "cold"
        assert ws.report().left_out == {"cold by choice": 1, "subagents, or continuations of another session": 1}


class TestExperiments:
    def test_new_sessions_belong_to_it_and_old_ones_stay(self, ws):
        ws.provision(task("before"))
        ws.experiments.start("seeds", "cold=.5,warm=.5")
        arms = [ws.provision(task(f"id-{n}")).arm for n in range(100)]
        ws.provision(task("before"))
        assert 30 <= arms.count("cold") <= 70
        assert {trial(ws, f"id-{n}").experiment for n in range(100)} == {"seeds"}
        assert trial(ws, "before").experiment == ""
        ws.experiments.stop()
        ws.provision(task("after"))
        assert trial(ws, "after").experiment == ""
        assert ws.provision(task("id-3")).arm == arms[3]

    def test_the_report_shows_what_assigns_sessions_now(self, ws):
        assert ws.report().experiment == "holdout"
        ws.experiments.start("one", metric="turns_to_success")
        assert (ws.report().experiment, ws.report().metric) == ("one", "turns_to_success")
        assert ws.report(metric="seconds_to_success").metric == "seconds_to_success"
        with pytest.raises(Refused, match="no metric happiness"):
            ws.report(metric="happiness")
        ws.experiments.stop()
        assert ws.report().experiment == "holdout", "a stopped experiment assigns no sessions"
        assert ws.report("one").experiment == "one"

    def test_only_one_runs(self, ws):
        ws.experiments.start("one")
        with pytest.raises(Refused, match="one is running"):
            ws.experiments.start("two")
        ws.experiments.stop("one")
        with pytest.raises(Refused, match="another name"):
            ws.experiments.start("one")
        with pytest.raises(Refused, match="already stopped"):
            ws.experiments.stop("one")
        with pytest.raises(Refused, match="no experiment is running"):
            ws.experiments.stop()
        with pytest.raises(NotFound, match="no experiment nothing"):
            ws.report("nothing")
        ws.experiments.start("two")
        assert [row.name for row in ws.experiments.list()] == ["two", "one"]

    @pytest.mark.parametrize(
        ("wishes", "why"),
        [
            ({"arms": "cold,nowhere"}, "no template nowhere"),
            ({"metric": "happiness"}, "no metric happiness"),
            ({"metric": "turns_to_success", "after": "thompson"}, "needs fixed ones"),
            ({"floor": 0.0}, "floor"),
        ],
    )
    def test_impossible_experiments_are_refused(self, ws, wishes, why):
        with pytest.raises((Refused, NotFound), match=why):
            ws.experiments.start("x", **wishes)
        assert not ws.experiments.list()

    def test_the_salt_decides(self, ws, tmp_path):
        def arms(home: str, salt: str) -> list[str]:
            with warmstart.open(tmp_path / home) as opened:
                opened.experiments.start("same name", salt=salt)
                return [opened.provision(task(f"id-{n}")).arm for n in range(60)]

        assert arms("a", "one") == arms("b", "one") != arms("c", "two")

    def test_a_template_as_an_arm_is_what_its_sessions_get(self, ws, tmp_path):
        twin = template("twin", example("terminal", "make ship", TEXT))
        ws.templates.import_(write_bundle(tmp_path / "u.json", twin))  # proposed: a person names it here
        ws.experiments.start("which", "cold,twin,deploy")
        seen: dict[str, set[tuple[str, ...]]] = {}
        for n in range(60):
            seed = ws.provision(task(f"id-{n}"))
            seen.setdefault(seed.arm, set()).add(seed.templates)
        assert seen == {"cold": {()}, "twin": {("twin@1",)}, "deploy": {("deploy@1",)}}

    def test_the_text_arm_describes_the_same_calls(self, ws):
        ws.experiments.start("how", "seed vs text")
        seeds = [ws.provision(task(f"id-{n}", dialect=d)) for n in range(10) for d in DIALECTS]
        assert {seed.arm for seed in seeds} == {"seed", "text"}
        for seed in seeds:
            if seed.dialect == "text":
                assert seed.text
                continue
            body = json.dumps(seed.messages)
            assert "helm upgrade" in body
            assert not lint(seed.messages, seed.dialect)
            has_calls = any(mark in body for mark in ("warm_", "functionCall", "function_call"))
            assert has_calls == (seed.arm == "seed"), "the text arm describes calls and makes none"


class TestClosing:
    def test_ingest_closes_the_trial_of_its_session(self, ws, tmp_path):
        (warm,), (cold,) = ids("warm", 1), ids("cold", 1)
        for name in (warm, cold, "id-lost"):
            ws.provision(task(name))
        write_jsonl(tmp_path / "in" / "a.jsonl", outcome_lines(warm, [True, False, True, True]))
        write_jsonl(tmp_path / "in" / "b.jsonl", outcome_lines(cold, [False, False]))
        assert ws.ingest(tmp_path / "in").trials == 2
        measured = {name: ws.experiments.measures(trial(ws, name)) for name in (warm, cold, "id-lost")}
        assert (measured[warm].errors, measured[warm].judged, measured[warm].turns) == (1, 4, 4)
        assert (measured[cold].errors, measured[cold].judged, measured[cold].success_turn) == (2, 2, None)
        assert measured["id-lost"] is None
        arms = ws.report("holdout").arms
        assert {name: arm.missing for name, arm in arms.items()} == {"cold": 0, "warm": 1}
        assert ws.ingest(tmp_path / "in").trials == 0

    def test_a_session_that_grows_is_measured_again(self, ws, tmp_path):
        (name,) = ids("warm", 1)
        ws.provision(task(name))
        path = tmp_path / "in" / "a.jsonl"
        write_jsonl(path, outcome_lines(name, [True]))
        ws.ingest(path)
        write_jsonl(path, outcome_lines(name, [True, False, False]))
        assert ws.ingest(path).trials == 1
        found = ws.experiments.measures(trial(ws, name))
        assert (found.errors, found.judged) == (2, 3)

    def test_a_trial_that_comes_after_its_transcript_is_closed_too(self, ws, tmp_path):
        path = tmp_path / "in" / "a.jsonl"
        write_jsonl(path, outcome_lines("early", [True]))
        ws.ingest(path)
        ws.provision(task("early"))
        assert ws.ingest(path).trials == 1

    def test_of_two_agents_with_the_same_id_the_right_one_counts(self, ws, tmp_path):
        ws.provision(task("same", agent="claude-code"))
        write_jsonl(tmp_path / "in" / "a.jsonl", outcome_lines("same", [False]))
        meta = {"type": "session_meta", "payload": {"id": "same", "cwd": "/x"}, "timestamp": "2026-10-01T10:00:00Z"}
        message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello there"}]}
        item = {"type": "response_item", "payload": message, "timestamp": "2026-10-01T10:00:00Z"}
        write_jsonl(tmp_path / "in" / "rollout-2026-10-01T10-00-00-same.jsonl", [meta, item])
        report = ws.ingest(tmp_path / "in")
        assert (report.new, report.trials) == (2, 1)
        assert ws.experiments.measures(trial(ws, "same")).errors == 1

    def test_record_takes_a_transcript_with_another_id(self, ws, tmp_path):
        ws.provision(task("mine"))
        path = tmp_path / "x.jsonl"
        write_jsonl(path, outcome_lines("theirs", [True, False]))
        closed = ws.record("mine", path)
        assert closed.transcript == ws.store.find_session("theirs").key
        assert ws.experiments.measures(closed).errors == 1
        write_jsonl(path, outcome_lines("theirs", [True, False, False]))
        assert ws.ingest(path).trials == 1  # it stays with the trial when it grows
        assert ws.experiments.measures(trial(ws, "mine")).errors == 2

    def test_one_transcript_closes_one_trial(self, ws, tmp_path):
        for name in ("mine", "other", "third"):
            ws.provision(task(name))
        path = write_jsonl(tmp_path / "in" / "x.jsonl", outcome_lines("theirs", [True, False]))
        ws.record("mine", path)
        with pytest.raises(Refused, match="the transcript of session mine"):
            ws.record("other", path)
        own = write_jsonl(tmp_path / "in" / "y.jsonl", outcome_lines("third", [False]))
        with pytest.raises(Refused, match="the transcript of session third"):
            ws.record("other", own)
        with pytest.raises(Refused, match="measured with another transcript"):
            ws.record("mine", write_jsonl(tmp_path / "z.jsonl", outcome_lines("better", [True])))
        ws.provision(task("theirs"))  # its transcript has closed another trial
        ws.ingest(tmp_path / "in")
        closed = {name: trial(ws, name).transcript is not None for name in ("mine", "other", "third", "theirs")}
        assert closed == {"mine": True, "other": False, "third": True, "theirs": False}

    def test_shown_examples_are_not_mined_back_from_a_recorded_session(self, ws, tmp_path):
        from warmstart.calls.shapes import signature
        from warmstart.store.history import decode_session

        seed = ws.provision(task("mine"))
        assert seed
        path = tmp_path / "x.jsonl"
        write_jsonl(path, outcome_lines("theirs", [True, True]))
        ws.record("mine", path)
        row = ws.store.find_session("theirs")
        past = decode_session(row, ws.store.calls_of(row.key))
        assert past is not None
        seeded = ws.templates.find_seeded(past)
        assert seeded is not None and signature("terminal", {"command": "helm upgrade shop"}) in seeded

    def test_record_refuses_ambiguous_transcripts(self, ws, tmp_path):
        path = tmp_path / "x.jsonl"
        write_jsonl(path, outcome_lines("a", [True]))
        with pytest.raises(NotFound, match="never provisioned"):
            ws.record("mine", path)
        ws.provision(task("mine"))
        write_jsonl(path, outcome_lines("a", [True]) + outcome_lines("b", [True]))
        with pytest.raises(Refused, match="2 sessions, none of them mine"):
            ws.record("mine", path)
        (tmp_path / "empty.jsonl").write_text("")
        with pytest.raises(Refused, match="holds no session"):
            ws.record("mine", tmp_path / "empty.jsonl")
        assert trial(ws, "mine").transcript is None

    def test_a_secret_in_the_id_never_shows_and_its_trial_stays_missing(self, ws, tmp_path):
        secret = "sk-ant-api03-" + "Zx9" * 31
        ws.provision(task(f"s {secret}"))
        write_jsonl(tmp_path / "a.jsonl", outcome_lines(f"s {secret}", [True]))
        ws.ingest(tmp_path / "a.jsonl")
        for file in ws.settings.home.iterdir():
            assert secret.encode() not in file.read_bytes()


class TestWhatEnters:
    def test_work_before_the_trial_does_not_count(self, ws, tmp_path):
        """An unknown session is resumed: an arm is drawn for it after 29 errors."""
        lines = outcome_lines("resumed", [False] * 29, timestamp=write_now(-600))
        ws.provision(task("resumed"))
        later = outcome_lines("resumed", [False] * 29 + [True, True])[1 + 2 * 29 :]
        write_jsonl(tmp_path / "in" / "a.jsonl", lines + later)
        ws.ingest(tmp_path / "in")
        found = ws.experiments.measures(trial(ws, "resumed"))
        assert (found.errors, found.judged, found.turns, found.tokens) == (0, 2, 2, None)
        report = ws.report()
        assert report.left_out == {"had begun before Warmstart assigned an arm, so that they count as missing": 1}
        assert sum(arm.assigned for arm in report.arms.values()) == 1
        assert sum(arm.missing for arm in report.arms.values()) == 1

    def test_a_transcript_from_last_week_is_no_outcome(self, ws, tmp_path):
        ws.provision(task("old"))
        write_jsonl(tmp_path / "a.jsonl", outcome_lines("old", [False] * 5, timestamp=write_now(-7 * 86_400)))
        ws.ingest(tmp_path / "a.jsonl")
        assert ws.experiments.measures(trial(ws, "old")).judged == 0
        assert list(ws.report().left_out.values()) == [1]

    def test_clocks_may_differ_by_seconds(self, ws, tmp_path):
        ws.provision(task("skewed"))
        write_jsonl(tmp_path / "a.jsonl", outcome_lines("skewed", [False, True], timestamp=write_now(-5)))
        ws.ingest(tmp_path / "a.jsonl")
        found = ws.experiments.measures(trial(ws, "skewed"))
        assert (found.errors, found.judged, ws.report().left_out) == (1, 2, {})

    def test_an_agent_may_wait_for_its_first_request(self, ws, tmp_path):
        first, *rest = outcome_lines("idle", [False, True])
        ws.provision(task("idle"))
        write_jsonl(tmp_path / "a.jsonl", [first | {"timestamp": write_now(-1_200)}, *rest])
        ws.ingest(tmp_path / "a.jsonl")
        assert (ws.experiments.measures(trial(ws, "idle")).judged, ws.report().left_out) == (2, {})

    @pytest.mark.parametrize("is_known_first", [True, False])
    def test_a_transcript_without_times_counts_if_it_came_later(self, ws, tmp_path, is_known_first):
        clock = iter((1_000.0 + 100 * n) for n in range(1_000))
        with Warmstart(ws.settings, lambda: next(clock)) as timed:
            lines = [
                {name: value for name, value in line.items() if name != "timestamp"}
                for line in outcome_lines("timeless", [False, True])
            ]
            write_jsonl(tmp_path / "a.jsonl", lines)
            if is_known_first:
                timed.ingest(tmp_path / "a.jsonl")
            timed.provision(task("timeless"))
            timed.ingest(tmp_path / "a.jsonl")
            assert sum(timed.report().left_out.values()) == is_known_first

    @pytest.mark.parametrize("fork_first", [True, False])
    def test_calls_copied_from_a_parent_count_once(self, ws, tmp_path, fork_first):
        """A fork starts with its parent's calls, under its own id."""
        for name in ("conversation-1", "conversation-2"):
            ws.provision(task(name))
        parent = outcome_lines("conversation-1", [False, False, True])
        own = outcome_lines("conversation-2", [True, True, True, True])[1 + 2 * 3 :]
        copied = [line | {"sessionId": "conversation-2", "timestamp": write_now(2)} for line in parent]
        files = [("a", parent), ("b", copied + [line | {"timestamp": write_now(3)} for line in own])]
        for name, lines in reversed(files) if fork_first else files:
            write_jsonl(tmp_path / "in" / f"{name}.jsonl", lines)
            ws.ingest(tmp_path / "in")
        measured = [ws.experiments.measures(trial(ws, name)) for name in ("conversation-1", "conversation-2")]
        assert [(found.errors, found.judged, found.turns) for found in measured] == [(2, 3, 3), (0, 1, 1)]


def past(*calls: PastCall, **facts: Any) -> PastSession:
    common = {"key": "k", "id": "s", "agent": "a", "category": "coding", "task_type": "code", "verdict": "unknown"}
    return PastSession(**(common | {"quality": 0.5, "turns": 3, "calls": calls} | facts))


def call(turn: int | None, status: str, tool: str = "Bash", **facts: Any) -> PastCall:
    return PastCall(ordinal=0, call_id="c", tool=tool, arguments={}, outcome=Outcome(status), turn=turn, **facts)


class TestMeasuring:
    def test_only_the_first_turns_decide(self):
        found = measure(past(call(1, "ok"), call(30, "error"), call(31, "error"), call(90, "error"), turns=90))
        assert (found.errors, found.judged, found.all_errors, found.all_judged) == (1, 2, 3, 4)

    def test_a_rejected_call_is_no_error(self):
        found = measure(past(*(call(1, status) for status in ("ok", "error", "rejected", "cancelled", "unknown"))))
        assert (found.errors, found.judged, found.calls) == (1, 2, 5)

    def test_the_first_success_is_the_first_call_that_works(self):
        calls = (call(1, "error", at=101.0), call(4, "ok", at=130.0, answered=140.0), call(5, "ok", at=150.0))
        found = measure(past(*calls, started=100.0, ended=160.0, turns=5))
        assert (found.success_turn, found.success_seconds, found.seconds) == (4, 40.0, 60.0)
        never = measure(past(call(1, "error")))
        assert (never.success_turn, never.success_seconds, never.turns) == (None, None, 3)

    def test_unknown_turns_cannot_be_measured(self):
        assert measure(past(call(None, "ok"))) is None
        assert measure(past(call(1, "ok"), turns=None)) is None

    def test_the_seeds_tokens_are_counted_once(self):
        reported = measure(past(usage=Usage(input=100, output=10, cache_read=5), turns=4), seed_tokens=50)
        assert (reported.tokens, reported.seed_tokens) == (115, 50)  # the provider has counted the seed
        estimated = measure(past(usage=Usage(input=100, output=10, basis="estimated"), turns=4), seed_tokens=50)
        assert (estimated.tokens, estimated.tokens_basis) == (310, "estimated")  # it is not in the transcript
        assert measure(past(), seed_tokens=50).tokens is None
        assert measure(past(usage=Usage(cost=1.5))).tokens is None

    def test_a_measure_survives_the_store(self):
        found = measure(past(call(1, "ok"), label=True))
        assert msgspec.json.decode(msgspec.json.encode(found), type=Measures) == found
        assert structs.asdict(found)["label"] is True
