"""Our plugin in the real Claude Code and Codex, installed from this repository by their own commands."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agents.machine import Machine
from agents.programs import CLAUDE_CODE, CODEX
from agents.proof import BRIEF, OURS, PATH_LINE, PATH_NOTE, ReadBack, choose_level, read_note, show
from command_line import run
from doors.hooks.events import read_log
from places import NO_AGENTS, ROOT
from skips import FULL, WANTS_FULL

pytestmark = [pytest.mark.agents, pytest.mark.slow]

PLUGIN = "warmstart@warmstart"
INSTALL = {"claude-code": "install", "codex": "add"}
UNINSTALL = {"claude-code": "uninstall", "codex": "remove"}
variant = pytest.mark.skipif(not FULL, reason=f"a variant of another test, seconds of a real agent: {WANTS_FULL}")
in_both = pytest.mark.parametrize(
    "program", [CLAUDE_CODE, CODEX], ids=lambda program: program.name, indirect=True, scope="module"
)


def manage(machine: Machine, *words: object, **more: str) -> str:
    """Run the agent's own `plugin` command."""
    done = subprocess.run(
        [machine.program.path, "plugin", *map(str, words)],
        cwd=machine.project,
        env=machine.variables() | more,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def install(machine: Machine) -> None:
    """Install the plugin as a person does, from the local path."""
    manage(machine, "marketplace", "add", ROOT)
    manage(machine, INSTALL[machine.program.name], PLUGIN)


def list_settings(machine: Machine) -> dict[str, object]:
    """Return what the agent's settings say; Claude Code leaves empty objects behind."""
    texts = {path: (machine.home / path).read_text() for path in (machine.program.settings, ".codex/config.toml")
             if (machine.home / path).exists()}  # fmt: skip
    return {
        path: {key: value for key, value in json.loads(text).items() if value} if path.endswith(".json") else text
        for path, text in texts.items()
    }


@pytest.mark.skipif(not CLAUDE_CODE.is_here, reason=f"{NO_AGENTS}: make agents")
@pytest.mark.parametrize("folder", [ROOT, ROOT / "plugins" / "warmstart"], ids=["marketplace", "plugin"])
def test_claude_code_validates_the_files(folder: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [CLAUDE_CODE.path, "plugin", "validate", "--strict", folder],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "DISABLE_AUTOUPDATER": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and "Validation passed" in done.stdout, done.stdout + done.stderr


@in_both
class TestPlugin:
    def test_a_session_is_briefed_advised_and_read_back(self, machine: Machine) -> None:
        run("hook", "uninstall", machine.program.name)
        before = list_settings(machine)
        install(machine)
        read = machine.program.make_read
        ran = machine.run(read(machine.project / "settings.yml"), read(machine.project / "settings.yaml"))
        start, failed, end = ran.requests
        assert (start.count(BRIEF), start.count(PATH_LINE), start.count(OURS)) == (1, 1, 0)
        assert failed.count(f"{OURS} {PATH_NOTE}") == 1 and end.count(OURS) == 1
        assert start.count("warmstart:project-knowledge") == 1  # the skill
        assert (ReadBack(ran).arm, ReadBack(ran).outcomes) == ("warm", ["error", "ok"])
        assert read_note("settings.yml")["shown"] == 1
        assert read_log() == ""

        manage(machine, UNINSTALL[machine.program.name], PLUGIN)
        manage(machine, "marketplace", "remove", "warmstart")
        assert list_settings(machine) == before
        ran = machine.run(read(machine.project / "settings.yml"))
        assert [request.count("warmstart") + request.count(BRIEF) for request in ran.requests] == [0, 0]

    @pytest.mark.parametrize(
        "level", [pytest.param("tell", marks=variant), pytest.param("correct", marks=variant), "stop"]
    )
    def test_beside_installed_hooks_nothing_is_said_twice(self, machine: Machine, level: str) -> None:
        if machine.program is CODEX and not FULL:
            pytest.skip(f"a variant of Claude Code's: {WANTS_FULL}")
        choose_level(machine, level)
        install(machine)
        ran = machine.run(machine.program.make_read(machine.project / "settings.yml"))
        start, end = ran.requests
        assert (start.count(BRIEF), end.count(BRIEF), end.count(PATH_NOTE)) == (1, 1, 1)
        expected = {"tell": "error", "correct": "ok", "stop": "denied"}[level]
        assert (ReadBack(ran).arm, ReadBack(ran).outcomes) == ("warm", [expected])
        assert read_note("settings.yml")["shown"] == 1
        machine.model.play()
        (resumed,) = machine.ask("go on", session=ran.session).requests
        assert resumed.count(BRIEF) == 1
        assert read_log() == ""

    def test_without_our_program_the_person_is_told_and_the_session_goes_on(
        self, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run("hook", "uninstall", machine.program.name)
        install(machine)
        for name in ("node", "sh", "bash", "cat", "env", "git", "which", "uname"):
            (tmp_path / name).symlink_to(str(shutil.which(name)))
        alone = machine.variables() | {"PATH": str(tmp_path)}
        monkeypatch.setattr(machine, "variables", lambda: alone)
        ran = machine.run(machine.program.make_read(machine.project / "settings.yml"), "done")
        _start, failed = ran.requests
        assert "currency" not in show(failed.results[-1])
        assert [request.count("pipx") + request.count(BRIEF) + request.count(OURS) for request in ran.requests] == [
            0,
            0,
        ]
        if machine.program is CLAUDE_CODE:
            assert ran.transcript.read_text().count("pipx install") >= 1
