"""The store under stress: many processes, kill -9, full disks, damaged and foreign files.

WARMSTART_FULL=1 runs 16 x 1,000 writes and 300 kills instead of 16 x 50 (in PostgreSQL 16 x 10) and 20.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Literal

import apsw
import pytest

from databases import on_both_databases
from forks import run_forks
from rights import take_writing
from store.writers import MAKE, WRITER
from warmstart.errors import StoreError, StoreFull, StoreTooNew
from warmstart.store import SourceRow, open_store
from warmstart.store import sqlite as module
from warmstart.store.sqlite_file import Migration, migrate

FULL = os.environ.get("WARMSTART_FULL") == "1"
PROCESSES = 16
WRITES = 1000 if FULL else 50
KILLS = 300 if FULL else 20


def run(code: str, path: Path, count: int = 0) -> str:
    return run_forks(MAKE + code, path, count)


def contents(path: Path) -> dict[str, bytes]:
    """Return the bytes of all files, except the index of the WAL, which SQLite rebuilds at will."""
    return {file.name: file.read_bytes() for file in path.parent.iterdir() if not file.name.endswith("-shm")}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "warmstart.db"


# Many at once


@pytest.mark.slow
@on_both_databases
def test_many_processes_create_and_write_one_store(database: str, path: Path) -> None:
    """In a file they also race to create it, and every write gets through. (In PostgreSQL: see test_server_faults.)"""
    address = os.environ.get("WARMSTART_STORE") or str(path)
    writes = WRITES if FULL or database == "sqlite" else WRITES // 5
    code = MAKE + WRITER + f"join([fork(write, me, count) for me in range({PROCESSES})])"
    acknowledged = set(run_forks(code, address, writes).split())
    with open_store(address) as store:
        health = store.health()
    assert len(acknowledged) == PROCESSES * writes
    assert (health["sessions"], health["calls"], health["integrity"]) == (
        len(acknowledged),
        3 * len(acknowledged),
        "ok",
    )


@pytest.mark.slow
def test_many_processes_create_a_store_at_the_same_moment(path: Path) -> None:
    """They start first and go on at the same time, so that the migrations themselves collide."""
    code = f"""
def race(n, moment):
    time.sleep(max(0.0, moment - time.time()))
    open_store(path).put_source(SourceRow(uri=str(n), size=0, mtime_ns=0, read_at=0.0))

for _ in range(count):
    shutil.rmtree(os.path.dirname(path), ignore_errors=True)
    moment = time.time() + 0.3
    join([fork(race, n, moment) for n in range({PROCESSES})])
    with open_store(path) as store:
        assert len(store.sources()) == {PROCESSES}
        assert store.health()["integrity"] == "ok"
"""
    run(code, path, 20 if FULL else 3)


def test_writers_of_one_session_keep_the_longest(path: Path) -> None:
    """A lost update would leave a shorter copy."""
    code = f"""
def write(me):
    with open_store(path) as store:
        for n in range(count):
            store.put_session(*make("one", messages=n * 16 + me, digest=f"{{me}}-{{n}}", source_uri=f"/{{me}}"))

join([fork(write, me) for me in range({PROCESSES})])
"""
    run(code, path, WRITES // 4)
    with open_store(path) as store:
        row = store.find_session("one")
    assert row.messages >= (WRITES // 4 - 1) * 16


@pytest.mark.slow
def test_waiting_is_fair_enough_for_long_transactions(path: Path) -> None:
    """Eight writers hold the store for a while and come back at once: all get through within their patience."""
    code = """
def write(me):
    with open_store(path, patience=20.0) as store:
        for n in range(count):
            with store.writing():
                store.put_session(*make(f"{me}-{n}"))
                time.sleep(0.04)

join([fork(write, me) for me in range(8)])
"""
    run(code, path, 4)
    with open_store(path) as store:
        assert len(store.list_sessions(None)) == 32


# kill -9


@pytest.mark.slow
def test_kill_9_loses_nothing_acknowledged(path: Path) -> None:
    code = """
told = mmap.mmap(-1, 2)  # shared with the forks: how often each has acknowledged a write, up to 255

def write_and_count(me, side):
    with open_store(path) as store:
        for n in range(1_000_000):
            store.put_session(*make(f"{me}-{n}"))
            os.write(1, f"{me}-{n}\\n".encode())
            told[side] = min(255, n + 1)

chance = random.Random(9)
for number in range(count):
    told[:] = bytes(2)
    writers = [fork(write_and_count, 2 * number + side, side) for side in range(2)]
    until = time.monotonic() + 20
    while number % 5 and told[0] + told[1] < 3 and time.monotonic() < until:  # the others die while they open the store
        time.sleep(0.001)
    time.sleep(chance.uniform(0, 0.01))
    kill(writers)
    with open_store(path) as store:
        assert store.health()["integrity"] == "ok"
"""
    acknowledged = set(run("import mmap" + code, path, KILLS).split())
    with open_store(path) as store:
        stored = {row.key for row in store.list_sessions(None)}
        assert store.health()["calls"] == 3 * len(stored)
    assert len(acknowledged) > KILLS
    assert acknowledged <= stored


def test_kill_9_while_the_store_is_made(path: Path) -> None:
    code = f"""
def make_store():
    open_store(path)
    os.kill(os.getpid(), signal.SIGKILL)

chance = random.Random(3)
for _ in range(count):
    shutil.rmtree(os.path.dirname(path), ignore_errors=True)
    maker = fork(make_store)
    deadline = time.monotonic() + 10
    while not os.path.exists(path) and time.monotonic() < deadline:
        time.sleep(0.0005)
    time.sleep(chance.uniform(0, 0.004))
    kill([maker])
    with open_store(path) as store:
        health = store.health()
        assert (health["schema"], health["integrity"]) == ({len(module.MIGRATIONS)}, "ok"), health
