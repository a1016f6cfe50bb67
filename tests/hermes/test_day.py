"""A day of a Hermes user, and what is known at its end: report, usage, `/warm`, state.db and MEMORY.md.

Only with WARMSTART_FULL=1: 30 chats and 5 scheduled jobs take minutes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from hermes.cron_jobs import LISTED, configure, read_jobs, run_outside, write_jobs
from hermes.running import FULL, REVIEW_QUESTION, TASK, Hermes
from hermes.scripted_server import Answer, Call, count_own_results, rounds_since_user
from skips import WANTS_FULL
from warmstart.dialects.compose import EXAMPLE_MARK
from warmstart.doors.hooks.learning import LearningTurn
from warmstart.store import TrialStore
from warmstart.store.trials import read_scope

RUN = Path(__file__).with_name("day_run.py")
CHATS = 30 if FULL else 3
JOBS = {"ok01": "scripted", "bad1": "scripted", "tiny": "small"} | ({"ok02": "gpt-4", "mute": ""} if FULL else {})
PROMPTS = {"bad1": f"{TASK} and report the failure", "mute": f"{TASK} and say nothing"}
MEMORY = "The shop is in Lyon.\n§\nOrders are counted on Mondays."


def script(body: dict[str, Any]) -> Answer:
    """Count with a call that fails and one that works, and answer as the request asks for."""
    if not body.get("tools"):
        return Answer("A title")
    asked = "".join(str(message.get("content")) for message in body["messages"] if message["role"] == "user")
    done = count_own_results(body) if "say nothing" in asked else rounds_since_user(body)
    if done < 2:
        commands = ("wc --no-such-option orders.csv", "grep -c open orders.csv; echo lines with open orders")
        return Answer(calls=[Call("terminal", {"command": commands[done]})])
    if "report the failure" in asked:
        return Answer("[SCRIPT_FAILED]: curl exit 7")
    return Answer("" if "say nothing" in asked else "There is 1 open order.")


@pytest.mark.slow
@pytest.mark.skipif(not FULL, reason=f"a day of Hermes takes minutes: {WANTS_FULL}")
def test_a_day(hermes: Hermes) -> None:
    (hermes.work / "orders.csv").write_text("id,state\n1,open\n")
    memory = hermes.home / "memories" / "MEMORY.md"
    memory.parent.mkdir()
    memory.write_text(MEMORY)
    (hermes.warm_home / "config.toml").write_text("[review]\nhermes = true\n")  # at its usual triggers
    configure(hermes, "scripted", providers=LISTED)
    hermes.server.script = script
    write_jobs(hermes, JOBS, PROMPTS)
    hermes.run("cron", "tick")
    killed = kill_in_the_middle(hermes)
    told = hermes.script(RUN, hermes.server.url, json.dumps({"chats": CHATS}))
    wait_until_read(hermes)
    check_database(hermes, told, killed)
    check_jobs_of_the_day(hermes)
    check_trials(hermes, told, killed)
    check_figures(hermes)
    check_warm(told)
    assert not any(REVIEW_QUESTION in request.raw.decode() for request in hermes.server.requests), "no review was due"
    assert memory.read_text() == MEMORY and not (hermes.warm_home / "memory").exists()


def kill_in_the_middle(hermes: Hermes) -> str:
    """Kill Hermes while the model answers after its first call; return the session."""
    running: list[subprocess.Popen[bytes]] = []
    before = {row[0] for row in hermes.rows("SELECT id FROM sessions")}

    def script_of_death(body: dict[str, Any]) -> Answer:
        if body.get("tools") and rounds_since_user(body) == 1:
            running[0].send_signal(signal.SIGKILL)
        return script(body)

    hermes.server.script = script_of_death
    command = [str(hermes.venv / "bin" / "python"), str(RUN), hermes.server.url, '{"only": "killed"}']
    running.append(subprocess.Popen(command, env=hermes.environ, cwd=hermes.work, stderr=subprocess.DEVNULL))
    assert running[0].wait(300) == -signal.SIGKILL
    hermes.server.script = script
    (session,) = {row[0] for row in hermes.rows("SELECT id FROM sessions")} - before
    return str(session)


def wait_until_read(hermes: Hermes) -> None:
    """Wait for the processes that Hermes left behind."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        with hermes.open() as ws:
            stored = {row.id for row in ws.sessions(limit=None)}
            is_measured = not TrialStore(ws.store).has_unmeasured()
        unread = list((hermes.warm_home / "hermes").glob("unread-*"))
        known = {row[0] for row in hermes.rows("SELECT session_id FROM messages")}
        if known <= stored and is_measured and not unread and not LearningTurn(hermes.warm_home).is_due():
            return
        time.sleep(0.2)
    raise AssertionError(f"not read: {known - stored}, marks: {unread}")


