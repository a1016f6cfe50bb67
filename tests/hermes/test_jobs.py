"""Scheduled jobs of the real Hermes: `jobs check` finds jobs that will fail, and runs get a hint about their model."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hermes.cron_jobs import LISTED, configure, read_jobs, run_outside, write_jobs
from hermes.plugin_calls import make_plugin, make_request, send
from hermes.running import TASK, Hermes, answer_in_turn, seed_of, variant
from hermes.scripted_server import Answer, Call, ScriptedServer, count_own_results
from warmstart import Task
from warmstart.doors.hermes import cron


def create_job(hermes: Hermes) -> str:
    hermes.run("cron", "create", "every 1h", TASK, "--name", "orders", "--deliver", "local")
    return str(read_job(hermes)["id"])


def read_job(hermes: Hermes) -> dict[str, Any]:
    (job,) = json.loads((hermes.home / "cron" / "jobs.json").read_text())["jobs"]
    assert isinstance(job, dict)
    return job


def run_job(hermes: Hermes) -> None:
    """Let the job be due, as `hermes cron run` does in a second start of Hermes, and run what is due."""
    job = read_job(hermes) | {"next_run_at": datetime.now(UTC).isoformat()}
    (hermes.home / "cron" / "jobs.json").write_text(json.dumps({"jobs": [job]}))
    hermes.run("cron", "tick")


def check(hermes: Hermes, *options: str, **environ: str) -> tuple[int, dict[str, Any]]:
    """`hermes warmstart jobs check`, with Hermes' own YAML parser."""
    done = subprocess.run(
        [str(hermes.venv / "bin" / "hermes"), "warmstart", "jobs", "check", "--json", *options],
        env=hermes.environ | environ,
        cwd=hermes.work,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return done.returncode, json.loads(done.stdout.strip().splitlines()[-1])


@variant
def test_a_small_model_by_setting_is_accepted_found_and_fails(hermes: Hermes, server: ScriptedServer) -> None:
    configure(hermes, "small", providers=LISTED)
    create_job(hermes)
    code, told = check(hermes)
    (found,) = told["jobs"]
    assert code == 1 and (found["verdict"], found["window"], found["window_from"]) == (
        "fails",
        32_768,
        "custom_providers",
    )
    assert found["next_run"] == read_job(hermes)["next_run_at"]
    run_job(hermes)
    assert "32,768" in read_job(hermes)["last_error"] and "64,000" in read_job(hermes)["last_error"]
    assert server.asked() == []


def answer_by_prompt(body: dict[str, Any]) -> Answer:
    """Answer as the job's own words ask for, after a call of a tool that worked."""
    if not body.get("tools"):
        return Answer("A title")
    asked = "".join(str(message.get("content")) for message in body["messages"] if message["role"] == "user")
    if not count_own_results(body):
        return Answer(calls=[Call("terminal", {"command": "echo 17; echo open orders"})])
    if "report the failure" in asked:
        return Answer("[SCRIPT_FAILED]: curl exit 7")
    return Answer("" if "say nothing" in asked else "17 open orders.")


@pytest.mark.slow
def test_what_the_check_says_is_what_happens(hermes: Hermes, server: ScriptedServer) -> None:
    """One tick of seven jobs: what `jobs check` says of each model's window, and what becomes of each kind of answer."""
    server.models = [{"id": "tiny", "object": "model", "max_model_len": 32_768}]
    server.script = answer_by_prompt
    configure(hermes, "scripted", providers=LISTED)
    models = {"aa01": "gpt-4", "aa02": "gemma-2-9b", "aa03": "tiny", "aa04": "scripted", "aa05": "", "aa06": "scripted"}
    prompts = {"aa04": f"{TASK} and report the failure", "aa05": f"{TASK} and say nothing"}
    write_jobs(hermes, models | {"aa07": "small"}, prompts)
    told = run_outside(hermes, "jobs", "check")
    verdicts = {job["id"]: (job["verdict"], job["window"]) for job in told["jobs"]}
    assert verdicts["aa01"] == ("ok", 128_000) and verdicts["aa02"] == ("fails", 8_192)
    assert verdicts["aa03"] == ("unknown", None) and server.looked_up == [], "nothing is asked"
    code, told = check(hermes)
    verdicts = {job["id"]: (job["verdict"], job["window"]) for job in told["jobs"]}
    assert code == 1 and {job["window_from"] for job in told["jobs"]} == {"Hermes", "custom_providers"}
    assert verdicts["aa01"] == ("ok", 128_000) and verdicts["aa03"] == ("fails", 32_768)

    hermes.run("cron", "tick")
    jobs = read_jobs(hermes)
    failing = {id for id, (verdict, _window) in verdicts.items() if verdict == "fails"}
    too_small = {id for id, job in jobs.items() if "below the minimum" in (job["last_error"] or "")}
    assert failing == {"aa02", "aa03", "aa07"} == too_small, {id: job["last_error"] for id, job in jobs.items()}

    said = json.dumps([request.body["messages"] for request in server.asked()])
    assert "begin your answer with [SCRIPT_FAILED]: and the reason." in said
    with hermes.open() as ws:
        ws.ingest(hermes.home / "state.db")
    history = run_outside(hermes, "jobs", "history")
    runs = {run["job"]: (run["status"], run["reason"]) for run in history["runs"]}
    assert runs == {
        "aa01": ("ok", ""),
        "aa04": ("failed", "the job's answer says so"),
        "aa05": ("failed", "the job gave no answer"),
        "aa06": ("ok", ""),
    }, history
    with hermes.open() as ws:
        learned = ws.learn(source="cron")
        assert learned.refused.get("the session failed") == 2, learned
        mined = {key for _row, template in ws.templates.find() for key in template.source_sessions}
        failed = {row.key for row in ws.sessions(source="cron", verdict="failure")}
    assert len(failed) == 2 and not mined & failed


@variant
@pytest.mark.parametrize(("tokens", "code"), [(200_000, 0), (32_000, 1)])
def test_a_window_set_by_hand_is_what_hermes_goes_by(
    hermes: Hermes, server: ScriptedServer, tokens: int, code: int
) -> None:
    server.models = [{"id": "small", "object": "model", "max_model_len": 32_768}]
    configure(hermes, "small", f", context_length: {tokens}")
    create_job(hermes)
    assert check(hermes, "--ask-endpoint")[0] == code
    run_job(hermes)
    assert bool(read_job(hermes)["last_error"]) == bool(code)


@variant
def test_the_default_goes_before_the_variable(hermes: Hermes, server: ScriptedServer) -> None:
    create_job(hermes)
    hermes.environ["HERMES_MODEL"] = "gpt-4"
    code, told = check(hermes)
    assert (code, told["jobs"][0]["model"]) == (0, "scripted")
    run_job(hermes)
    assert {request.body["model"] for request in server.asked()} == {"scripted"}


@variant
def test_a_changed_default_is_found_before_hermes_skips_the_job(hermes: Hermes, server: ScriptedServer) -> None:
    create_job(hermes)
    configure(hermes, "another", ", context_length: 200000")
    code, told = check(hermes)
    assert code == 1 and "was scripted when the job was made" in told["jobs"][0]["reason"]
    run_job(hermes)
    assert "drifted" in read_job(hermes)["last_error"] and server.asked() == []


@pytest.mark.slow
def test_runs_are_told_what_they_run_on_and_start_with_what_earlier_runs_showed(
    hermes: Hermes, server: ScriptedServer
) -> None:
    (hermes.work / "orders.csv").write_text("id,state\n1,open\n")
    orders = f"{hermes.work}/orders.csv"
    server.script = answer_in_turn(
        Answer(calls=[Call("terminal", {"command": f"awk -F, '$2 == \"open\"' {orders} | wc -l"})]),
        Answer(calls=[Call("search_files", {"pattern": "open", "path": orders})]),
        Answer("There is 1 open order."),
    )
    job = create_job(hermes)
    run_job(hermes)
    first = server.asked()
    assert len(first) == 3 and all(seed_of(request) for request in first)
    said = [message["content"] for message in first[0].body["messages"] if message["role"] == "user"][-1]
    assert TASK in said and said.count("uses the model scripted (provider: custom). Adapt to it.") == 1
    (trial,) = hermes.trials()
    assert trial.session.startswith(f"cron_{job}_") and json.loads(trial.task)["project"] == f"job:{job}"
    hermes.wait_closed(trial.session, calls=2, errors=0, judged=2)

    run_job(hermes)
    second = hermes.trials()[-1]
    hermes.wait_closed(second.session, calls=2, errors=0, judged=2)
    assert json.loads(second.task) == json.loads(trial.task), "both count under the job"
    with hermes.open() as ws:
        ws.learn()
        known = ws.templates.find()
        rows = [row for row, _template in known if row.project == f"job:{job}" and row.status != "retired"]
        assert [row.status for row in rows] == ["active"], known
        seed = ws.provision(Task(text=TASK, agent="hermes", job=job))
        assert seed.reason.startswith("from earlier runs of this job")
        assert {name.partition("@")[0] for name in seed.templates} == {rows[0].name}


# Without a Hermes


def test_only_scheduled_runs_get_a_hint(home: Path) -> None:
    plugin = make_plugin()
    told = {"conversation_history": [], "model": "m"}
    assert plugin.begin_turn("s-1", TASK, platform="cli", **told) is None
    assert plugin.begin_turn("s-1", TASK, platform="telegram", **told) is None
    hint = plugin.begin_turn("cron_ab12_20261116_030000", TASK, platform="cron", **told)
    rule = "If a script or a command that the job depends on failed, begin your answer with [SCRIPT_FAILED]: and the reason."
    assert hint == {"context": f"Runtime: this scheduled run uses the model m. Adapt to it.\n{rule}"}
    without = plugin.begin_turn("cron_ab12_20261116_030000", TASK, platform="cron", conversation_history=[])
    assert without == {"context": rule}


def test_which_job_a_session_is_a_run_of(home: Path) -> None:
    assert cron.find_job("cron_ab12_20261116_030000", "cron") == "ab12"
    assert cron.find_job("cron_ab12_20261116_030000", "cli") is None
    assert cron.find_job("20261116_030000_abcdef", "cron") is None
    assert "grep -c open" in str(
        send(make_plugin(), make_request(), session_id="cron_ab12_20261116_030000", platform="cron")
    )