"""
    run(code, path, KILLS // 2)


# No space


FILL = """
store = open_store(path)
kept = n = 0
try:
    while n < 100_000:
        with store.writing():
            for _ in range(5):
                store.put_session(*make(str(n), 20_000))
                n += 1
        kept += 5
except StoreFull as error:
    print(kept, flush=True)
assert len(store.list_sessions(None)) == kept, (len(store.list_sessions(None)), kept)
assert store.health()["integrity"] == "ok"
"""


def test_full_disk_undoes_the_transaction_and_the_store_goes_on(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(500_000))
    path = small_disk / "warmstart.db"
    code = (
        FILL
        + """
import os
os.unlink(os.path.dirname(path) + "/ballast")
store.put_session(*make("after", 1000))
assert len(store.list_sessions(None)) == kept + 1
store.close()
"""
    )
    assert int(run(code, path)) >= 0
    with open_store(path) as store:
        assert store.find_session("after")


def test_no_space_for_a_new_store(small_disk: Path) -> None:
    with pytest.raises(OSError, match="No space"):
        (small_disk / "ballast").write_bytes(bytes(3_000_000))
    path = small_disk / "home" / "warmstart.db"
    with pytest.raises(StoreFull):
        open_store(path)
    (small_disk / "ballast").unlink()
    with open_store(path) as store:
        assert store.health()["integrity"] == "ok"


def test_file_size_limit_is_a_full_disk(path: Path) -> None:
    code = (
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))\n"
        + FILL
        + """
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.put_session(*make("after", 1000))
"""
    )
    kept = int(run(code, path))
    with open_store(path) as store:
        assert len(store.list_sessions(None)) == kept + 1


# Damaged and foreign files


@pytest.mark.parametrize("checkpointed", [True, False], ids=["in the file", "in the WAL only"])
def test_newer_store_is_refused_and_left_byte_for_byte(path: Path, checkpointed: bool) -> None:
    open_store(path).close()
    db = apsw.Connection(str(path))
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0 if checkpointed else 1)
    number = len(module.MIGRATIONS) + 1
    migrate(db, module.KIND, [Migration(number, "later", "CREATE TABLE later (x INTEGER) STRICT")])
    db.close()
    before = contents(path)
    assert len(before) == (1 if checkpointed else 2)
    for _ in range(2):
        with pytest.raises(StoreTooNew, match=f"schema {number}"):
            open_store(path)
    assert contents(path) == before


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("settings", ["", "PRAGMA user_version = 1", "PRAGMA application_id = 77"])
def test_database_of_another_program_is_left_byte_for_byte(path: Path, mode: str, settings: str) -> None:
    path.parent.mkdir()
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", mode)
    db.execute(f"CREATE TABLE theirs (x); {settings}")
    db.close()
    before = contents(path)
    with pytest.raises(StoreError, match="another program"):
        open_store(path)
    assert contents(path) == before


@pytest.mark.parametrize(
    "content", [b"\0\0", b"hello", b'{"a": 1}\n' * 1000, b"SQLite format 3\0", b"SQLite format 3\0" * 8]
)
def test_file_that_is_no_database_is_left_byte_for_byte(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(StoreError):
        open_store(path)
    assert contents(path) == {path.name: content}


def test_empty_file_becomes_a_store(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    with open_store(path) as store:
        assert len(store.list_sessions(None)) == 0


def test_folder_in_place_of_the_file(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(StoreError, match="not a file"):
        open_store(path)


def test_half_written_database_is_an_error_not_a_crash(path: Path) -> None:
    run(WRITER + "write(0, count)", path, 50)
    whole = path.read_bytes()
    for size in [*range(4096, len(whole), 4096), 99, 100, 101, 1000, len(whole) - 1]:
        shutil.rmtree(path.parent)
        path.parent.mkdir()
        path.write_bytes(whole[:size])
        with pytest.raises(StoreError, match=r"warmstart\.db: (damaged|not a SQLite)"):
            open_store(path).health()


def test_damaged_pages_are_an_error_not_a_crash(path: Path) -> None:
    run(WRITER + "write(0, count)", path, 50)
    whole = path.read_bytes()
    chance = random.Random(5)
    noticed = 0
    for _ in range(60):
        broken = bytearray(whole)
        for _ in range(20):
            at = chance.randrange(100, len(broken) - 64)
            broken[at : at + 64] = chance.randbytes(64)
        path.write_bytes(broken)
        try:
            with open_store(path) as store:
                noticed += store.health()["integrity"] != "ok"
                store.list_sessions()
                store.calls_of("0-7")
                store.put_source(SourceRow(uri="/new", size=0, mtime_ns=0, read_at=0.0))
        except StoreError as error:
            assert "warmstart.db" in str(error)
            noticed += 1
        for end in ("-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)
    assert noticed > 50


@pytest.mark.parametrize("what", ["file", "folder"])
def test_no_right_to_write(path: Path, what: Literal["file", "folder"]) -> None:
    """Checked in a process that is not root, because permissions do not apply to root."""
    open_store(path).close()
    take_writing(path, what)
    code = """
import os
import warmstart.store
if os.getuid() == 0:
    os.setuid(65534)
try:
    with open_store(path) as store:
        store.put_session(*make("k"))
except StoreError as error:
    print(error)
"""
    error = run(code, path)
    assert "cannot be opened for writing" in error
    assert "permissions" in error
