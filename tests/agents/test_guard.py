"""The guard in the real Claude Code and Codex, with a real daemon: asked, approved, denied, nobody there."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agents.machine import AgentRun, Machine
from agents.programs import CLAUDE_CODE, CODEX
from agents.proof import show
from confirm.commands import run_json, start_daemon, stop_daemon

pytestmark = [
    pytest.mark.agents,
    pytest.mark.slow,
    pytest.mark.parametrize(
        "program", [CLAUDE_CODE, CODEX], ids=lambda program: program.name, indirect=True, scope="module"
    ),
]

RULES = """
[[rule]]
tool = "Bash"
arguments = { command = 'deployed' }
action = "deploy_shop"
timeout_seconds = 60
"""
DEPLOY = "date >>deployed; echo now live"
REASON = "Not on a Friday"


@pytest.fixture
def daemon(untaught: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[str]]:
    """Give the machine's daemon. This process may decide there."""
    process, started = start_daemon("--port", "0")
    try:
        monkeypatch.setenv("WARMSTART_CONFIRM_URL", started["api_url"])
        scopes = ("--scope", "approver:decide", "--scope", "audit:read")
        run_json("token", "create", *scopes, "--subject", "mira", "--save")
        yield process
    finally:
        if process.poll() is None:
            stop_daemon(process)


@pytest.fixture
def guarded(untaught: Machine, daemon: subprocess.Popen[str]) -> Machine:
    """Give a machine whose agent is guarded."""
    (untaught.home / ".warmstart" / "guard.toml").write_text(RULES)
    run_json("guard", "install", untaught.program.name)
    return untaught


@pytest.fixture
def deployed(guarded: Machine) -> Path:
    """Give the file that the guarded call writes."""
    return guarded.project / "deployed"


def start_session(machine: Machine, pool: ThreadPoolExecutor) -> Any:
    """Let the model make the guarded call and then another one."""
    shell = machine.program.make_shell
    return pool.submit(machine.run, shell(DEPLOY), shell("cat settings.yaml"), "all done")


def wait_for_request() -> dict[str, Any]:
    until = time.monotonic() + 60
    while not (waiting := run_json("list", "--status", "pending")["requests"]):
        assert time.monotonic() < until, "nobody was asked"
        time.sleep(0.1)
    (request,) = waiting
    return dict(request)


def check_it_went_on(ran: AgentRun) -> str:
    """Check that the agent made its second call, too; return the result of the first as the model got it."""
    _start, asked, end = ran.requests
    assert "currency: EUR" in show(end.results[-1]) and "all done" in ran.printed
    return show(asked.results[-1])


def test_an_approved_call_runs_and_only_then(guarded: Machine, deployed: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        session = start_session(guarded, pool)
        request = wait_for_request()
        shown = run_json("show", request["id"])
        assert request["action"] == "deploy_shop" and DEPLOY in str(shown["details"])
        time.sleep(1)
        assert not session.done() and not deployed.exists()
        run_json("approve", request["id"], "--yes")
        assert "now live" in check_it_went_on(session.result())
    assert len(deployed.read_text().splitlines()) == 1
    assert [entry["event"] for entry in run_json("audit")["entries"] if entry["request"] == request["id"]][-2:] == [
        "approved",
        "executed",
    ]


@pytest.mark.usefixtures("first_agent")
def test_a_denied_call_does_not_run_and_the_model_learns_why(guarded: Machine, deployed: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        session = start_session(guarded, pool)
        run_json("deny", wait_for_request()["id"], "--reason", REASON)
        result = check_it_went_on(session.result())
    assert REASON in result and "mira" in result and "Blocked, and not run" in result
    assert not deployed.exists()


@pytest.mark.usefixtures("first_agent")
def test_without_the_daemon_the_call_does_not_run_and_uninstalling_frees_it(
    guarded: Machine, deployed: Path, daemon: subprocess.Popen[str]
) -> None:
    stop_daemon(daemon)
    with ThreadPoolExecutor(1) as pool:
        result = check_it_went_on(start_session(guarded, pool).result())
        assert "Blocked, and not run" in result and "cannot be reached" in result
        assert not deployed.exists()

        assert run_json("guard", "uninstall", guarded.program.name)["changed"]
        assert guarded.settings.read_text() == guarded.program.own_settings  # byte for byte
        assert "now live" in check_it_went_on(start_session(guarded, pool).result())
    assert deployed.exists()
