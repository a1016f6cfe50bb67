"""Our hooks in the real Claude Code."""

from __future__ import annotations

import json

import pytest

from agents.programs import CLAUDE_CODE, Machine
from agents.proof import BRIEF, OURS, PATH_LINE, PATH_NOTE, Proof, ReadBack, choose_level, read_note
from agents.server import ScriptedCall

pytestmark = [pytest.mark.agents, pytest.mark.slow]

PROGRAM = CLAUDE_CODE


class TestClaudeCode(Proof):
    @pytest.mark.parametrize(
        "rules", [{"deny": ["Bash(cat settings.yaml)"]}, {"ask": ["Bash(cat:*)"]}], ids=["deny", "ask"]
    )
    def test_a_correction_passes_no_rule_of_the_user(self, machine: Machine, rules: dict[str, list[str]]) -> None:
        choose_level(machine, "correct")
        machine.settings.write_text(json.dumps(json.loads(machine.settings.read_text()) | {"permissions": rules}))
        ran = machine.run(machine.program.make_shell("cat settings.yml"))
        assert ran.requests[-1].count("corrected the call") == 1 and ran.requests[-1].count("currency") == 0
        back = ReadBack(ran)
        assert (back.outcomes, back.measures["judged"]) == (["denied"], 0)

    def test_a_subagent_is_told_for_itself_and_counts_for_its_session(self, machine: Machine) -> None:
        mistake = machine.program.make_read(machine.project / "settings.yml")
        delegate = {"description": "look", "prompt": "zebra: look at the settings", "subagent_type": "general-purpose"}
        ran = machine.run(mistake, ScriptedCall("Agent", delegate), aside={"zebra:": [mistake, "seen"]})
        first, last = [request for request in ran.requests if "zebra:" in request.opening]
        assert (first.count(BRIEF), first.count(OURS), last.count(f"{OURS} {PATH_NOTE}")) == (0, 0, 1)
        own = [request for request in ran.requests if "zebra:" not in request.opening]
        assert own[-1].count(OURS) == 1
        assert ReadBack(ran).outcomes == ["error", "ok"]
        note = read_note("settings.yml")
        assert (note["support"], note["shown"], note["since"]["sessions"]) == (3, 1, 1)

    def test_a_compacted_session_gets_its_brief_again(self, machine: Machine) -> None:
        began = machine.run(machine.program.make_read(machine.project / "settings.yml"))
        machine.ask("/compact", session=began.session)
        machine.model.play()
        (start,) = machine.ask("go on", session=began.session).requests
        assert (start.results, start.count(BRIEF), start.count(PATH_LINE)) == ([], 1, 1)
