"""No test talks to a network or touches the user's own files."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"


@pytest.fixture(autouse=True)
def sealed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A home of its own for every test, and no way out but loopback."""
    home = tmp_path / "user-home"
    home.mkdir()
    places = {"HOME": str(home), "WARMSTART_HOME": str(home / ".warmstart")}
    for name, value in (
        places | {"WARMSTART_HOLDOUT": "0"}
    ).items():  # one session in ten would be cold: see test_trials
        monkeypatch.setenv(name, value)
    for name in ("WARMSTART_STORE", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "HERMES_HOME"):
        monkeypatch.delenv(name, raising=False)
    connect = socket.socket.connect

    def loopback_only(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise RuntimeError(f"a test reached for the network: {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", loopback_only)


@pytest.fixture
def corpus() -> Path:
    if not CORPUS.is_dir():
        pytest.skip("the shared corpus is not here")
    return CORPUS


def claude_lines(session: str = "s-1", calls: int = 2, text: str = "fine", **facts: Any) -> list[dict[str, Any]]:
    """A small Claude Code session."""
    common = {
        "sessionId": session,
        "cwd": "/home/dev/shop",
        "version": "2.1.0",
        "timestamp": "2026-10-01T10:00:00.000Z",
    } | facts
    lines = [common | {"type": "user", "uuid": f"{session}-u", "message": {"role": "user", "content": "do it"}}]
    for n in range(calls):
        use = {"type": "tool_use", "id": f"toolu_{session}_{n}", "name": "Bash", "input": {"command": f"echo {n}"}}
        answer = {"type": "tool_result", "tool_use_id": use["id"], "content": f"{text} {n}"}
        message = {"id": f"m{n}", "role": "assistant", "model": "m", "content": [use]}
        lines.append(common | {"type": "assistant", "uuid": f"{session}-a{n}", "message": message})
        lines.append(
            common | {"type": "user", "uuid": f"{session}-r{n}", "message": {"role": "user", "content": [answer]}}
        )
    return lines


def write_jsonl(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
