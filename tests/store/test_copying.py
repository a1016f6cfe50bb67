"""A store is copied whole and verified, between a file and a server, or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import psycopg
import pytest

import warmstart
from bundles.team import git
from command_line import run, run_json
from notes.stored import GONE, RIGHT, THERE, WRONG, sessions
from places import SRC
from postgres_server import start_postgres
from transcripts import CART, teach, work_lines
from warmstart.errors import Refused, StoreError, StoreFull, StoreUnreachable
from warmstart.model import Task
from warmstart.store import open_store
from warmstart.store.copying import CopyChoice, StoreCopy, list_tables

SHOP, OWN = "github.com/acme/shop", "github.com/me/diary"


@pytest.fixture
def full(tmp_path: Path) -> str:
    """The path of a store with sessions of two projects, templates, notes, trials, decisions and usage."""
    home = tmp_path / "full"
    for name, remote in (("shop", SHOP), ("diary", OWN)):
        git("init", "--quiet", tmp_path / name)
        git("remote", "add", "origin", f"https://{remote}.git", folder=tmp_path / name)
    with warmstart.open(home) as ws:
        teach(ws, *sessions(3, WRONG, RIGHT, GONE, THERE, cwd=str(tmp_path / "shop")))
        teach(ws, *(work_lines(f"c-{n}", *CART, day=n + 5, cwd=str(tmp_path / "shop")) for n in range(3)))
        secret = ("Bash", {"command": "cat diary-canary.txt"}, "dear diary, canary \0 ok")
        teach(ws, *(work_lines(f"d-{n}", secret, RIGHT, day=n + 9, cwd=str(tmp_path / "diary")) for n in range(3)))
        ws.learn()
        ws.capture("c-0", name="cart", approve=True, anyway=True)
        ws.capture("d-0", name="diary", approve=True, anyway=True)
        ws.provision(Task(text="fix the cart tests", project=str(tmp_path / "shop"), session="t-1"))
        ws.provision(Task(text="write diary", project=str(tmp_path / "diary"), session="t-2"))
        note = ws.notes.list(project=SHOP, status="active")[0]
        ws.notes.retire(note.id, reason="no")
    return str(home / "warmstart.db")


def copy(source: str, target: str, **choice: object):
    with open_store(source) as one, open_store(target) as other:
        return StoreCopy(one, other, CopyChoice(**choice) if choice else None).run()


def read_all(url: str) -> dict[str, list[object]]:
    with open_store(url) as store:
        return {
            table.name: sorted(store.ask(f"SELECT {', '.join(table.columns)} FROM {table.name}"), key=repr)
            for table in list_tables()
        }


def test_every_table_of_the_schema_is_known():
    """A new table is copied as it is; one that belongs to a session must be listed in CopyChoice."""
    names = {table.name for table in list_tables()}
    assert {"sessions", "calls", "templates", "notes", "trials", "decisions"} <= names
    assert all(table.key for table in list_tables())
    by_session = {
        table.name for table in list_tables() if {"session_key", "session", "note", "example"} & {*table.columns}
    }
    followed = Path(SRC, "warmstart/store/copying.py").read_text()
    assert [name for name in by_session if f'"{name}"' not in followed] == []


def test_there_and_back_again(full, tmp_path, postgres):
    server = postgres.make_store()
    there = copy(full, server)
    assert there.changed_texts >= 1  # PostgreSQL holds no NUL
    counts = {table.name: table.rows for table in there.tables}
    assert counts["sessions"] == 9
    assert all(counts[name] for name in ("calls", "templates", "examples", "notes", "decisions", "trials", "digests"))
    back = copy(server, str(tmp_path / "back.db"))
    assert [table for table in back.tables if table.name != "sources"] == [
        table for table in there.tables if table.name != "sources"
    ]
    with warmstart.open(tmp_path / "full", store=server) as ws:
        assert ws.find_sessions("canary").total == 3  # the index of words was made anew
        learned = ws.learn()
        assert learned.considered == 9
        ws.templates.approve("cart", share=True)  # ids go on after the copied ones
        assert ws.notes.list(status="active")


def test_a_copy_of_a_file_is_equal(full, tmp_path):
    copied = copy(full, str(tmp_path / "b.db"))
    assert read_all(full) == read_all(str(tmp_path / "b.db"))
    again = copy(full, str(tmp_path / "b.db"))
    assert again.already_there
    assert again.tables == copied.tables
    with pytest.raises(Refused, match="into itself"):
        copy(full, full)


def test_a_store_with_other_data_is_left_untouched(full, tmp_path):
    other = str(tmp_path / "other" / "warmstart.db")
    with warmstart.open(tmp_path / "other") as ws:
        teach(ws, work_lines("x-1", *CART, cwd="/home/dev/else"))
    before = read_all(other)
    with pytest.raises(Refused, match="holds another store's data"):
        copy(full, other)
    assert read_all(other) == before


def test_only_chosen_projects_and_no_personal_scope(full, tmp_path):
    with warmstart.open(tmp_path / "full") as ws, ws.store.writing():
        ws.store.ask("UPDATE sessions SET scope = 'telegram:abc' WHERE id = 'c-1'")
    target = str(tmp_path / "b" / "warmstart.db")
    copied = copy(full, target, projects=[SHOP], personal=False)
    assert {table.name: table.rows for table in copied.tables}["sessions"] == 5
    assert copied.left_out > 0
    everything = read_all(target)
    assert "canary" not in repr(everything) and "diary" not in repr({**everything, "experiments": ()})
    assert "telegram" not in repr(everything)
    assert b"canary" not in b"".join(file.read_bytes() for file in Path(target).parent.iterdir())
    with warmstart.open(tmp_path / "b") as ws:
        seed = ws.provision(Task(text="fix the failing cart tests", project=SHOP))
        assert seed.templates  # the word index fits the examples that came
        ws.templates.retire("cart")  # and can be changed


def test_a_copy_that_does_not_read_back_keeps_nothing(full, tmp_path):
    class Lossy:
        """A store that loses the last call."""

        def __init__(self, store):
            self._store = store

        def __getattr__(self, name):
            return getattr(self._store, name)

        def put_rows(self, table, columns, rows):
            self._store.put_rows(table, columns, rows[:-1] if table == "calls" else rows)

    target = str(tmp_path / "b.db")
    with open_store(full) as one, open_store(target) as other:
        with pytest.raises(StoreError, match="calls does not read back"):
            StoreCopy(one, Lossy(other)).run()
        assert other.rows("count_rows")[0] == (0, 0, 0)


COPY = """
import sys
from warmstart.store import open_store
from warmstart.store.copying import StoreCopy
with open_store(sys.argv[1]) as one, open_store(sys.argv[2]) as other:
    StoreCopy(one, other).run(lambda done, total, what: (sys.stdout.write("."), sys.stdout.flush()))
