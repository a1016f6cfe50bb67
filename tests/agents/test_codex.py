"""Our hooks in the real Codex."""

from __future__ import annotations

import pytest

from agents.programs import CODEX
from agents.proof import Proof

pytestmark = [pytest.mark.agents, pytest.mark.slow]

PROGRAM = CODEX


class TestCodex(Proof):
    pass
