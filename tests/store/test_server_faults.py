"""A database server that stalls, restarts or is killed: bounded waits, typed errors, nothing acknowledged is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from databases import on_postgres
from doors.hooks.events import PROJECT
from forks import run_forks, start_forker
from places import SRC
from postgres_server import Postgres, start_postgres
from stalling import StallingProxy, proxying
from store.rows import make_calls, make_session
from store.writers import MAKE, WRITER
from warmstart.errors import StoreError, StoreUnreachable
from warmstart.notes.session_state import SessionFile
from warmstart.store import Store, open_store
from warmstart.store.postgres import PostgresStore
from warmstart.store.postgres_address import Waits, read_server

pytestmark = on_postgres

SHORT = Waits(patience=0.4, silence=0.6, answer=0.4, spare=0.3)


@pytest.fixture
def proxied(url: str) -> Iterator[tuple[StallingProxy, str]]:
    with proxying(url) as pair:
        yield pair


def test_a_stalled_network_costs_a_bounded_wait(proxied: tuple[StallingProxy, str], store: Store) -> None:
    proxy, address = proxied
    with PostgresStore(read_server(address, "test"), SHORT) as far:
        far.put_session(make_session("k1"), make_calls("k1"))
        proxy.stall()
        for ask in (far.sources, lambda: far.put_session(make_session("k2"), []), far.read_version):
            began = time.monotonic()
            with pytest.raises(StoreUnreachable, match=r"no answer within|cannot be reached"):
                ask()
            assert time.monotonic() - began < 4.0, "the system's own timeouts take minutes"
        proxy.go_on()
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                assert [row.key for row in far.list_sessions()] == ["k1"]
                break
            except StoreUnreachable:  # attempts to connect pause for as long as the last one took
                time.sleep(0.1)
        else:
            pytest.fail("it never came back")
    store.put_session(make_session("k3"), [])
    assert {row.key for row in store.list_sessions()} == {"k1", "k3"}, "the lock of the cut change was given back"


def test_a_stall_in_the_middle_of_a_change_undoes_it(proxied: tuple[StallingProxy, str], store: Store) -> None:
    proxy, address = proxied
    with PostgresStore(read_server(address, "test"), SHORT) as far:
        with pytest.raises(StoreUnreachable), far.writing():
            far.put_session(make_session("k1"), make_calls("k1"))
            proxy.stall()
            far.put_session(make_session("k2"), make_calls("k2"))
        proxy.go_on()
        store.put_session(make_session("k3"), [])  # waits until the server has noticed
        assert [row.key for row in store.list_sessions()] == ["k3"]


def test_a_writer_that_falls_silent_is_ended_by_the_server(url: str, store: Store) -> None:
    with PostgresStore(read_server(url, "test"), SHORT) as silent:
        with pytest.raises(StoreUnreachable), silent.writing():
            silent.put_session(make_session("k1"), [])
            time.sleep(0.8)
            silent.put_session(make_session("k2"), [])
        silent.put_session(make_session("k3"), [])  # a new connection
    assert [row.key for row in store.list_sessions()] == ["k3"]


def test_a_cut_connection_is_replaced_unless_a_change_is_under_way(postgres: Postgres, store: Store) -> None:
    store.put_session(make_session("k1"), [])
    postgres.cut_connections()
    assert [row.key for row in store.list_sessions()] == ["k1"]
    postgres.cut_connections()
    store.put_session(make_session("k2"), [])
    with pytest.raises(StoreUnreachable, match=r"lost"), store.writing():
        store.put_session(make_session("k3"), [])
        postgres.cut_connections()
        store.put_session(make_session("k4"), [])
    assert {row.key for row in store.list_sessions()} == {"k1", "k2"}


def test_a_statement_that_takes_too_long_is_a_clear_error(url: str) -> None:
    with PostgresStore(read_server(url, "test"), SHORT) as store:
        with pytest.raises(StoreError, match="took longer than"), store._asking():
            store._ask("SELECT pg_sleep(2)")
        assert store.sources() == [], "the connection goes on"


# Hooks


def run_hook(home: Path, address: str, event: dict[str, object]) -> tuple[subprocess.CompletedProcess[bytes], float]:
    environ = {
        "PYTHONPATH": str(SRC),
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "WARMSTART_HOME": str(home / "ws"),
        "WARMSTART_STORE_PROJECTS": "*",
    }
    words = [sys.executable, "-m", "warmstart", "hook", "run", "claude-code", "--store", address]
    began = time.monotonic()
    done = subprocess.run(
        words, input=json.dumps(event).encode(), env=environ, capture_output=True, timeout=30, check=False
    )
    return done, time.monotonic() - began


@pytest.mark.slow
def test_hooks_answer_in_time_with_nothing_while_the_server_hangs(
    proxied: tuple[StallingProxy, str], tmp_path: Path
) -> None:
    proxy, address = proxied
    proxy.stall()
    event = {"session_id": "s1", "cwd": PROJECT, "hook_event_name": "SessionStart", "source": "resume"}
    done, seconds = run_hook(tmp_path, address, event)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert seconds < 8.0 and proxy.connections >= 1


@pytest.mark.slow
def test_a_hook_at_a_call_asks_no_server(proxied: tuple[StallingProxy, str], tmp_path: Path) -> None:
    proxy, address = proxied
    event = {
        "session_id": "s1", "cwd": PROJECT, "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": "make"}, "tool_use_id": "c1",
    }  # fmt: skip
    done, _seconds = run_hook(tmp_path, address, event)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    from warmstart.doors.hooks.run import HookCall, admit_session

    admit_session(HookCall("claude-code", str(tmp_path / "ws"), address), "s2", PROJECT)
    assert proxy.connections == 0
    with SessionFile(str(tmp_path / "ws"), "s2") as state:
        assert state.advises is False, "the next prompt opens the session"


# kill -9


RACE = """
def race(n, moment):
    time.sleep(max(0.0, moment - time.time()))
    open_store(path).put_source(SourceRow(uri=str(n), size=0, mtime_ns=0, read_at=0.0))

moment = time.time() + 0.5
join([fork(race, n, moment) for n in range(16)])
with open_store(path) as store:
    assert len(store.sources()) == 16
"""


@pytest.mark.slow
def test_many_processes_make_a_store_at_the_same_moment(postgres: Postgres) -> None:
    address = postgres.make_database()
    run_forks(MAKE + RACE, address, 0)


GO = """
def go(side):
    try:
        write(f"{count}-{side}", 1_000_000)
    except StoreError as error:
        os.write(1, f"# {type(error).__name__}\\n".encode())

join([fork(go, side) for side in range(4)])
"""


@pytest.mark.slow
def test_kill_9_of_the_server_loses_nothing_acknowledged() -> None:
    """The server and all its processes die in the middle of writes, and start again."""
    kills = 10 if os.environ.get("WARMSTART_FULL") == "1" else 1
    with start_postgres(durable=True) as server:
        address = server.make_database()
        acknowledged: set[str] = set()
        for number in range(kills):
            process = start_forker(MAKE + WRITER + GO, address, number)
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(20)]
            server.kill()
            out, errors = process.communicate(timeout=30)
            assert process.returncode == 0, errors
            lines = [line.strip() for line in (*lines, *out.splitlines())]
            assert lines.count("# StoreUnreachable") == 4, "each writer was told"
            acknowledged |= {line for line in lines if not line.startswith("#")}
            server.switch_on()
        with open_store(address) as store:
            stored = {row.key for row in store.list_sessions(None)}
            assert store.health()["calls"] == 3 * len(stored)
    assert len(acknowledged) >= 20 * kills and acknowledged <= stored
