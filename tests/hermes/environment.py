"""The real Hermes in a virtual environment of its own: `python tests/hermes/environment.py` makes it ahead of the tests."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv-hermes"
WANTED = "hermes-agent[anthropic]==0.19.*"


def make_environment() -> str | None:
    """Make the environment, or keep the one that is there; return why it cannot be made."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    facts = [project[key] for key in ("version", "dependencies", "scripts", "entry-points")]
    inputs = [WANTED, str(ROOT), sys.version, json.dumps(facts)]
    digest = hashlib.blake2b("\0".join(inputs).encode(), digest_size=16).hexdigest()
    ready = VENV / "ready"
    lock = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be making it
        if not ready.exists() or ready.read_text() != digest:
            if problem := _install():
                return problem
            ready.write_text(digest)
    finally:
        os.close(lock)
    return None


def _install() -> str | None:
    """Install with uv, which takes a twentieth of pip's time, or with pip where uv is missing or cannot."""
    if not (VENV / "bin" / "hermes").exists():
        shutil.rmtree(VENV, ignore_errors=True)
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    create = [uv or "", "venv", "--allow-existing", "--python", sys.executable, VENV]
    if uv and _run_all(create, [uv, "pip", "install"]) is None:
        return None
    return _run_all([sys.executable, "-m", "venv", VENV], [VENV / "bin" / "python", "-m", "pip", "install"])


def _run_all(create: list[str | Path], install: list[str | Path]) -> str | None:
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"VIRTUAL_ENV": str(VENV)}
    for step in (create, [*install, "--quiet", WANTED], [*install, "--quiet", "-e", ROOT]):
        done = subprocess.run(step, capture_output=True, text=True, timeout=900, env=environ, check=False)
        if done.returncode:
            return f"the real Hermes cannot be installed here: {done.stderr.strip().splitlines()[-1:]}"
    return None


if __name__ == "__main__":
    sys.exit(make_environment())
