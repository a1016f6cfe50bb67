"""Codex."""

from __future__ import annotations

import json
from pathlib import Path

from agents.machine import Program
from agents.server import ScriptedCall

_WORDS = ("--json", "--skip-git-repo-check", "--dangerously-bypass-hook-trust")
_SETTINGS = """\
model = "scripted"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
"""


def _prepare(home: Path, url: str) -> None:
    settings = home / ".codex" / "config.toml"
    settings.parent.mkdir()
    settings.write_text(_SETTINGS.format(url=url))


CODEX = Program(
    name="codex",
    title="Codex",
    package="@openai/codex",
    binary="codex",
    settings=".codex/hooks.json",
    transcripts=".codex/sessions/*/*/*/*.jsonl",
    words=("exec", *_WORDS),
    make_resume=lambda session: ("exec", "resume", *_WORDS, session),
    make_shell=lambda command: ScriptedCall("exec_command", {"cmd": command}),
    make_read=lambda path: ScriptedCall("exec_command", {"cmd": f"cat {path.name}"}),
    find_session=lambda printed: str(json.loads(printed.partition("\n")[0])["thread_id"]),
    prepare=_prepare,
    make_variables=lambda home, url: {"SCRIPTED_KEY": "none"},
    always=True,
)
