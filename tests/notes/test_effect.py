"""What became of notes: recurrence with an interval, calls that our hook stopped, and the comparison of levels."""

from __future__ import annotations

import json

import pytest

import warmstart
from command_line import run
from notes.stored import RIGHT, WRONG, flagged, only, sessions
from transcripts import teach, work_lines, write_now
from warmstart.model import Task
from warmstart.notes.digest import Cause, Digest
from warmstart.notes.effect import count_recurrence
from warmstart.notes.types import CallEvent
from warmstart.notes.wording import STOPPED
from warmstart.store.notes import NoteStore, Showing
from warmstart.trials.report import Report

STOP = (
    "Bash",
    {"command": "rtk bun run test"},
    f"{STOPPED}`rtk bun` fails; `bun run test` works (3 sessions). The same call again goes through.",
)


@pytest.fixture
def ws():
    with warmstart.open() as opened:
        yield opened


def digest(session: str, at: float | None, *causes: str) -> Digest:
    return Digest(session=session, agent="a", at=at, person="", causes={key: Cause("path", key) for key in causes})


class TestRecurrence:
    def test_root_sessions_are_counted_before_and_since(self):
        digests = [
            digest("a", 1.0, "x"),
            digest("a", 2.0),
            digest("b", 3.0, "y"),
            digest("c", 9.0, "x"),
            digest("d", 9.5),
        ]
        before, since = count_recurrence(digests, "x", 5.0)
        assert (before.met, before.sessions) == (1, 2) and (since.met, since.sessions) == (1, 2)
        assert before.low is not None and before.high is not None
        assert 0.09 < before.low < 0.1 and 0.9 < before.high < 0.91, "Wilson's interval of 1 in 2"

    def test_a_session_that_went_on_counts_once(self):
        before, since = count_recurrence([digest("a", 1.0, "x"), digest("a", 9.0)], "x", 5.0)
        assert (before.sessions, since.met, since.sessions) == (0, 1, 1)

    def test_a_note_that_was_not_shown_has_no_since(self):
        before, since = count_recurrence([digest("a", 1.0, "x"), digest("b", None)], "x", None)
        assert (before.met, before.sessions, since.sessions, since.low) == (1, 2, 0, None)


class TestReport:
    def test_the_most_shown_notes_come_first(self, ws):
        teach(ws, *sessions(3, WRONG, RIGHT))
        ws.learn()
        note = only(ws, "command")
        other = next(one for one in ws.notes.list() if one.id != note.id)
        at = ws.sessions()[0].started + 3_600
        ws.notes.record([Showing(note.id, f"n-{n}", "brief", at + n) for n in range(2)])
        ws.notes.record([Showing(other.id, "n-0", "brief", at), Showing(other.id, "n-1", "wrong", at)])
        teach(ws, *sessions(2, RIGHT, first=9))
        ws.learn()
        report = json.loads(run("report", "--json").stdout)["notes"]
        first, second = report["notes"]
        assert (first["id"], first["shown"], second["id"], second["shown"]) == (note.id, 2, other.id, 1)
        assert (first["before"]["met"], first["before"]["sessions"]) == (3, 3)
        assert (first["since"]["met"], first["since"]["sessions"]) == (0, 2)
        assert first["first_shown"].endswith(("Z", "+00:00"))
        assert first["since"]["low"] == 0 and 0.6 < first["since"]["high"] < 0.7
        shown = run("report").stdout
        assert note.id in shown and "3 of 3 (44% to 100%)" in shown and "0 of 2 (0% to 66%)" in shown
        assert "3 of 3 (44% to 100%)" in run("notes", "show", note.id).stdout
        assert len(ws.notes.weigh(most=1).notes) == ws.notes.weigh(most=1).more == 1

    def test_nothing_is_said_about_notes_that_nobody_saw(self, ws):
        teach(ws, *sessions(3, WRONG, RIGHT))
        ws.learn()
        assert "Notes" not in run("report").stdout
        report = json.loads(run("report", "--json").stdout)["notes"]
        assert report == {"notes": [], "more": 0, "stopped": {"calls": 0, "sessions": 0, "turns": 0}}

    def test_a_rule_of_an_agent_is_counted_over_its_projects(self, ws):
        edit = ("Edit", {"file_path": "a.py", "old_string": "a", "new_string": "b"})
        fails = (
            *edit,
            "<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>",
        )
        for place in ("shop", "cart"):
            teach(ws, *sessions(2, fails, cwd=f"/home/dev/{place}", name=place))
        ws.learn()
        (rule,) = ws.notes.list(project="")
        assert (ws.notes.show(rule.id).before.met, ws.notes.show(rule.id).before.sessions) == (4, 4)


