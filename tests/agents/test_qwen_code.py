"""Our hooks in the real Qwen Code."""

from __future__ import annotations

import pytest

import warmstart
from agents.machine import Machine
from agents.programs import QWEN_CODE
from agents.proof import BRIEF, OURS, PATH_LINE, PATH_NOTE, Proof, ReadBack, choose_level, read_note, show
from agents.server import ScriptedCall
from skips import AGENT_LACKS

pytestmark = [pytest.mark.agents, pytest.mark.slow]

PROGRAM = QWEN_CODE


class TestQwenCode(Proof):
    def test_a_corrected_call_works_and_the_note_stays(self, machine: Machine) -> None:
        pytest.skip(f"{AGENT_LACKS}: Qwen Code ignores arguments that a hook replaces, so a correction is only shown")

    def test_a_correction_is_only_shown(self, machine: Machine) -> None:
        choose_level(machine, "correct")
        ran = machine.run(machine.program.make_read(machine.project / "settings.yml"))
        _start, end = ran.requests
        assert "currency" not in show(end.results[-1])
        assert (end.count(f"{OURS} {PATH_NOTE}"), end.count("corrected")) == (1, 0)
        assert ReadBack(ran).outcomes == ["error"]

    def test_a_subagent_is_told_for_itself_and_its_transcript_is_read(self, machine: Machine) -> None:
        mistake = machine.program.make_read(machine.project / "settings.yml")
        delegate = {"description": "look", "prompt": "zebra: look at the settings", "subagent_type": "general-purpose"}
        ran = machine.run(mistake, ScriptedCall("agent", delegate), aside={"zebra:": [mistake, "seen"]})
        first, last = [request for request in ran.requests if "zebra:" in request.opening]
        assert (first.count(BRIEF), first.count(OURS), last.count(f"{OURS} {PATH_NOTE}")) == (0, 0, 1)
        own = [request for request in ran.requests if "zebra:" not in request.opening]
        assert own[-1].count(OURS) == 1
        assert ReadBack(ran).outcomes == ["error", "ok"]
        note = read_note("settings.yml")
        assert (note["support"], note["shown"], note["since"]["sessions"]) == (3, 1, 1)
        with warmstart.open() as ws:
            assert [row.calls for row in ws.sessions(limit=None) if row.parent == ran.session] == [1]

    def test_a_compacted_session_keeps_its_brief(self, machine: Machine) -> None:
        began = machine.run(*[machine.program.make_shell(f"seq {number}00") for number in range(1, 9)])
        machine.model.prompt_tokens = 100_000
        machine.model.play()
        machine.ask("go on", session=began.session)
        machine.model.play()
        machine.ask("/compress", session=began.session)
        machine.model.play()
        (start,) = machine.ask("go on", session=began.session).requests
        assert (start.results, start.count(BRIEF), start.count(PATH_LINE)) == ([], 1, 1)
