"""Gemini CLI."""

from __future__ import annotations

import json

from agents.machine import Program
from agents.server import ScriptedCall

# a fixed model: otherwise it asks a model which one to take; --skip-trust stands for a person who trusts the folder
_WORDS = ("--model", "gemini-2.5-flash", "--skip-trust", "--yolo", "--output-format", "json")
_SETTINGS = """\
{

  "security": {"auth":   {"selectedType": "gemini-api-key"}},
  "privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false},
  "hooks": {"AfterAgent": [{"hooks": [{"type": "command", "command": "true"}]}]} }
"""

GEMINI_CLI = Program(
    name="gemini-cli",
    title="Gemini CLI",
    package="@google/gemini-cli",
    binary="gemini",
    settings=".gemini/settings.json",
    transcripts=".gemini/tmp/*/chats/*.jsonl",
    words=(*_WORDS, "-p"),
    make_resume=lambda session: (*_WORDS, "--resume", session, "-p"),
    make_shell=lambda command: ScriptedCall("run_shell_command", {"command": command}),
    make_read=lambda path: ScriptedCall("read_file", {"file_path": str(path)}),
    find_session=lambda printed: str(json.loads(printed)["session_id"]),
    own_settings=_SETTINGS,
    make_variables=lambda home, url: {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "none"},
    id_length=8,
)
