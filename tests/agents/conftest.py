"""A machine on which an agent has made the same mistakes in two sessions, learned and hooked."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from agents.programs import OWN_SETTINGS, Machine
from agents.server import run_model
from doors.hooks.events import wait_for_quiet
from places import NO_AGENTS

TOOL = '#!/bin/sh\n[ "$1" = --long ] || { echo "error: unknown option $1" >&2; exit 2; }\necho a long list\n'


@pytest.fixture(scope="module")
def taught(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Teach the agent of a test module (its `PROGRAM`) by sessions that it really runs, then install our hooks."""
    program = request.module.PROGRAM
    if not program.is_here:
        pytest.skip(f"{NO_AGENTS}: make agents")
    with run_model() as model:
        machine = Machine(program, tmp_path_factory.mktemp(program.name), model)
        project = machine.project
        (project / "settings.yaml").write_text("currency: EUR\n")
        (project / "list.sh").write_text(TOOL)
        (project / "list.sh").chmod(0o755)
        subprocess.run(["git", "init", "--quiet", project], check=True)
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
        machine.settings.parent.mkdir(exist_ok=True)
        machine.settings.write_text(OWN_SETTINGS)
        machine.warmstart("ingest")
        machine.warmstart("learn")
        machine.warmstart("hook", "install", program.name)
        machine.keep()
        yield machine


@pytest.fixture
def machine(taught: Machine, sealed: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Give the taught machine as it was after its lessons; this process then works in its home, too."""
    taught.put_back()
    monkeypatch.setenv("HOME", str(taught.home))
    monkeypatch.setenv("WARMSTART_HOME", str(taught.home / ".warmstart"))
    monkeypatch.chdir(taught.project)
    yield taught
    wait_for_quiet()
