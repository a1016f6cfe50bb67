"""Run `warmstart confirm`: in this process, as a daemon in another one, and code in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from places import SRC
from warmstart.doors.cli.main import main


def run(*arguments: str, input: str | None = None) -> Result:
    return CliRunner().invoke(main, ["confirm", *arguments], input=input)


def run_json(*arguments: str) -> Any:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def start_daemon(*options: str, **environment: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """Start `confirm serve` and return the process and the JSON that it printed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "warmstart", "confirm", "serve", "--ui-port", "0", "--json", *options],
        env=os.environ | {"PYTHONPATH": str(SRC)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    line = process.stdout.readline()
    if not line:
        _, error = process.communicate()
        raise AssertionError(error)
    return process, json.loads(line)


def stop_daemon(process: subprocess.Popen[str]) -> str:
    """End a daemon and return what it wrote to standard error."""
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=20)
    assert process.returncode == 0, error
    return error


def run_apart(code: str, path: Path) -> str:
    """Run code about the store at `path` in a process of its own and return its output.

    Everything is imported before the code runs: it may give up the right to read the checkout.
    """
    prelude = (
        "import os, sys, warmstart.confirm.store.sqlite\n"
        "from pathlib import Path\n"
        "from warmstart.confirm.desk.offline import verify_database\n"
        "from warmstart.confirm.store.open import open_store\n"
        "from warmstart.errors import StoreError\n"
        "path = sys.argv[1]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", prelude + code, str(path)],
        env=os.environ | {"PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr
