"""Figures and work in processes of their own: the same values, no interpreter shared, and no process that outlives the server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from background_jobs import count, die, fail, refuse
from ui_home import SAMPLES, log_in, make_home, make_settings
from warmstart.doors.ui.background import BackgroundProcess
from warmstart.doors.ui.server import UiServer
from warmstart.errors import WarmstartError
from warmstart.pipeline import Warmstart

FIGURED = ("/errors", "/errors/1", "/effect", "/usage", "/projects", "/settings", "/home")


def ignore(*_: object) -> None:
    pass


@pytest.mark.slow
def test_processes_compute_what_threads_compute(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    with UiServer(settings, port=0) as threads, UiServer(settings, port=0, large=0) as processes:
        with log_in(threads) as one, log_in(processes) as other:
            note = one.get("/notes.json").json()[0]["id"]
            for path in (*FIGURED, f"/notes/{note}"):
                expected, answer = one.get(f"{path}.json"), other.get(f"{path}.json")
                assert expected.is_success and answer.json() == expected.json(), path
                assert other.get(path).is_success, path
        running = [process._process for process in processes.parts.figures._processes if process._process]
        assert running, "no process was started"
    assert all(process.returncode is not None for process in running), "they end with the server"


def test_faults_are_reported_and_the_next_one_works(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    with Warmstart(settings) as ws:
        ws.ingest(SAMPLES / "codex")
        stored = ws.count_sessions()
    process = BackgroundProcess(settings)
    told: list[tuple[int, int | None]] = []
    sessions, number, priority = process.run(count, lambda done, total, what: told.append((done, total)))
    assert sessions == stored and number != os.getpid() and told == [(1, 2)]
    assert priority >= os.nice(0) + 10 or os.nice(0) > 9
    with pytest.raises(WarmstartError, match="not today"):
        process.run(refuse, ignore)
    with pytest.raises(WarmstartError, match="ZeroDivisionError: by hand"):
        process.run(fail, ignore)
    assert process.run(count, ignore)[1] == number, "one process serves all"
    with pytest.raises(KeyError):
        process.run(count, lambda *_: {}["no such bar"])
    assert process.run(count, ignore)[0] == stored, "no old answer is taken for a new one"
    with pytest.raises(WarmstartError, match="ended with -9"):
        process.run(die, ignore)
    assert process.run(count, ignore)[0] == stored, "another is started"
    process.close()
    with pytest.raises(WarmstartError, match="the server has ended"):
        process.run(count, ignore)


def test_a_killed_server_leaves_no_process(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    with Warmstart(settings) as ws:
        ws.ingest(SAMPLES / "codex")
    script = (
        "import sys, json\nfrom pathlib import Path\nfrom warmstart import config\n"
        "from warmstart.doors.ui.background import BackgroundProcess\n"
        "process = BackgroundProcess(config.load(Path(sys.argv[1])))\n"
        "child = process._start()\nprint(json.dumps(child.pid), flush=True)\nchild.wait()"
    )
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    server = subprocess.Popen([sys.executable, "-c", script, str(settings.home)], stdout=subprocess.PIPE, env=environ)
    assert server.stdout is not None
    child = json.loads(server.stdout.readline())
    server.kill()
    server.wait()
    server.stdout.close()
    deadline = time.monotonic() + 20
    while _is_running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _is_running(child)


def _is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
