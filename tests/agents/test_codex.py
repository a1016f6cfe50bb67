"""Our hooks in the real Codex."""

from __future__ import annotations

import pytest

import warmstart
from agents.machine import Machine
from agents.programs import CODEX
from agents.proof import BRIEF, OURS, PATH_LINE, PATH_NOTE, Proof, ReadBack, read_note
from agents.server import ScriptedCall

pytestmark = [pytest.mark.agents, pytest.mark.slow]

PROGRAM = CODEX
# waits until the subagent has ended: Codex records that behind the hook SubagentStop
WAIT = """until grep -rqs 'last_agent_message":"see[n]-it' "$HOME/.codex/sessions"; do sleep 0.1; done"""


class TestCodex(Proof):
    def test_a_subagent_is_told_for_itself_and_its_transcript_is_read(self, machine: Machine) -> None:
        mistake = machine.program.make_read(machine.project / "settings.yml")
        delegate = ScriptedCall("multi_agent_v1.spawn_agent", {"message": "zebra: look at the settings"})
        wait = ScriptedCall("exec_command", {"cmd": WAIT, "yield_time_ms": 30_000})
        ran = machine.run(mistake, delegate, wait, aside={"zebra:": [mistake, "seen-it"]})
        first, last = [request for request in ran.requests if "zebra:" in request.opening]
        assert (first.count(BRIEF), first.count(OURS), last.count(f"{OURS} {PATH_NOTE}")) == (0, 0, 1)
        own = [request for request in ran.requests if "zebra:" not in request.opening]
        assert own[-1].count(OURS) == 1
        assert ReadBack(ran).outcomes == ["error", "ok", "ok"]
        note = read_note("settings.yml")
        assert (note["support"], note["shown"], note["since"]["sessions"]) == (3, 1, 1)
        with warmstart.open() as ws:
            assert [row.calls for row in ws.sessions(limit=None) if row.parent == ran.session] == [1]

    def test_a_compacted_session_gets_its_brief_again(self, machine: Machine) -> None:
        began = machine.run(machine.program.make_read(machine.project / "settings.yml"))
        settings = machine.home / ".codex" / "config.toml"
        settings.write_text("model_auto_compact_token_limit = 12\n" + settings.read_text())
        machine.model.play()
        (start,) = machine.ask("go on", session=began.session).requests
        assert (start.results, start.count(BRIEF), start.count(PATH_LINE)) == ([], 1, 1)

    def test_a_file_with_a_key_that_codex_does_not_know_is_reported(self, machine: Machine) -> None:
        settings = machine.settings.read_text()
        machine.settings.write_text(settings.replace("{", '{"version": 1,', 1))
        ran = self.make_the_mistake(machine)
        assert [request.count(OURS) + request.count(BRIEF) for request in ran.requests] == [0, 0, 0]
        assert "remove `version`" in machine.warmstart("hook", "status", "--json")  # a table wraps by the path's length
