"""OpenCode."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from agents.machine import Program
from agents.server import ScriptedCall

_WORDS = ("run", "--format", "json", "--model", "scripted/scripted")


def _prepare(home: Path, url: str) -> None:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
        "models": {"scripted": {"name": "scripted", "limit": {"context": 128_000, "output": 4_096}}},
    }
    settings = home / ".config" / "opencode" / "opencode.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"provider": {"scripted": provider}, "autoupdate": False, "share": "disabled"}))


def _read_transcript(database: Path) -> str:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT data FROM part ORDER BY id").fetchall()
    return "\n".join(row[0] for row in rows)


def _find_session(printed: str) -> str:
    return str(json.loads(printed.partition("\n")[0])["sessionID"])


OPENCODE = Program(
    name="opencode",
    title="OpenCode",
    package="opencode-ai",
    binary="opencode",
    settings=".config/opencode/plugins/warmstart.js",
    own_settings="",
    transcripts=".local/share/opencode/opencode.db",
    words=_WORDS,
    make_resume=lambda session: (*_WORDS, "--session", session),
    make_shell=lambda command: ScriptedCall("bash", {"command": command, "description": "look"}),
    make_read=lambda path: ScriptedCall("read", {"filePath": str(path)}),
    find_session=_find_session,
    read_transcript=_read_transcript,
    prepare=_prepare,
    make_variables=lambda home, url: {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "npm_config_offline": "true",  # it fetches the types of plugins at every start
    },
)
