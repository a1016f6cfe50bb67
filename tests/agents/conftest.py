"""Machines with one agent: one that has made the same mistakes in two sessions, learned and hooked, and an empty one.

A run of these tests ends with a table of what they prove about each agent (see proven).
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.machine import Machine, Program
from agents.programs import CLAUDE_CODE
from agents.proven import Finding, draw_table, make_table
from agents.server import ModelServer, run_model
from doors.hooks.events import wait_for_quiet
from places import NO_AGENTS
from skips import FULL, WANTS_FULL

TOOL = '#!/bin/sh\n[ "$1" = --long ] || { echo "error: unknown option $1" >&2; exit 2; }\necho a long list\n'


_findings: list[Finding] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Attach to every test what it proves about the agent of its module."""
    for item in items:
        columns = {name for mark in item.iter_markers("proves") for name in mark.args}
        if columns and isinstance(item, pytest.Function):
            program = item.module.PROGRAM
            item.user_properties.append(("proves", [f"{program.title} {program.version}", *columns]))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note the outcome of a test, also of one that a worker has run."""
    for name, value in report.user_properties:
        if name == "proves" and (report.when == "call" or not report.passed) and isinstance(value, list):
            agent, *columns = value
            outcome = report.outcome if report.passed else f"{report.nodeid.rpartition('::')[2]} {report.outcome}"
            if report.skipped and isinstance(report.longrepr, tuple):
                outcome = report.longrepr[2].removeprefix("Skipped: ")
            _findings.extend(Finding(agent, column, outcome) for column in columns)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table."""
    if _findings:
        terminalreporter.section("what the real agents have proven")
        for line in draw_table(make_table(_findings)):
            terminalreporter.write_line(line)


def make_machine(program: Program, folder: Path, model: ModelServer) -> Machine:
    """Make a machine with a project in which there are mistakes to make."""
    machine = Machine(program, folder, model)
    project = machine.project
    (project / "settings.yaml").write_text("currency: EUR\n")
    (project / "list.sh").write_text(TOOL)
    (project / "list.sh").chmod(0o755)
    subprocess.run(["git", "init", "--quiet", project], check=True)
    if program.own_settings:
        machine.settings.parent.mkdir(parents=True, exist_ok=True)
        machine.settings.write_text(program.own_settings)
    return machine


@pytest.fixture(scope="module")
def program(request: pytest.FixtureRequest) -> Program:
    """Give the agent of a test module: its `PROGRAM`, or the fixture's parameter."""
    program: Program = getattr(request, "param", None) or request.module.PROGRAM
    if not (program.always or FULL):
        pytest.skip(f"runs {program.title}: {WANTS_FULL}")
    if not program.is_here:
        pytest.skip(f"{NO_AGENTS}: make agents")
    return program


@pytest.fixture
def first_agent(program: Program) -> None:
    """Skip a test of code that is ours alone for a second agent."""
    if program is not CLAUDE_CODE and not FULL:
        pytest.skip(f"Claude Code's test runs the same code of ours, seconds of a real agent: {WANTS_FULL}")


@pytest.fixture(scope="module")
def taught(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Teach the agent by sessions that it really runs, then install our hooks."""
    with run_model() as model:
        machine = make_machine(program, tmp_path_factory.mktemp(program.name), model)
        project = machine.project
        read, shell = program.make_read, program.make_shell
        for _session in range(2):
            machine.run(
                read(project / "settings.yml"),
                shell("cat settings.yml"),
                read(project / "settings.yaml"),
                shell("./list.sh --shrt"),
                shell("./list.sh --shrt"),
                shell("./list.sh --long"),
            )
        machine.warmstart("ingest")
        machine.warmstart("learn")
        machine.warmstart("hook", "install", program.name)
        machine.keep()
        yield machine


@pytest.fixture
def machine(taught: Machine, sealed: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Give the taught machine as it was after its lessons; this process then works in its home, too."""
    taught.put_back()
    _enter(taught, monkeypatch)
    yield taught
    wait_for_quiet()


@pytest.fixture
def untaught(program: Program, sealed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Give a machine on which no session has run yet and nothing of ours is; this process then works in its home, too."""
    with run_model() as model:
        machine = make_machine(program, tmp_path, model)
        _enter(machine, monkeypatch)
        yield machine
        wait_for_quiet()


def _enter(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(machine.home))
    monkeypatch.setenv("WARMSTART_HOME", str(machine.home / ".warmstart"))
    monkeypatch.chdir(machine.project)
