"""No test talks to a network or touches the user's own files."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from places import CORPUS, NO_CORPUS


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
        pytest.skip(NO_CORPUS)
    return CORPUS
