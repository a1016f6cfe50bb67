"""GitHub Copilot CLI."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from agents.machine import Program
from agents.server import ScriptedCall

_WORDS = ("--allow-all-tools", "--output-format", "json", "-p")


def _make_variables(home: Path, url: str) -> dict[str, str]:
    return {
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_MODEL": "scripted",
    }


def _prepare(home: Path, url: str) -> None:
    """Let all homes share the 235 MB that the program unpacks into its cache at its first start."""
    cache = Path(tempfile.gettempdir()) / f"copilot-cli-cache-{os.getuid()}"
    cache.mkdir(mode=0o700, exist_ok=True)
    (home / ".cache").mkdir()
    (home / ".cache" / "copilot").symlink_to(cache, target_is_directory=True)


def _find_session(printed: str) -> str:
    """Return the id in the last line, which is the result."""
    return str(json.loads(printed.strip().splitlines()[-1])["sessionId"])


COPILOT_CLI = Program(
    name="copilot-cli",
    title="Copilot CLI",
    package="@github/copilot",
    binary="copilot",
    settings=".copilot/hooks/warmstart.json",
    transcripts=".copilot/session-state/*/events.jsonl",
    words=_WORDS,
    make_resume=lambda session: (f"--resume={session}", *_WORDS),
    make_shell=lambda command: ScriptedCall("bash", {"command": command, "description": "Run it"}),
    make_read=lambda path: ScriptedCall("view", {"path": str(path)}),
    find_session=_find_session,
    own_settings="",  # the file is ours alone
    prepare=_prepare,
    make_variables=_make_variables,
)
