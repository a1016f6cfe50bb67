"""Our hooks in the real GitHub Copilot CLI."""

from __future__ import annotations

import pytest

import warmstart
from agents.machine import Machine
from agents.programs import COPILOT_CLI
from agents.proof import BRIEF, OURS, PATH_LINE, PATH_NOTE, Proof, ReadBack, read_note
from agents.server import ScriptedCall

pytestmark = [pytest.mark.agents, pytest.mark.slow]

PROGRAM = COPILOT_CLI


def count_ours(machine: Machine) -> list[int]:
    """Run a session that makes the known mistake; return how much of ours is in each request."""
    ran = machine.run(machine.program.make_read(machine.project / "settings.yml"))
    return [request.count(OURS) + request.count(BRIEF) for request in ran.requests]


class TestCopilotCli(Proof):
    replays_notes = False  # but for commands: see below

    def test_a_resumed_session_still_has_the_note_in_a_commands_result(self, machine: Machine) -> None:
        began = machine.run(machine.program.make_shell("cat settings.yml"))
        machine.model.play()
        (start,) = machine.ask("go on", session=began.session).requests
        assert (start.count(BRIEF), start.count(f"{OURS} {PATH_NOTE}")) == (1, 1)

    def test_a_subagent_is_told_for_itself_and_counts_for_its_session(self, machine: Machine) -> None:
        mistake = machine.program.make_read(machine.project / "settings.yml")
        delegate = {"description": "look", "name": "looker", "prompt": "zebra: look at the settings"}
        task = ScriptedCall("task", delegate | {"agent_type": "general-purpose", "mode": "sync"})
        ran = machine.run(mistake, task, aside={"zebra:": [mistake, "seen"]})
        first, last = [request for request in ran.requests if "zebra:" in request.opening]
        assert (first.count(BRIEF), first.count(OURS), last.count(f"{OURS} {PATH_NOTE}")) == (0, 0, 1)
        own = [request for request in ran.requests if "zebra:" not in request.opening]
        assert own[-1].count(OURS) == 1
        assert ReadBack(ran).outcomes == ["error", "ok"]
        note = read_note("settings.yml")
        assert (note["support"], note["shown"], note["since"]["sessions"]) == (3, 1, 1)
        with warmstart.open() as ws:
            assert [row.calls for row in ws.sessions(limit=None) if row.parent == ran.session] == [1]

    def test_a_compacted_session_that_goes_on_gets_its_brief_again(self, machine: Machine) -> None:
        began = machine.run(machine.program.make_read(machine.project / "settings.yml"))
        machine.model.play("zebras were seen")
        machine.ask("/compact", session=began.session)
        machine.model.play()
        (start,) = machine.ask("go on", session=began.session).requests
        assert (start.results, start.count("zebras were seen")) == ([], 1)
        assert (start.count(BRIEF), start.count(PATH_LINE)) == (1, 1)

    def test_hooks_of_a_project_run_where_its_folder_is_trusted(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        machine.warmstart("hook", "uninstall", machine.program.name)
        machine.warmstart("hook", "install", machine.program.name, "--project")
        assert count_ours(machine) == [0, 0]
        trusting = machine.variables() | {"COPILOT_ALLOW_ALL": "true"}
        monkeypatch.setattr(machine, "variables", lambda: trusting)
        assert count_ours(machine) == [1, 2]
        machine.warmstart("hook", "uninstall", machine.program.name, "--project")
        assert not list((machine.project / ".github").rglob("*.json"))

    def test_hooks_of_the_user_and_the_project_answer_once(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        machine.warmstart("hook", "install", machine.program.name, "--project")
        trusting = machine.variables() | {"COPILOT_ALLOW_ALL": "true"}
        monkeypatch.setattr(machine, "variables", lambda: trusting)
        assert count_ours(machine) == [1, 2]