"""


@pytest.mark.slow
def test_kill_9_leaves_an_empty_store_or_a_whole_one(full, tmp_path):
    for number, steps in enumerate((1, 3, 6, 10, 16, 24)):
        target = str(tmp_path / f"t{number}.db")
        process = subprocess.Popen(
            [sys.executable, "-c", COPY, full, target], env=os.environ | {"PYTHONPATH": SRC}, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.read(steps)
        time.sleep(0.002 * number)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        with open_store(target) as store:
            assert store.rows("count_rows")[0][0] in (0, 9)
        copy(full, target)
        assert read_all(target) == read_all(full)


def test_a_full_disk_keeps_nothing_and_the_source_as_it_was(full, small_disk):
    target, ballast = str(small_disk / "warmstart.db"), small_disk / "ballast"
    open_store(target).close()
    with pytest.raises(OSError, match="No space"):
        ballast.write_bytes(bytes(3_000_000))
    os.truncate(ballast, ballast.stat().st_size - 100_000)  # room for some tables
    before = read_all(full)
    with pytest.raises(StoreFull):
        copy(full, target)
    ballast.unlink()
    with open_store(target) as store:
        assert store.rows("count_rows")[0] == (0, 0, 0)
    copy(full, target)
    assert read_all(target) == read_all(full) == before


def test_a_full_disk_of_the_server_keeps_nothing(full, small_disk, postgres):
    """Calls have a disk of their own there, so that only that one is full."""
    target, ballast = postgres.make_store(), small_disk / "ballast"
    name = postgres.add_disk(small_disk)
    change = "ALTER TABLE warmstart.calls SET TABLESPACE {}"
    with psycopg.connect(target, autocommit=True) as db:
        db.execute(change.format(name))
        with pytest.raises(OSError, match="No space"):
            ballast.write_bytes(bytes(3_000_000))
        with pytest.raises(StoreFull, match="nothing of this change was kept"):
            copy(full, target)
        ballast.unlink()
        assert db.execute("SELECT count(*) FROM warmstart.sessions").fetchone() == (0,)
        assert not copy(full, target).already_there
        db.execute(change.format("pg_default"))
        db.execute(f"DROP TABLESPACE {name}")
    postgres.recycle_store(target)


@pytest.mark.slow
def test_kill_9_of_the_server_in_the_middle_of_a_copy(full, tmp_path):
    """In both directions: nothing is half there, the source is as it was, and the next copy is complete."""
    with start_postgres() as server:
        there, back = server.make_store(), str(tmp_path / "back.db")
        before = read_all(full)
        for source, target in ((full, there), (there, back)):
            with open_store(source) as one, open_store(target) as other:
                steps = count()

                def kill(_done: int, _total: int, _table: str, steps=steps) -> None:
                    if next(steps) == 6:
                        server.kill()

                with pytest.raises(StoreUnreachable):
                    StoreCopy(one, other).run(kill)
                assert next(steps) == 7, "nothing was copied after that"
            server.switch_on()
            with open_store(target) as other:
                assert other.rows("count_rows")[0] == (0, 0, 0)
            copied = copy(source, target)
            assert not copied.already_there and not copied.limited
        assert read_all(full) == before
        assert read_all(back).keys() == before.keys()
        assert [len(rows) for rows in read_all(back).values()] == [len(rows) for rows in before.values()]


def test_the_command(full, tmp_path, postgres):
    server = postgres.make_store()
    done = run("store", "copy", full, server, code=2)
    assert "name the projects to copy" in done.stderr
    done = run("store", "copy", full, server, "--project", "shop")
    assert "copied and verified" in done.stdout
    again = run_json("store", "copy", full, server, "--project", "shop")
    assert again["already_there"] is True
    assert {table["name"]: table["rows"] for table in again["tables"]}["sessions"] == 6
    assert "there is no store" in run("store", "copy", tmp_path / "none.db", tmp_path / "x.db", code=1).stderr
