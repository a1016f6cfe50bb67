"""The real Hermes in a venv of its own, and a sealed home for it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.running import Hermes, make_past
from hermes.scripted_server import ScriptedServer
from places import ROOT

VENV = ROOT / ".venv-hermes"
WANTED = "hermes-agent[anthropic]==0.19.*"


@pytest.fixture(scope="session")
def hermes_venv() -> Path:
    """Made once, by the first test that needs it (a minute or two), and kept until what is installed in it changes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    facts = [project[key] for key in ("version", "dependencies", "scripts", "entry-points")]
    inputs = [WANTED, str(ROOT), sys.version, json.dumps(facts)]
    digest = hashlib.blake2b("\0".join(inputs).encode(), digest_size=16).hexdigest()
    ready = VENV / "ready"
    lock = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may be making it
        if not ready.exists() or ready.read_text() != digest:
            _install()
            ready.write_text(digest)
    finally:
        os.close(lock)
    return VENV


def _install() -> None:
    if not (VENV / "bin" / "hermes").exists():
        shutil.rmtree(VENV, ignore_errors=True)
    environ = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    steps = [[sys.executable, "-m", "venv", str(VENV)], [*pip, WANTED], [*pip, "-e", str(ROOT)]]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, timeout=900, env=environ, check=False)
        if done.returncode:
            pytest.skip(f"the real Hermes cannot be installed here: {done.stderr.strip().splitlines()[-1:]}")


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
