"""`warmstart ui` as a program: it prints a link that works, and ends when it is asked to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from places import SRC
from warmstart.doors.cli.main import main


@pytest.mark.slow
def test_the_program_prints_a_link_and_ends(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "warmstart", "--home", str(tmp_path), "ui", "--json", "--no-open", "--port", "0"]
    environ = os.environ | {"PYTHONPATH": str(SRC)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environ) as program:
        assert program.stdout is not None
        told = json.loads(program.stdout.readline())
        with httpx.Client(verify=False, follow_redirects=True, timeout=60) as client:
            assert "No session is stored yet" in client.get(told["link"]).text
        assert told["share"] is None and told["url"].startswith("http://127.0.0.1:")
        program.send_signal(signal.SIGTERM)
        assert program.wait(60) == 0


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = CliRunner().invoke(main, ["--home", str(tmp_path), "ui", "--no-open", "--port", port])
    assert done.exit_code == 1 and "the port is in use" in done.output
