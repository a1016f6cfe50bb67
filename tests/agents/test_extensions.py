"""This repository as an extension of the real Gemini CLI and Qwen Code, installed by their own commands."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from agents.machine import Machine
from agents.programs import GEMINI_CLI, QWEN_CODE
from agents.proof import BRIEF, OURS, PATH_LINE, PATH_NOTE, ReadBack, read_note
from command_line import run, run_json
from doors.hooks.events import read_log
from places import ROOT

pytestmark = [pytest.mark.agents, pytest.mark.slow]

in_both = pytest.mark.parametrize(
    "program", [GEMINI_CLI, QWEN_CODE], ids=lambda program: program.name, indirect=True, scope="module"
)


def manage(machine: Machine, *words: object) -> str:
    """Run the agent's own `extensions` command."""
    done = subprocess.run(
        [machine.program.path, "extensions", *map(str, words)],
        cwd=machine.project,
        env=machine.variables() | {"GEMINI_CLI_TRUST_WORKSPACE": "true"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def install(machine: Machine, folder: Path) -> None:
    """Install the extension from a copy of the repository, as a fresh clone has it."""
    listed = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, capture_output=True, text=True, check=True).stdout.rstrip("\0").split("\0"):
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    source = folder if machine.program is GEMINI_CLI else f"{folder}:warmstart"  # which of the plugins in it
    manage(machine, "install", source, "--consent")


@in_both
class TestExtension:
    def test_a_session_is_briefed_advised_and_read_back(self, machine: Machine, tmp_path: Path) -> None:
        run("hook", "uninstall", machine.program.name)
        before = machine.settings.read_text()
        install(machine, tmp_path / "clone")
        assert "warmstart" in manage(machine, "list")
        (place,) = (place for place in run_json("hook", "status")["hooks"] if place["scope"] == "plugin")
        assert place["agent"] == machine.program.name
        read = machine.program.make_read
        ran = machine.run(read(machine.project / "settings.yml"), read(machine.project / "settings.yaml"))
        start, failed, end = ran.requests
        assert (start.count(BRIEF), start.count(PATH_LINE), start.count(OURS)) == (1, 1, 0)
        assert failed.count(f"{OURS} {PATH_NOTE}") == 1 and end.count(OURS) == 1
        assert (ReadBack(ran).arm, ReadBack(ran).outcomes) == ("warm", ["error", "ok"])
        assert read_note("settings.yml")["shown"] == 1
        assert read_log() == ""

        manage(machine, "uninstall", "warmstart")
        assert machine.settings.read_text() == before
        assert not (machine.settings.parent / "extensions" / "warmstart").exists()
        ran = machine.run(read(machine.project / "settings.yml"))
        assert [request.count("warmstart") + request.count(BRIEF) for request in ran.requests] == [0, 0]

    def test_beside_installed_hooks_nothing_is_said_twice(self, machine: Machine, tmp_path: Path) -> None:
        install(machine, tmp_path / "clone")
        ran = machine.run(machine.program.make_read(machine.project / "settings.yml"))
        start, end = ran.requests
        assert (start.count(BRIEF), end.count(BRIEF), end.count(PATH_NOTE)) == (1, 1, 1)
        assert (ReadBack(ran).arm, ReadBack(ran).outcomes) == ("warm", ["error"])
        assert read_note("settings.yml")["shown"] == 1
        assert read_log() == ""
