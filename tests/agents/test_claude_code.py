"""Our hooks in the real Claude Code."""

from __future__ import annotations

import json

import pytest

from agents.programs import CLAUDE_CODE, Machine
from agents.proof import Proof, ReadBack, choose_level

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
