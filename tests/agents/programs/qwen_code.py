"""Qwen Code."""

from __future__ import annotations

import json

from agents.machine import Program
from agents.server import ScriptedCall

_WORDS = ("--auth-type", "openai", "--yolo", "--output-format", "json")
_SETTINGS = """\
{

  "$version": 4, "memory": {"enableManagedAutoMemory":   false, "enableManagedAutoDream": false},
  "privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false},
  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]} }
"""

QWEN_CODE = Program(
    name="qwen-code",
    title="Qwen Code",
    package="@qwen-code/qwen-code",
    binary="qwen",
    settings=".qwen/settings.json",
    transcripts=".qwen/projects/*/chats/*.jsonl",
    words=(*_WORDS, "-p"),
    make_resume=lambda session: (*_WORDS, "--resume", session, "-p"),
    make_shell=lambda command: ScriptedCall("run_shell_command", {"command": command, "is_background": False}),
    make_read=lambda path: ScriptedCall("read_file", {"file_path": str(path)}),
    find_session=lambda printed: str(json.loads(printed)[0]["session_id"]),
    own_settings=_SETTINGS,
    make_variables=lambda home, url: {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "none",
        "OPENAI_MODEL": "qwen3-coder-plus",
    },
)
