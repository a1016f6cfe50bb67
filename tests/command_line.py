"""The program as a person or another program calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from click.testing import CliRunner

from places import SRC
from warmstart.doors.cli.main import main


def run(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, which saves half a second of imports, and check its exit code."""
    done = CliRunner().invoke(main, [*map(str, words)], prog_name="warmstart", catch_exceptions=False)
    assert done.exit_code == code, done.output
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)


def run_json(*words: object, code: int = 0) -> Any:
    """Run a command with `--json` and return what it printed."""
    return json.loads(run(*words, "--json", code=code).stdout)


def run_process(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own and check its exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "warmstart", *map(str, words)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": SRC},
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def start_python(code: str, *words: str, start_new_session: bool = False) -> subprocess.Popen[str]:
    """Start a Python program; its words are `sys.argv[1:]`."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *words],
        env=os.environ | {"PYTHONPATH": SRC},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=start_new_session,
    )
