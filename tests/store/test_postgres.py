"""The store in PostgreSQL alone: its schema beside SQLite's, its statements, and its address."""

from __future__ import annotations

import os
import random
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from msgspec import structs

from databases import on_postgres
from postgres_server import Postgres
from store.rows import make_calls, make_session
from transcripts import claude_lines, write_jsonl
from warmstart import config
from warmstart.errors import ConfigError, StoreError, StoreTooNew, StoreUnreachable
from warmstart.pipeline import Warmstart
from warmstart.store import Store, locate_store, open_file, open_store
from warmstart.store import postgres as module
from warmstart.store.postgres_dialect import fold, list_words, match_words, translate
from warmstart.store.sqlite import MIGRATIONS

pytestmark = on_postgres

SQLITE_TYPES = {"BLOB": "bytea", "TEXT": "text", "INTEGER": "bigint", "REAL": "double precision"}
ONLY_OURS = {"owner"}  # columns that PostgreSQL has for its roles
DIFFERENT = {"session_words", "migrations"}  # tables that each database has in its own form


@pytest.fixture
def db(store: Store) -> Iterator[psycopg.Connection[Any]]:
    """A connection beside the store."""
    with psycopg.connect(os.environ["WARMSTART_STORE"], autocommit=True, options="-c search_path=warmstart") as opened:
        yield opened


# The schema


def read_sqlite(path: Path) -> dict[str, dict[str, tuple[str, bool]]]:
    """Return the columns of each table: type, and whether it may be null."""
    with open_file(path) as store:
        tables = store._db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'session_words%'"
        ).fetchall()
        return {
            table: {
                name: (SQLITE_TYPES[kind], not (required or key))
                for _id, name, kind, required, _default, key in store._db.execute(f"PRAGMA table_info({table})")
            }
            for (table,) in tables
        }


def test_both_databases_have_the_same_tables_and_columns(db: psycopg.Connection[Any], tmp_path: Path) -> None:
    """A migration for SQLite alone makes this fail: write the one of the same name for PostgreSQL."""
    ours: dict[str, dict[str, tuple[str, bool]]] = {}
    for table, column, kind, nullable in db.execute(
        "SELECT table_name, column_name, data_type, is_nullable = 'YES' FROM information_schema.columns WHERE table_schema = 'warmstart'"
    ):
        if column not in ONLY_OURS:
            ours.setdefault(table, {})[column] = (kind, nullable)
    theirs = read_sqlite(tmp_path / "warmstart.db")
    assert {name: columns for name, columns in ours.items() if name not in DIFFERENT} == {
        name: columns for name, columns in theirs.items() if name not in DIFFERENT
    }


def test_migrations_have_the_numbers_and_names_of_sqlite(db: psycopg.Connection[Any]) -> None:
    recorded = db.execute("SELECT number, name FROM migrations ORDER BY number").fetchall()
    assert recorded == list(enumerate(MIGRATIONS, 1))[module.FIRST - 1 :]
    files = sorted(file.stem for file in (Path(module.__file__).parent / "migrations_postgres").glob("*.sql"))
    assert files == [name for _number, name in recorded]


def test_texts_are_ordered_as_in_sqlite(db: psycopg.Connection[Any]) -> None:
    """Every text has the collation "C", and an index over a column that may be null lists null first."""
    loose = db.execute(
        "SELECT table_name, column_name FROM information_schema.columns "
        "WHERE table_schema = 'warmstart' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'"
    ).fetchall()
    assert loose == []


# Statements


def test_every_statement_can_be_prepared(store: Store, db: psycopg.Connection[Any]) -> None:
    """Also those that no test runs: a word of SQLite that PostgreSQL lacks fails here."""
    failed = {}
    for name, sql in module.STATEMENTS.items():
        if name.isidentifier() and name not in ("drop_deleted_words", "put_migration"):
            try:
                db.execute(f"PREPARE tried AS {sql.rstrip('; ')}; DEALLOCATE tried")
            except psycopg.Error as error:
                failed[name] = str(error)
    assert not failed


def test_words_of_sqlite_are_translated() -> None:
    assert translate("SELECT 1 WHERE (:a IS NULL OR b = :a) AND c = :c -- why?\n") == (
        "SELECT 1 WHERE (b = $1 OR $1 IS NULL) AND c = $2"
    )
    assert translate("SELECT ':x', '?', '''--' FROM json_each(?) JOIN json_each(?)") == (
        "SELECT ':x', '?', '''--' FROM json_list($1) JOIN json_list($2)"
    )
    assert translate("a LIKE ?2 AND instr(b, ?1) > 0") == "a ILIKE $2 AND strpos(b, $1) > 0"


def test_words_are_folded_as_in_sqlite(tmp_path: Path) -> None:
    """FTS5 reads the same words from a text."""
    texts = ["Straße ÉCOLE naïve", "src/a_b.py --long-flag x=1.5e3", "日本語 テスト", "Ångström ½ x²", "İstanbul"]
    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5 (x); CREATE VIRTUAL TABLE v USING fts5vocab (t, row)").fetchall()
    for text in texts[:4]:
        db.execute("DELETE FROM t")
        db.execute("INSERT INTO t VALUES (?)", (text,))
        assert set(list_words([text])) == {term for (term,) in db.execute("SELECT term FROM v")}, text
    assert fold("ÉCOLE") == "ecole"
    assert match_words(["Test", "ÉC"]) == "'test' & 'ec':*"
    assert len("".join(list_words([" ".join(f"{n:0100}" for n in range(20_000))]))) < 1_000_000, (
        "PostgreSQL takes no more"
    )
    assert list_words(["x" * 5_000]) == ["x" * 250]


def test_a_session_with_more_words_than_an_index_entry_holds_is_stored(store: Store) -> None:
    long = " ".join(f"{n:060x}" for n in range(30_000))
    call = structs.replace(make_calls()[0], call_id=os.urandom(4_000).hex())
    store.put_session(make_session(task="findable " + long), [call])
    ((found,),) = store.rows("count_matches", (store.make_match(["findable"]),))
    assert found == 1


def test_a_change_needs_a_transaction(store: Store) -> None:
    """Outside of one it could be repeated after a lost connection."""
    with pytest.raises(StoreError, match="read-only"):
        store.run("forget_session", ("k", 1.0))


# Opening


def test_an_older_program_stops_at_a_newer_schema(store: Store, db: psycopg.Connection[Any]) -> None:
    db.execute("INSERT INTO migrations VALUES (999, 'later', 0)")
    try:
        with pytest.raises(StoreTooNew, match="schema 999"), store.writing():
            pass
        with pytest.raises(StoreTooNew, match="schema 999"):
            open_store(os.environ["WARMSTART_STORE"])
    finally:
        db.execute("DELETE FROM migrations WHERE number = 999")


def test_a_schema_of_another_program_is_left_alone(postgres: Postgres) -> None:
    address = postgres.make_database()
    with psycopg.connect(address, autocommit=True) as db:
        db.execute("CREATE SCHEMA warmstart; CREATE TABLE warmstart.theirs (x int)")
        with pytest.raises(StoreError, match="another program"):
            open_store(address)
        db.execute("DROP SCHEMA warmstart CASCADE")


@pytest.mark.parametrize(
    "url", ["postgresql://me:pa/ss@host/db", "postgresql://me:s3cret@ho@st/db", "postgresql://me:s3cret@[::1/db"]
)
def test_a_bad_address_is_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert "s3cret" not in str(caught.value) and "pa/ss" not in str(caught.value)


def test_a_password_is_never_shown() -> None:
    with pytest.raises(StoreUnreachable) as caught:
        open_store("postgresql://me:s3cret@127.0.0.1:1/db?connect_timeout=2")
    assert "s3cret" not in str(caught.value) and "127.0.0.1:1/db" in str(caught.value)
    assert caught.value.__cause__ is None
    with pytest.raises(ConfigError) as wrong:
        locate_store("mysql://me:s3cret@host/db")
    assert "s3cret" not in str(wrong.value)


def test_health_names_the_server_and_the_role(store: Store) -> None:
    health = store.health()
    assert health["bytes"] > 0 and health["path"].startswith("postgresql://")
    assert (health["schema"], health["integrity"], health["role"]) == (len(MIGRATIONS), "ok", "postgres")


# Long values


@pytest.mark.parametrize("place", ["session", "cwd", "model"])
def test_what_is_too_long_for_an_index_costs_one_file(database: str, tmp_path: Path, place: str) -> None:
    """SQLite holds any length. Random letters: the server compresses others."""
    chance = random.Random(1)
    parts = ["".join(chance.choices(string.ascii_letters, k=60)) for _ in range(100)]
    facts = {"session": "s-1", "cwd": "/home/dev"} | ({"cwd": "/" + "/".join(parts)} if place == "cwd" else {})
    lines = claude_lines(**(facts | ({"session": "-".join(parts)} if place == "session" else {})))
    for line in lines if place == "model" else []:
        if line["type"] == "assistant":
            line["message"] |= {"model": "-".join(parts), "usage": {"input_tokens": 5, "output_tokens": 3}}
    write_jsonl(tmp_path / "in" / "a.jsonl", lines)
    write_jsonl(tmp_path / "in" / "b.jsonl", claude_lines("s-2"))
    with Warmstart(config.load()) as ws:
        for new in (1, 0):  # the second time it is read and reported again
            report = ws.ingest(tmp_path / "in")
            assert report.new == new
            (problem,) = report.problems
            assert "a.jsonl" in problem.path and "too long" in problem.reason
        assert [row.id for row in ws.store.list_sessions()] == ["s-2"]
