"""The store in a SQLite file: columns, plans, locks, deletion without traces, opening and migrations."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from store.rows import make_calls, make_session
from warmstart.errors import ConfigError, StoreError, StoreTooNew
from warmstart.model import Provenance, Template
from warmstart.store import (
    CallRow,
    SessionRow,
    SourceRow,
    SqliteStore,
    TemplateStore,
    TrialRow,
    TrialStore,
    check_library,
    open_file,
    open_store,
)
from warmstart.store import sqlite as module
from warmstart.store.occurrences import NoteOccurrence, OccurrenceStore
from warmstart.store.places import PlaceStore
from warmstart.store.rows import PlaceRow
from warmstart.store.sqlite_file import Migration, migrate


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "warmstart.db"


@pytest.fixture
def store(path: Path) -> Any:
    with open_file(path) as opened:
        yield opened


def all_bytes(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()))


# Rows


@pytest.mark.parametrize(
    ("table", "row"), [("sources", SourceRow), ("sessions", SessionRow), ("calls", CallRow)], ids=lambda v: str(v)
)
def test_rows_have_the_columns_of_their_tables(store: SqliteStore, table: str, row: type[msgspec.Struct]) -> None:
    with apsw.Connection(str(store.path)) as db:
        assert tuple(name for (name,) in db.execute("SELECT name FROM pragma_table_info(?)", (table,))) == tuple(
            row.__struct_fields__
        )
        assert db.execute("SELECT strict FROM pragma_table_list WHERE name = ?", (table,)).get == 1


# Finding


def test_listing_uses_its_index(store: SqliteStore) -> None:
    with apsw.Connection(str(store.path)) as db:
        plan = db.execute("EXPLAIN QUERY PLAN " + module.QUERIES["list_sessions"], (None,) * 5 + (50, 0)).fetchall()
        assert "sessions_by_started" in str(plan)
        assert "TEMP B-TREE" not in str(plan)
        plan = db.execute("EXPLAIN QUERY PLAN " + module.QUERIES["keys_by_prefix"], ("a",)).fetchall()
        assert "SCAN sessions" not in str(plan)


# Transactions


def test_second_connection_of_a_process_keeps_the_locks_of_the_first(store: SqliteStore) -> None:
    """Otherwise another process would take its close for the last one and delete the WAL that we use."""
    open_store(store.path).close()
    shared_range = "510, 0x40000002"  # the bytes of the file that SQLite locks for every open connection
    code = f"import fcntl; fcntl.lockf(open({str(store.path)!r}, 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB, {shared_range})"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "BlockingIOError" in other.stderr


# Deleting


def test_deleted_content_leaves_no_bytes(store: SqliteStore) -> None:
    for n in range(60):
        key = f"{n * 7919 % 61:03}"
        canary = "CANARY" if n % 2 else "KEPT"
        row = make_session(key, task=f"{canary} task", score=canary * (n * 20), project=f"/{canary}")
        store.put_session(
            row, make_calls(key, 5, excerpt=canary * (n * 10), arguments=f'"{canary}"', tool=f"T{canary}")
        )
    shorter = make_session("000", digest="d2", task="cleaned", score="{}")
    store.put_session(shorter, make_calls("000"))
    for row in store.list_sessions(None):
        if "CANARY" in (row.task or ""):
            store.forget_session(row.key, 0.0)
    store.erase()
    found = all_bytes(store.path)
    assert b"KEPT" in found
    assert b"CANARY" not in found
    assert store.health()["integrity"] == "ok"


def test_erase_says_when_a_reader_is_in_the_way(path: Path) -> None:
    with open_store(path, patience=0.05) as store, apsw.Connection(str(path)) as reader:
        store.put_session(make_session(), [])
        reader.execute("SELECT key FROM sessions").fetchall()
        store.forget_session("k1", 0.0)
        with pytest.raises(StoreError, match="reading"):
            store.erase()


# Opening


def test_urls(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/a/b.db") as store:
        assert isinstance(store, SqliteStore) and store.path == (tmp_path / "a" / "b.db").resolve()
    for wrong in ("mysql://x", "", "sqlite:///", "a\0b"):
        with pytest.raises(ConfigError):
            open_store(wrong)


def test_only_the_owner_can_read_it(path: Path) -> None:
    with open_store(path) as store:
        store.put_session(make_session(), [])
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}


def test_health(store: SqliteStore) -> None:
    store.put_session(make_session(), make_calls())
    health = store.health()
    assert health["bytes"] > 0
    assert health | {"bytes": 0} == {
        "path": str(store.path), "bytes": 0, "sqlite": apsw.sqlite_lib_version(), "schema": len(module.MIGRATIONS),
        "journal_mode": "wal", "integrity": "ok", "sessions": 1, "calls": 2, "sources": 0,
    }  # fmt: skip


def test_every_setting_is_made(store: SqliteStore) -> None:
    """Also the pragmas that follow one that returns a row."""
    found = [store._db.pragma(name) for name in ("synchronous", "foreign_keys", "secure_delete", "cache_size")]
    assert found == [2, 1, 1, -16000]


def test_dangerous_sqlite_is_refused() -> None:
    check_library("3.51.3")
    with pytest.raises(StoreError, match=r"3\.51\.2"):
        check_library("3.51.2")


# Migrations


def test_migrations_are_listed_and_recorded(store: SqliteStore) -> None:
    files = sorted(file.stem for file in (Path(module.__file__).parent / "migrations").glob("*.sql"))
    assert tuple(files) == module.MIGRATIONS
    with apsw.Connection(str(store.path)) as db:
        assert [tuple(row) for row in db.execute("SELECT number, name FROM migrations")] == list(enumerate(files, 1))
        assert db.pragma("application_id") == module.KIND.application_id
        assert db.pragma("user_version") == len(files)


def insert(db: apsw.Connection, table: str, row: msgspec.Struct) -> None:
    """Insert the columns that the table has in its schema."""
    columns = {name for _id, name, *_ in db.execute(f"PRAGMA table_info({table})")}
    known = {name: value for name, value in msgspec.structs.asdict(row).items() if name in columns}
    db.execute(
        f"INSERT INTO {table} ({', '.join(known)}) VALUES ({', '.join('?' * len(known))})", tuple(known.values())
    )


@pytest.mark.parametrize("number", range(len(module.MIGRATIONS) + 1))
def test_every_older_schema_opens_and_keeps_what_it_has(path: Path, number: int) -> None:
    path.parent.mkdir()
    db = apsw.Connection(str(path))
    migrate(db, module.KIND, [*module.KIND.load_migrations()][:number])
    if number >= 1:
        insert(db, "sessions", make_session("old"))
        for call in make_calls("old"):
            insert(db, "calls", call)
    if number >= 2:
        insert(db, "trials", TrialRow(session="s1", arm="warm", picks="[]", task="{}", at=5.0))
        db.execute("INSERT INTO seeds (session, dialect, body) VALUES ('s1', 'openai', '{}')")
    if 9 <= number < 11:
        db.execute("INSERT INTO weighings (id, closed, weighed) VALUES (1, 100, 98)")
    db.close()
    with open_store(path) as store:
        assert store.health()["schema"] == len(module.MIGRATIONS)
        assert store.rows("weighings", ("trial",)) == ([(100, 98)] if 9 <= number < 11 else [])
        assert [row.key for row in store.list_sessions()] == (["old"] if number else [])
        assert [call.tool for call in store.calls_of("old")] == (
            [call.tool for call in make_calls("old")] if number else []
        )
        trial = TrialStore(store).trial("s1")
        assert (trial is not None) == (number >= 2)
        if trial is not None:  # older schemas did not record how its arm was assigned
            assert (trial.arm, trial.measures) == ("warm", None)
            assert trial.assignment == ("unknown" if number < 3 else "random")
            assert TrialStore(store).seed("s1", "openai") == "{}"
        store.put_session(msgspec.structs.replace(make_session("new"), source="telegram"), make_calls("new"))
        assert [row.key for row in store.list_sessions(source="telegram")] == ["new"]
        drawn = NoteOccurrence(
            note="n", session=make_session("new").id, withheld=True, share=0.5, action="tell", at=5.0
        )
        with store.writing():
            OccurrenceStore(store).put([drawn, drawn])
            assert OccurrenceStore(store).find() == [drawn], "drawn once"
            assert OccurrenceStore(store).has_unread()
            ((unread, key, _content),) = OccurrenceStore(store).take_unread()
            assert (unread, key) == (drawn, "new")
            assert not OccurrenceStore(store).has_unread()
        place = PlaceRow(session="s1", agent="hermes", folder="/work", scope="", at=5.0)
        PlaceStore(store).put(place)
        PlaceStore(store).put(msgspec.structs.replace(place, folder="/other", scope="x", summary="d"))
        assert PlaceStore(store).find("s1", "hermes") == msgspec.structs.replace(place, summary="d"), "the first counts"
        assert PlaceStore(store).find("s1", "codex") is None


def test_trials_that_shared_a_transcript_are_separated(path: Path) -> None:
    """Earlier versions measured several trials with one transcript."""
    path.parent.mkdir()
    db = apsw.Connection(str(path))
    migrate(db, module.KIND, [*module.KIND.load_migrations()][:8])
    insert(db, "sessions", make_session("k"))
    own = make_session("k").id
    for name, key in (("first", "k"), (own, "k"), ("alone", "gone"), ("later", "gone"), ("open", None)):
        at = float(len(name))
        row = TrialRow(
            session=name, arm="warm", picks="[]", task="{}", at=at, transcript=key, measures="{}", closed=9.0
        )
        insert(db, "trials", row)
    db.close()
    with open_store(path) as store:
        trials = {row.session: row for row in TrialStore(store).trials("")}
        assert {name: row.transcript for name, row in trials.items()} == {
            "first": None, own: "k", "alone": "gone", "later": None, "open": None,
        }  # fmt: skip
        assert (trials["first"].measures, trials["first"].closed) == (None, None)
        assert [row[:2] for row in TrialStore(store).take_closable()] == [(own, "k")], "it is measured again"
        assert not TrialStore(store).has_unmeasured()


def test_failed_migration_leaves_the_schema_before_it(path: Path) -> None:
    open_store(path).close()
    last = len(module.MIGRATIONS)
    db = apsw.Connection(str(path))
    later = [Migration(last + 1, "wrong", "CREATE TABLE half (x) STRICT; SELECT nonsense")]
    with pytest.raises(apsw.SQLError):
        migrate(db, module.KIND, later)
    db.close()
    with open_store(path) as store:
        assert store.health()["schema"] == last


def test_old_program_stops_writing_when_a_newer_one_upgrades_under_it(store: SqliteStore) -> None:
    db = apsw.Connection(str(store.path))
    later = Migration(len(module.MIGRATIONS) + 1, "later", "CREATE TABLE later (x INTEGER) STRICT")
    migrate(db, module.KIND, [later])
    db.close()
    with pytest.raises(StoreTooNew):
        store.put_session(make_session(), [])
    assert len(store.list_sessions(None)) == 0


def test_writing_stops_when_the_file_becomes_another_programs(store: SqliteStore) -> None:
    db = apsw.Connection(str(store.path))
    db.pragma("application_id", 77)
    db.close()
    with pytest.raises(StoreError, match="another program"):
        store.put_session(make_session(), [])
    assert len(store.list_sessions(None)) == 0


def test_examples_of_an_older_store_are_shown_as_before(path: Path) -> None:
    """Before schema 12 an example was one call, and nothing was kept beside the examples of a template."""
    path.parent.mkdir()
    db = apsw.Connection(str(path))
    migrate(db, module.KIND, [*module.KIND.load_migrations()][:11])
    body = msgspec.json.encode(Template(name="lamps", provenance=Provenance(origin="captured"))).decode()
    columns = ("lamps", 1, "lamps", "active", "approved", "general", "mixed", "", 1.0, body, "d", 0.0)
    db.execute(
        "INSERT INTO templates (name, version, name_key, status, reason, category, task_type, project, strength, body, digest, created)"
        f" VALUES ({', '.join('?' * len(columns))})",
        columns,
    )
    old = '{"tool": "find_lamp", "arguments": {"colour": "blue"}, "result": "1 lamp", "intent": "Find a blue lamp", "session": "s", "step": 0}'
    db.execute(
        "INSERT INTO examples (name, version, ordinal, tool, body, costs) VALUES ('lamps', 1, 0, 'find_lamp', ?, '{}')",
        (old,),
    )
    db.close()
    with open_store(path) as store:
        templates = TemplateStore(store)
        ((row, example),) = templates.examples("lamps", 1)
        assert (row.further, example.calls, example.closing) == (0, (), "")
        assert [call.tool for call in example.shown] == ["find_lamp"]
        assert templates.from_session("s") == [("lamps", 1)]
        assert templates.further_from_session("s") == []
