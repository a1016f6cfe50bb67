"""The real Hermes in a venv of its own, and a sealed home for it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.environment import VENV, make_environment
from hermes.running import Hermes, make_past
from hermes.scripted_server import ScriptedServer


@pytest.fixture(scope="session")
def hermes_venv() -> Path:
    """Made once, by the first test that needs it (a minute or two), and kept until what is installed in it changes."""
    if problem := make_environment():
        pytest.skip(problem)
    return VENV


@pytest.fixture(scope="session")
def past(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Warmstart home that has learned how orders are counted; to be copied."""
    return make_past(tmp_path_factory.mktemp("past"))


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    found = ScriptedServer()
    yield found
    found.close()


@pytest.fixture
def hermes(hermes_venv: Path, past: Path, server: ScriptedServer, tmp_path: Path) -> Hermes:
    """Sealed: nothing of the user's, nothing installed on the fly, no provider but the scripted one."""
    shutil.copytree(past, tmp_path / "warmstart")
    return Hermes(hermes_venv, tmp_path, server)


@pytest.fixture
def home(past: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the home that has learned; the library opens it by default."""
    shutil.copytree(past, tmp_path / "warm")
    monkeypatch.setenv("WARMSTART_HOME", str(tmp_path / "warm"))
    return tmp_path / "warm"
