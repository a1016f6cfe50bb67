"""Trials of notes from the draw at a call to the verdict, through the public doors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw
import pytest

import warmstart
from command_line import run
from doors.hooks.events import answer, event, start
from notes.stored import RIGHT, WRONG, flagged, only, sessions
from transcripts import teach, work_lines, write_now
from warmstart.doors.hooks.calls import CallHook
from warmstart.model import Task
from warmstart.notes.session_state import SessionMemory, find_state
from warmstart.notes.types import CallEvent
from warmstart.notes.withholding import draw_number, is_withheld, name_fact
from warmstart.store.occurrences import OccurrenceStore

SHOP = "/home/dev/shop"
RTK = {"command": "rtk bun run test"}
OTHER = ("Bash", {"command": "bun test --nope"}, "Exit code 2\nerror: unknown option '--nope'")


@pytest.fixture
def ws():
    with warmstart.open() as opened:
        teach(opened, *sessions(3, WRONG, RIGHT))
        opened.learn()
        yield opened


def at_call(session: str, number: int = 0, **more: Any) -> CallEvent:
    return CallEvent(tool="Bash", arguments=RTK, session=session, cwd=SHOP, call_id=f"toolu_{session}_{number}", **more)


def finish(ws, session, *calls):
    """Let the transcript of a session arrive."""
    lines = [line | {"timestamp": write_now()} for line in work_lines(session, *calls)]
    teach(ws, flagged(lines), folder=f"of-{session}")


def occurrences(ws):
    return OccurrenceStore(ws.store).find()


def test_draws_are_even_and_independent_of_each_other():
    numbers = [draw_number("salt", f"s-{n}", "fact") for n in range(4_000)]
    for low in (0.0, 0.1, 0.5, 0.9):
        assert sum(low <= number < low + 0.1 for number in numbers) == pytest.approx(400, abs=70)
    other = [draw_number("salt", f"s-{n}", "fact2") for n in range(4_000)]
    both = sum(a < 0.5 and b < 0.5 for a, b in zip(numbers, other, strict=True))
    assert both == pytest.approx(1_000, abs=110), "the draws of two notes in a session do not go together"


class TestDraws:
    def test_half_of_the_sessions_get_nothing_for_the_rest_of_the_session(self, ws):
        run("experiment", "start", "halves", "--unit", "occurrence")
        shown = {f"n-{n}": ws.advise(at_call(f"n-{n}")).action == "tell" for n in range(60)}
        for name, was_shown in shown.items():
            after = CallEvent(
                tool="Bash", arguments=RTK, session=name, cwd=SHOP, when="after", error=True, result=WRONG[2]
            )
            assert ws.advise(at_call(name, 1)).action == "none"
            assert ws.advise(after).action in (("tell", "none") if was_shown else ("none",)), "the fix is withheld too"
        ws.learn()
        drawn = occurrences(ws)
        assert {one.session: not one.withheld for one in drawn} == shown and 15 <= sum(shown.values()) <= 45
        assert {(one.share, one.experiment, one.action) for one in drawn} == {(0.5, "halves", "tell")}
        note = only(ws, "command")
        assert ws.notes.show(note.id).sessions == tuple(sorted(n for n, was in shown.items() if was)) or set(
            ws.notes.show(note.id).sessions
        ) == {n for n, was in shown.items() if was}, "a withheld note is no showing"

    def test_sessions_without_advice_draw_nothing(self, ws, monkeypatch):
        monkeypatch.setenv("WARMSTART_HOLDOUT", "0.5")
        with warmstart.open() as opened:
            opened.experiments.start_occurrences("halves")
            arms = {}
            for n in range(40):
                seed = opened.provision(Task(text="run the tests", session=f"n-{n}", project=SHOP, dialect="text"))
                arms[f"n-{n}"] = seed.arm
                opened.advise(at_call(f"n-{n}"))
            opened.learn()
            assert {one.session for one in occurrences(opened)} == {n for n, arm in arms.items() if arm == "warm"}
            assert {*arms.values()} == {"cold", "warm"}, "the standing holdout goes on beside the experiment"

    def test_one_in_ten_without_an_experiment_and_none_without_a_holdout(self, ws, monkeypatch):
        assert all(ws.advise(at_call(f"a-{n}")).action == "tell" for n in range(40))
        monkeypatch.setenv("WARMSTART_HOLDOUT", "0.1")
        with warmstart.open() as opened:
            told = sum(opened.advise(at_call(f"b-{n}")).action == "tell" for n in range(200))
            opened.learn()
            drawn = occurrences(opened)
            assert 165 <= told <= 194 and len(drawn) == 200 and {one.share for one in drawn} == {0.1}

    def test_an_experiment_on_sessions_withholds_no_occurrence(self, ws, monkeypatch):
        monkeypatch.setenv("WARMSTART_HOLDOUT", "0.1")
        with warmstart.open() as opened:
            opened.experiments.start("levels", "cold=.5,warm=.5")
            assert all(opened.advise(at_call(f"a-{n}")).action == "tell" for n in range(60))
            opened.learn()
            assert occurrences(opened) == []


class TestHook:
    """The same by the hooks of Claude Code, which keep everything in files."""

    @pytest.fixture
    def hook(self, ws):
        ws.experiments.start_occurrences("halves")
        return CallHook(str(ws.settings.home), "claude-code", clock=lambda: 1_800_000_000.0)

    def ask(self, hook: CallHook, session: str) -> str | None:
        named = {"tool_name": "Bash", "tool_input": RTK, "tool_use_id": f"toolu_{session}_0"}
        return hook.answer(event("PreToolUse", session, **named))

    def begin(self, session: str) -> None:
        answer(start(session))

    def test_the_draw_agrees_with_the_library_and_needs_no_store(self, ws, hook):
        names = [f"h-{n}" for n in range(12)]
        for name in names:
            self.begin(name)
        lock = apsw.Connection(str(ws.settings.home / "warmstart.db"))
        lock.execute("BEGIN EXCLUSIVE")
        told = {name: self.ask(hook, name) is not None for name in names}
        lock.execute("ROLLBACK")
        lock.close()
        ws.learn()
        assert {one.session: not one.withheld for one in occurrences(ws)} == told
        assert {*told.values()} == {True, False}
        note = only(ws, "command")
        fresh = [name for name in names if not told[name]]
        for name in fresh:
            assert ws.advise(at_call(name)).action == "none", "another door draws alike"
        assert note.id in {one.note for one in occurrences(ws)}

    def test_a_crash_before_the_answer_loses_no_draw(self, ws, hook):
        """The line of the draw is written first: whatever dies later, the occurrence counts in the arm that was drawn."""
        names = [f"c-{n}" for n in range(10)]
        for name in names:
            self.begin(name)
            self.ask(hook, name)
            Path(find_state(str(ws.settings.home), name)).unlink()  # what the killed process had not written
        again = {}
        for name in names:
            self.begin(name)
            again[name] = self.ask(hook, name) is not None
        ws.learn()
        drawn = occurrences(ws)
        assert len(drawn) == len(names), "drawn twice, counted once"
        assert {one.session: not one.withheld for one in drawn} == again, "and alike"
        results = ws.notes.weigh_occurrences("halves")
        assert sum(results.pooled.missing.values()) == len(names), "without a transcript they are missing"


def test_a_draw_that_cannot_be_recorded_leaves_no_mark():
    """The line comes first: without it nothing is withheld, shown or remembered, and the next occurrence is drawn alike."""
    note = {"id": "n", "kind": "path", "subject": "a.yml"}
    for session in ("s-1", "s-2", "s-3", "s-4"):
        state = SessionMemory(session)
        state.withholding = ("", 0.5, "salt")
        written: list[dict[str, Any]] = []

        def fail(_draw: dict[str, Any]) -> None:
            raise OSError(28, "No space left on device")

        state.recorder = fail
        with pytest.raises(OSError, match="space"):
            is_withheld(note, {"action": "tell"}, {}, state)
        assert not state.has("drawn", "n") and not state.has("withheld", name_fact(note))
        state.recorder = written.append
        first = is_withheld(note, {"action": "tell"}, {}, state)
        assert first == is_withheld(note, {"action": "tell"}, {}, state) and len(written) == 1
        assert written[0]["withheld"] == first and written[0]["share"] == 0.5


class TestOutcomes:
    def read(self, ws, *calls, level=None):
        ws.experiments.start_occurrences("e", 0.5)
        ws.advise(at_call("n-1"))
        finish(ws, "n-1", *calls)
        (one,) = occurrences(ws)
        return one.failed, one.worked

    def test_a_retry_with_the_same_cause_fails(self, ws):
        assert self.read(ws, WRONG, WRONG, RIGHT) == (True, True)

    def test_another_way_that_works_is_none(self, ws):
        assert self.read(ws, WRONG, RIGHT) == (False, True)

    def test_the_call_itself_does_not_count_where_the_text_comes_with_its_result(self, ws):
        assert self.read(ws, WRONG) == (False, False)

    def test_a_fix_that_fails_by_its_own_fault_counts(self, ws):
        broken = ("Bash", {"command": "bun run test"}, 'Exit code 1\nerror: Script not found "test"')
        assert self.read(ws, WRONG, broken)[0] is True

    def test_a_test_that_runs_and_fails_is_work(self, ws):
        failing = (
            "Bash",
            {"command": "bun run test"},
            "Exit code 1\ncart.test.ts:\n(fail) totals > rounds\n2 pass\n1 fail",
        )
        assert self.read(ws, WRONG, failing)[0] is False

    def test_a_call_that_is_not_in_the_transcript_is_missing(self, ws):
        ws.experiments.start_occurrences("e", 0.5)
        ws.advise(at_call("n-1", 7))
        finish(ws, "n-1", RIGHT)
        assert [(one.failed, one.worked) for one in occurrences(ws)] == [(None, None)]

    def test_a_call_without_an_id_is_found_by_its_trigger(self, ws):
        ws.experiments.start_occurrences("e", 0.5)
        ws.advise(CallEvent(tool="Bash", arguments=RTK, session="n-1", cwd=SHOP))
        finish(ws, "n-1", RIGHT, WRONG, WRONG)
        assert [(one.failed, one.worked) for one in occurrences(ws)] == [(True, False)]

    def test_a_transcript_that_grows_is_read_again(self, ws):
        assert self.read(ws, WRONG) == (False, False)
        finish(ws, "n-1", WRONG, WRONG)
        assert occurrences(ws)[0].failed is True

    def test_stopped_calls_count_themselves(self, ws):
        (ws.settings.home / "config.toml").write_text('[advice]\nlevel = "stop"\n')
        with warmstart.open() as opened:
            opened.experiments.start_occurrences("e", 0.95)
            names = [f"n-{n}" for n in range(8)]
            for name in names:
                opened.advise(at_call(name))
                finish(opened, name, WRONG, RIGHT)
            drawn = occurrences(opened)
            assert {(one.action, one.failed) for one in drawn} == {("stop", True)}
            assert all(one.expected is not None and one.expected > 0.8 for one in drawn)


def play(ws, count, *, shown, withheld, name="n"):
    """Let sessions meet a note and go on as their arm lets them."""
    for n in range(count):
        session = f"{name}-{n}"
        told = ws.advise(at_call(session)).action != "none"
        finish(ws, session, WRONG, *(shown if told else withheld)(n))


class TestVerdicts:
    def test_a_note_that_spares_half_is_shown_to_work_and_marked(self, ws):
        run("experiment", "start", "halves", "--unit", "occurrence")
        play(ws, 60, shown=lambda n: (WRONG, RIGHT) if n % 3 == 0 else (RIGHT,), withheld=lambda n: (WRONG, RIGHT))
        note = only(ws, "command")
        tried = json.loads(run("report", "halves", "--json").stdout)["trials"]["occurrences"]
        (trial,) = tried["notes"]
        assert (trial["id"], trial["verdict"], trial["decision"], trial["blocked"]) == (note.id, "works", "works", None)
        counts = trial["counts"]
        assert counts["shown"] + counts["withheld"] == 60 and counts["withheld_failed"] == counts["withheld"]
        assert trial["high"] < 0 and trial["works"] >= 22.5
        shown = run("report", "halves").stdout
        assert "works" in shown and f"{counts['withheld']} of {counts['withheld']}" in shown
        decisions = ws.notes.show(note.id).decisions
        assert [one.status for one in decisions if one.by == "policy:measured-effect"] == ["active"]
        assert "measured: fewer failures" in run("notes", "show", note.id).stdout
        assert json.loads(run("notes", "show", note.id, "--json").stdout)["trial"]["verdict"] == "works"
        ws.learn()
        assert len(ws.notes.show(note.id).decisions) == len(decisions), "it is marked once"
        assert only(ws, "command").status == "active"

    def test_a_note_that_harms_is_retired_and_stays_so_until_a_person_approves_it(self, ws):
        ws.experiments.start_occurrences("halves")
        play(ws, 60, shown=lambda n: (WRONG, RIGHT), withheld=lambda n: (RIGHT,))
        note = ws.notes.show(only(ws, "command").id)
        assert note.trial.verdict == "harms" and note.note.status == "retired"
        assert "measured: more failures" in note.note.decision and note.decisions[-1].by == "policy:measured-effect"
        ws.learn()
        assert ws.notes.show(note.note.id).note.status == "retired", "learning does not bring it back"
        assert ws.advise(at_call("later")).action == "none"
        ws.notes.approve(note.note.id)
        finish(ws, "one-more", WRONG, RIGHT)
        ws.learn()
        assert ws.notes.show(note.note.id).note.status == "active", "a person's decision stands"

    def test_without_a_difference_there_is_no_verdict(self, ws):
        ws.experiments.start_occurrences("halves")
        same = lambda n: (WRONG, RIGHT) if n % 2 else (RIGHT,)  # noqa: E731
        play(ws, 60, shown=same, withheld=same)
        trial = ws.notes.weigh_occurrences("halves").notes[0]
        assert (trial.verdict, trial.decision) == ("inconclusive", "keep") and trial.low < 0 < trial.high

    def test_transcripts_that_are_missing_in_one_arm_block_the_verdict(self, ws):
        ws.experiments.start_occurrences("halves")
        for n in range(60):
            told = ws.advise(at_call(f"n-{n}")).action != "none"
            if told or n % 5 == 0:  # most withheld sessions crash
                finish(ws, f"n-{n}", WRONG, *((RIGHT,) if told else (WRONG,)))
        trial = ws.notes.weigh_occurrences("halves").notes[0]
        assert trial.verdict == "inconclusive" and "missing unevenly" in trial.blocked
        assert "NO VERDICT" in run("report", "halves").stdout
        assert only(ws, "command").status == "active"

    def test_agents_that_give_up_are_no_success(self, ws):
        ws.experiments.start_occurrences("halves")
        play(ws, 60, shown=lambda n: (), withheld=lambda n: (WRONG, RIGHT))
        trial = ws.notes.weigh_occurrences("halves").notes[0]
        assert trial.works >= 22.5 and trial.verdict == "inconclusive" and "fewer calls work" in trial.blocked


def test_recurrences_are_compared_with_cold_sessions(ws, monkeypatch):
    monkeypatch.setenv("WARMSTART_HOLDOUT", "0.5")
    with warmstart.open() as opened:
        note = only(opened, "command")
        for n in range(60):
            seed = opened.provision(Task(text="run the tests", session=f"n-{n}", project=SHOP, dialect="text"))
            finish(opened, f"n-{n}", *((WRONG, RIGHT) if seed.arm == "cold" or n % 4 == 0 else (RIGHT,)))
        opened.learn()
        results = json.loads(run("report", "--json").stdout)["trials"]["recurrences"]
        (trial,) = [one for one in results["notes"] if one["id"] == note.id]
        counts = trial["counts"]
        assert counts["shown"] + counts["withheld"] == 60 and counts["withheld_failed"] == counts["withheld"]
        assert trial["verdict"] == "works" and results["pooled"]["verdict"] == "works"
        assert "with Warmstart and cold" in run("report").stdout


class TestPower:
    def test_each_design_says_how_many_weeks_it_takes(self, ws):
        teach(ws, *sessions(9, WRONG, WRONG, RIGHT, RIGHT, first=4))
        teach(ws, *sessions(9, RIGHT, RIGHT, first=14))
        ws.learn()
        power = json.loads(run("experiment", "power", "--json").stdout)
        designs = {one["design"]: one for one in power["designs"]}
        assert list(designs) == [
            "sessions", "recurrence", "recurrence, pooled", "occurrence", "occurrence, pooled", "occurrence, stopped"
        ]  # fmt: skip
        for design in designs.values():
            weeks = [drop["weeks"] or 1e9 for drop in design["drops"]]
            assert weeks == sorted(weeks, reverse=True), "a larger drop is shown sooner"
        assert designs["occurrence"]["note"] == only(ws, "command").id and power["best"] in designs
        assert designs["occurrence, stopped"]["assumes"] and power["best"] != "occurrence, stopped"
        assert designs["occurrence, stopped"]["rate"] > designs["occurrence"]["rate"]
        assert f"at your present settings: {power['best']}" in run("experiment", "power").stdout

    def test_options_of_sessions_are_refused_for_occurrences(self, ws):
        told = run("experiment", "start", "x", "--unit", "occurrence", "--metric", "turns", code=2).stderr
        assert "--metric is about sessions" in told
        told = run("experiment", "start", "x", "--unit", "occurrence", "--share", "1", code=1).stderr
        assert "between 0.05 and 0.95" in told

    def test_sessions_are_drawn_unless_only_occurrences_can_answer_within_a_year(self, ws):
        """In one of ten sessions a call is made that always fails: rare among sessions, certain at its occurrences."""
        rows = [
            work_lines(f"x-{n}", *((WRONG,) if n % 10 == 0 else ()), RIGHT, RIGHT, day=1 + n % 28) for n in range(150)
        ]
        teach(ws, *map(flagged, rows))
        (ws.settings.home / "config.toml").write_text('[advice]\nlevel = "stop"\n')
        ws.learn()
        power = json.loads(run("experiment", "power", "--json").stdout)
        weeks = {one["design"]: one["drops"][1]["weeks"] or 1e9 for one in power["designs"]}
        assert min(weeks["sessions"], weeks["recurrence, pooled"]) > 52 >= weeks["occurrence"], weeks
        assert (power["unit"], power["best"].partition(",")[0]) == ("occurrence", "occurrence")
        started = run("experiment", "start", "x").stdout
        assert "withheld 50%, shown 50%" in started and "cannot show a drop of 30 % within a year" in started
        run("experiment", "stop")
        run("experiment", "start", "y", "--unit", "session")
        run("experiment", "stop")
        run("experiment", "start", "z", "--arms", "cold,warm")
        designs = [row["design"] for row in json.loads(run("experiment", "list", "--json").stdout)]
        assert sorted(designs) == ["occurrence", "random", "random"], "an option of sessions means sessions"
