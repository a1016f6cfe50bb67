"""Our hooks in the real Claude Code."""

from __future__ import annotations

import pytest

from agents.programs import CLAUDE_CODE
from agents.proof import Proof

pytestmark = [pytest.mark.agents, pytest.mark.slow]

PROGRAM = CLAUDE_CODE


class TestClaudeCode(Proof):
    pass
