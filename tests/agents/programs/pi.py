"""Pi."""

from __future__ import annotations

import json
from pathlib import Path

from agents.machine import Program
from agents.server import ScriptedCall

_WORDS = ("--mode", "json", "--provider", "scripted", "--model", "scripted", "-p")


def _prepare(home: Path, url: str) -> None:
    model = {"id": "scripted", "contextWindow": 128_000}
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "none", "models": [model]}
    settings = home / ".pi" / "agent" / "models.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"providers": {"scripted": provider}}))


PI = Program(
    name="pi",
    title="Pi",
    package="@mariozechner/pi-coding-agent",
    binary="pi",
    settings=".pi/agent/extensions/warmstart.ts",
    own_settings="",
    transcripts=".pi/agent/sessions/*/*.jsonl",
    words=_WORDS,
    make_resume=lambda session: ("--session", session, *_WORDS),
    make_shell=lambda command: ScriptedCall("bash", {"command": command}),
    make_read=lambda path: ScriptedCall("read", {"path": str(path)}),
    find_session=lambda printed: str(json.loads(printed.partition("\n")[0])["id"]),
    prepare=_prepare,
    make_variables=lambda home, url: {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"},
)