class TestStoppedCalls:
    def test_they_are_neither_errors_nor_successes_and_their_turns_are_counted(self, ws):
        lines = work_lines("s", STOP, RIGHT, STOP, RIGHT)
        for line in (lines[2], lines[6]):
            line["message"]["content"][0]["is_error"] = True
        teach(ws, lines)
        (session,) = ws.sessions()
        assert (session.calls, session.errors) == (4, 0)
        stopped = json.loads(run("report", "--json").stdout)["notes"]["stopped"]
        assert stopped == {"calls": 2, "sessions": 1, "turns": 2}
        assert "Warmstart stopped 2 calls, neither errors nor successes, which cost 2 turns." in run("report").stdout

    def test_denials_of_others_are_not_ours(self, ws):
        lines = work_lines("s", ("Bash", {"command": "x"}, "PreToolUse:Bash hook blocked: not here"), RIGHT)
        lines[2]["message"]["content"][0]["is_error"] = True
        teach(ws, lines)
        assert ws.notes.weigh().stopped.calls == 0


def test_levels_are_compared_from_provision_to_report(ws):
    """`cold`, `brief` and `brief+advice`: each arm gets what its name says, and the report compares them."""
    teach(ws, *sessions(3, WRONG, RIGHT))
    ws.learn()
    run("experiment", "start", "levels", "--arms", "cold,brief,brief+advice")
    arms: dict[str, list[str]] = {}
    for number in range(90):
        name = f"new-{number}"
        seed = ws.provision(Task(text="run the tests", session=name, project="/home/dev/shop", dialect="text"))
        assert seed.arm is not None
        arms.setdefault(seed.arm, []).append(name)
        assert not seed.templates, "no examples in any of these arms"
        assert ("rtk bun" in (seed.text or "")) == (seed.arm != "cold")
        event = CallEvent(tool="Bash", arguments={"command": "rtk bun run test"}, session=name, cwd="/home/dev/shop")
        assert (ws.advise(event).action == "tell") == (seed.arm == "brief+advice")
    assert set(arms) == {"cold", "brief", "brief+advice"} and min(map(len, arms.values())) >= 15
    for arm, names in arms.items():
        every = {"cold": 5, "brief": 3, "brief+advice": 6}[
            arm
        ]  # cold: all but every fifth meet it; else every third ...
        for at, name in enumerate(names):
            calls = (WRONG, RIGHT, RIGHT) if (at % every == 0) != (arm == "cold") else (RIGHT, RIGHT, RIGHT)
            lines = [line | {"timestamp": write_now()} for line in work_lines(name, *calls)]
            teach(ws, flagged(lines), folder=f"of-{name}")
    ws.learn()
    report: Report = ws.report("levels")
    assert {arm: (count.assigned, count.missing) for arm, count in report.arms.items()} == {
        arm: (len(names), 0) for arm, names in arms.items()
    }
    assert report.control == "cold" and report.blocked is None
    assert [effect.arm for effect in report.effects] == ["brief", "brief+advice"]
    assert all(effect.difference is not None and effect.difference < -0.05 for effect in report.effects)
    showings = NoteStore(ws.store).showings(only(ws, "command").id)
    told = {showing.session for showing in showings if showing.how == "tell"}
    assert told == set(arms["brief+advice"])
    assert {showing.session for showing in showings if showing.how == "brief"} == {*arms["brief"], *told}
