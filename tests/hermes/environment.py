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
    if not (VENV / "bin" / "hermes").exists():
        shutil.rmtree(VENV, ignore_errors=True)
    environ = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for step in ([sys.executable, "-m", "venv", str(VENV)], [*pip, WANTED], [*pip, "-e", str(ROOT)]):
        done = subprocess.run(step, capture_output=True, text=True, timeout=900, env=environ, check=False)
        if done.returncode:
            return f"the real Hermes cannot be installed here: {done.stderr.strip().splitlines()[-1:]}"
    return None


if __name__ == "__main__":
    sys.exit(make_environment())