def check_database(hermes: Hermes, told: dict[str, Any], killed: str) -> None:
    """Nothing of ours is in Hermes' own database, and it is sound after the kill."""
    assert hermes.rows("PRAGMA integrity_check") == [("ok",)]
    texts = json.dumps(hermes.rows("SELECT content, tool_calls, api_content FROM messages"))
    assert EXAMPLE_MARK not in texts and "warm_" not in texts
    sources = dict(hermes.rows("SELECT source, count(*) FROM sessions WHERE message_count > 0 GROUP BY source"))
    ran = len(JOBS) - 1
    assert sources == {"cli": CHATS + 2 + 1, "cron": ran, "telegram": 2}, sources
    assert killed not in told["chats"]


def check_jobs_of_the_day(hermes: Hermes) -> None:
    jobs = read_jobs(hermes)
    assert {id for id, job in jobs.items() if job["last_error"]} - {"mute"} == {"tiny"}
    assert "32,768" in jobs["tiny"]["last_error"]
    history = run_outside(hermes, "jobs", "history")
    status = {run["job"]: run["status"] for run in history["runs"]}
    expected = {"ok01": "ok", "bad1": "failed"} | ({"ok02": "ok", "mute": "failed"} if FULL else {})
    assert status == expected


def check_trials(hermes: Hermes, told: dict[str, Any], killed: str) -> None:
    """Every session has one trial, closed with what happened in it; scopes are apart; a compressed session keeps its arm."""
    first, second = told["compressed"]
    people = [person["session"] for person in told["people"]]
    with hermes.open() as ws:
        trials = {trial.session: trial for trial in TrialStore(ws.store).recent_trials(1_000)}
        cron = [session for session in trials if session.startswith("cron_")]
        assert set(trials) == {*told["chats"], first, second, killed, *people, *cron}
        assert len(cron) == len(JOBS) - 1
        assert trials[first].arm == trials[second].arm
        scopes = [read_scope(trials[session]) for session in people]
        assert len(set(scopes)) == 2 and "" not in scopes and read_scope(trials[killed]) == ""
        for session in (*told["chats"], *people, *cron):
            measures = ws.experiments.measures(trials[session])
            assert measures is not None and (measures.all_calls, measures.all_errors) == (2, 1), (session, measures)
        cut_off = ws.experiments.measures(trials[killed])
        assert cut_off is not None and (cut_off.all_calls, cut_off.all_errors) == (1, 1), "up to the kill"
        report = ws.report()
        assigned = sum(arm.assigned for arm in report.arms.values())
        assert assigned + sum(report.left_out.values()) == len(trials), report
        assert sum(arm.missing for arm in report.arms.values()) == 0
        last = LearningTurn(hermes.warm_home).read_last()
        assert last is not None and last.sessions >= CHATS
        mined = {key for _row, template in ws.templates.find() for key in template.source_sessions}
        today = {row.key for row in ws.sessions(limit=None, source="cli") if row.id in told["chats"]}
        failed = {row.key for row in ws.sessions(limit=None, source="cron", verdict="failure")}
        assert mined & today, "learned by itself"
        assert failed and not mined & failed


def check_figures(hermes: Hermes) -> None:
    """Tokens agree with Hermes' own columns, session by session."""
    own = {
        row[0]: (row[1], row[2])
        for row in hermes.rows("SELECT id, input_tokens, output_tokens FROM sessions WHERE message_count > 0")
    }
    with hermes.open() as ws:
        rows = ws.usage.report(by="session").rows
    ours = {row.name: (row.input, row.output) for row in rows if row.name in own}
    assert ours == {id: figures for id, figures in own.items() if any(figures)}


def check_warm(told: dict[str, Any]) -> None:
    status = told["warm"]["status"]
    assert "Learned by itself" in status and "in use" in status
    assert "Arm:" in told["warm"]["why"]
    seven, eight = told["people"]
    for person in (seven, eight):
        assert f"This session ({person['session']})" in person["status"]
        assert "Learned by itself" not in person["status"], "that is about everybody's sessions"
    assert eight["session"] not in seven["status"] and "person 7" not in eight["templates"]


def test_the_long_day_is_what_the_issue_asks_for() -> None:
    assert not FULL or (CHATS, len(JOBS)) == (30, 5)
    assert os.environ.get("WARMSTART_FULL") == "1" or CHATS < 10
