"""The agents that tests run, one module each: how each is started, pointed to our model, and what it calls its tools."""

from __future__ import annotations

from agents.programs.claude_code import CLAUDE_CODE
from agents.programs.codex import CODEX
from agents.programs.copilot_cli import COPILOT_CLI
from agents.programs.gemini_cli import GEMINI_CLI
from agents.programs.opencode import OPENCODE
from agents.programs.pi import PI
from agents.programs.qwen_code import QWEN_CODE

PROGRAMS = (CLAUDE_CODE, CODEX, OPENCODE, PI, GEMINI_CLI, QWEN_CODE, COPILOT_CLI)
