"""Claude Code."""

from __future__ import annotations

import json
import os
from pathlib import Path

from agents.machine import Program
from agents.server import ScriptedCall

_WORDS = ("--allowedTools", "Bash,Read", "--output-format", "json", "-p")


def _make_variables(home: Path, url: str) -> dict[str, str]:
    variables = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    return variables | ({"IS_SANDBOX": "1"} if os.getuid() == 0 else {})


CLAUDE_CODE = Program(
    name="claude-code",
    title="Claude Code",
    package="@anthropic-ai/claude-code",
    binary="claude",
    settings=".claude/settings.json",
    transcripts=".claude/projects/*/*.jsonl",
    words=_WORDS,
    make_resume=lambda session: ("--resume", session, *_WORDS),
    make_shell=lambda command: ScriptedCall("Bash", {"command": command}),
    make_read=lambda path: ScriptedCall("Read", {"file_path": str(path)}),
    find_session=lambda printed: str(json.loads(printed)["session_id"]),
    make_variables=_make_variables,
    always=True,
)
