"""The wheel and the sdist: built, installed into a fresh venv and used outside the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

from places import ROOT, SRC
from skips import FULL, WANTS_FULL

pytestmark = pytest.mark.slow
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
LIST_FILES = """
from pathlib import Path
import warmstart
folder = Path(warmstart.__file__).parent
print(*(path.relative_to(folder) for path in folder.rglob("*") if path.is_file()), sep="\\n")
"""


def call(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Call a program that knows nothing of this clone."""
    ours = ("PYTHONPATH", "VIRTUAL_ENV", "SSL_CERT_FILE")
    environ = {name: value for name, value in os.environ.items() if name not in ours}
    return subprocess.run([*map(str, words)], cwd=cwd, env=environ, capture_output=True, text=True)


def run(*words: object, cwd: Path) -> str:
    """Run such a program, which must end well; skip the test where it misses the package index."""
    done = call(*words, cwd=cwd)
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip(f"the package index cannot be reached: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sdist, and the wheel from the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def venv(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a venv with the wheel and what it depends on, from the package index."""
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=built)
    install(folder, built / f"warmstart-{VERSION}-py3-none-any.whl")
    return folder


def install(venv: Path, *words: object) -> None:
    """Install by uv, which takes a fraction of pip's time, or by pip where uv is missing or cannot."""
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    python = venv / "bin" / "python"
    if uv and call(uv, "pip", "install", "--quiet", "--python", python, *words, cwd=venv).returncode == 0:
        return
    pip = (sys.executable, "-m", "pip", "--python", python)  # a pip of its own takes seconds to install
    run(*pip, "install", "--quiet", "--disable-pip-version-check", "--no-compile", *words, cwd=venv)


def smoke(venv: Path, folder: Path) -> None:
    """Run the main commands and look for every file of the package."""
    assert run(venv / "bin" / "warmstart", "--version", cwd=folder).split()[-1] == VERSION
    shown = run(venv / "bin" / "warmstart", "demo", cwd=folder)
    assert "1. Transcripts in: 10 sessions" in shown and "4. Examples for a Codex session" in shown
    assert run(venv / "bin" / "python", "-m", "warmstart", "provision", "x", "--json", cwd=folder).startswith("{")
    installed = run(venv / "bin" / "python", "-c", LIST_FILES, cwd=folder).splitlines()
    package = SRC / "warmstart"
    ours = {path.relative_to(package) for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert {path.suffix for path in ours} >= {".py", ".sql", ".css", ".js", ".jsonl", ".typed"}
    assert {Path(name) for name in installed if not name.endswith(".pyc")} == ours


def test_the_wheel(venv: Path, tmp_path: Path) -> None:
    smoke(venv, tmp_path)


@pytest.mark.skipif(
    not FULL and os.environ.get("CI") != "true",
    reason=f"the wheel is built from the sdist; in CI and with {WANTS_FULL}",
)
def test_the_sdist(built: Path, venv: Path, tmp_path: Path) -> None:
    sdist = built / f"warmstart-{VERSION}.tar.gz"
    install(venv, "--no-deps", "--force-reinstall", sdist)
    smoke(venv, tmp_path)
    with tarfile.open(sdist) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "CONTRIBUTING.md", "Makefile", "tests/conftest.py", "bench/seeds.py"} <= files
