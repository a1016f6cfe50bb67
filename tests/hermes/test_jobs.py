"""Scheduled jobs of the real Hermes: `jobs check` finds jobs that will fail, and runs get a hint about their model."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hermes.plugin_calls import make_plugin, make_request, send
from hermes.running import TASK, Hermes, answer_in_turn, seed_of, variant
from hermes.scripted_server import Answer, Call, ScriptedServer
from warmstart import Task
from warmstart.doors.hermes import cron

SETTINGS = """
model: {{default: {model}, provider: custom, base_url: "{url}/v1", api_key: none{more}}}
security: {{allow_lazy_installs: false}}
plugins: {{enabled: [warmstart]}}
auxiliary: {{title_generation: {{enabled: false}}}}
"""
LISTED = 'custom_providers: [{{name: lab, base_url: "{url}/v1", models: {{small: {{context_length: 32768}}}}}}]\n'


def configure(hermes: Hermes, model: str, more: str = "", providers: str = "") -> None:
    url = hermes.server.url
    text = SETTINGS.format(model=model, url=url, more=more) + providers.format(url=url)
    (hermes.home / "config.yaml").write_text(text)


def create_job(hermes: Hermes) -> str:
    hermes.run("cron", "create", "every 1h", TASK, "--name", "orders", "--deliver", "local")
    return str(read_job(hermes)["id"])


def read_job(hermes: Hermes) -> dict[str, Any]:
    (job,) = json.loads((hermes.home / "cron" / "jobs.json").read_text())["jobs"]
    assert isinstance(job, dict)
    return job


def run_job(hermes: Hermes, job: str) -> None:
    hermes.run("cron", "run", job)
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


@pytest.mark.slow
def test_a_small_model_by_setting_is_accepted_found_and_fails(hermes: Hermes, server: ScriptedServer) -> None:
    configure(hermes, "small", providers=LISTED)
    job = create_job(hermes)
    code, told = check(hermes)
    (found,) = told["jobs"]
    assert code == 1 and (found["verdict"], found["window"], found["window_from"]) == (
        "fails",
        32_768,
        "custom_providers",
    )
    assert found["next_run"] == read_job(hermes)["next_run_at"]
    run_job(hermes, job)
    assert "32,768" in read_job(hermes)["last_error"] and "64,000" in read_job(hermes)["last_error"]
    assert server.asked() == []


@variant
def test_a_small_model_by_its_server_is_found_when_asked(hermes: Hermes, server: ScriptedServer) -> None:
    server.models = [{"id": "small", "object": "model", "max_model_len": 32_768}]
    configure(hermes, "small")
    job = create_job(hermes)
    server.looked_up.clear()
    code, told = check(hermes)
    assert (code, told["unknown"], server.looked_up) == (0, 1, []), "nothing is asked that nobody wanted asked"
    code, told = check(hermes, "--ask-endpoint")
    assert (code, told["jobs"][0]["window"], server.looked_up) == (1, 32_768, ["/v1/models"])
    run_job(hermes, job)
    assert "32,768" in read_job(hermes)["last_error"]


@variant
@pytest.mark.parametrize(("tokens", "code"), [(200_000, 0), (32_000, 1)])
def test_a_window_set_by_hand_is_what_hermes_goes_by(
    hermes: Hermes, server: ScriptedServer, tokens: int, code: int
) -> None:
    server.models = [{"id": "small", "object": "model", "max_model_len": 32_768}]
    configure(hermes, "small", f", context_length: {tokens}")
    job = create_job(hermes)
    assert check(hermes, "--ask-endpoint")[0] == code
    run_job(hermes, job)
    assert bool(read_job(hermes)["last_error"]) == bool(code)


@variant
def test_the_default_goes_before_the_variable(hermes: Hermes, server: ScriptedServer) -> None:
    job = create_job(hermes)
    hermes.environ["HERMES_MODEL"] = "gpt-4"
    code, told = check(hermes)
    assert (code, told["jobs"][0]["model"]) == (0, "scripted")
    run_job(hermes, job)
    assert {request.body["model"] for request in server.asked()} == {"scripted"}


@variant
def test_a_changed_default_is_found_before_hermes_skips_the_job(hermes: Hermes, server: ScriptedServer) -> None:
    job = create_job(hermes)
    configure(hermes, "another", ", context_length: 200000")
    code, told = check(hermes)
    assert code == 1 and "was scripted when the job was made" in told["jobs"][0]["reason"]
    run_job(hermes, job)
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
    run_job(hermes, job)
    first = server.asked()
    assert len(first) == 3 and all(seed_of(request) for request in first)
    said = [message["content"] for message in first[0].body["messages"] if message["role"] == "user"][-1]
    assert TASK in said and said.count("uses the model scripted (provider: custom). Adapt to it.") == 1
    (trial,) = hermes.trials()
    assert trial.session.startswith(f"cron_{job}_") and json.loads(trial.task)["project"] == f"job:{job}"
    hermes.wait_closed(trial.session, calls=2, errors=0, judged=2)

    run_job(hermes, job)
    second = hermes.trials()[-1]
    hermes.wait_closed(second.session, calls=2, errors=0, judged=2)
    assert json.loads(second.task) == json.loads(trial.task), "both count under the job"
    with hermes.open() as ws:
        ws.learn()
        known = ws.templates.find()
        rows = [row for row, _template in known if row.project == f"job:{job}"]
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
    assert hint == {"context": "Runtime: this scheduled run uses the model m. Adapt to it."}
    assert plugin.begin_turn("cron_ab12_20261116_030000", TASK, platform="cron", conversation_history=[]) is None


def test_which_job_a_session_is_a_run_of(home: Path) -> None:
    assert cron.find_job("cron_ab12_20261116_030000", "cron") == "ab12"
    assert cron.find_job("cron_ab12_20261116_030000", "cli") is None
    assert cron.find_job("20261116_030000_abcdef", "cron") is None
    assert "grep -c open" in str(
        send(make_plugin(), make_request(), session_id="cron_ab12_20261116_030000", platform="cron")
    )
