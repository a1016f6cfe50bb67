"""Sessions in the places that their agent's program named while they ran."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import warmstart
from hermes.running import make_past
from warmstart import Warmstart
from warmstart.model import Task
from warmstart.store import PlaceStore

SESSIONS = [f"20260101_00000{n}_abcdef" for n in range(3)]
SHOP, SCOPE = "/srv/shop", "telegram:0123456789abcdef"


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warmstart:
    """A new home beside Hermes' database, which names neither folders nor people."""
    make_past(tmp_path)
    monkeypatch.setenv("WARMSTART_HOME", str(tmp_path / "new"))
    monkeypatch.setenv("WARMSTART_HOLDOUT", "0")
    return warmstart.open()


def test_what_is_learned_stays_in_its_place(ws: Warmstart, tmp_path: Path) -> None:
    with ws:
        for session in SESSIONS:
            ws.place_session(session, "hermes", SHOP, SCOPE)
            ws.place_session(session, "hermes", "/srv/other")  # the first place counts
        ws.ingest(tmp_path / "state.db")
        assert {(row.project, row.scope) for row in ws.sessions()} == {(SHOP, SCOPE)}
        ws.learn()
        seeds = {
            (folder, scope): bool(ws.provision(Task(text="Count the open orders", project=folder, scope=scope)))
            for folder in (SHOP, "/srv/farm", None)
            for scope in (SCOPE, "")
        }
        assert [place for place, seed in seeds.items() if seed] == [(SHOP, SCOPE)]
        database = tmp_path / "state.db"
        database.touch()
        assert ws.ingest(database).updated == 0, "reading it again changes nothing"
        ws.delete_session(SESSIONS[0])
        assert PlaceStore(ws.store).find(SESSIONS[0], "hermes") is None


def test_a_folder_in_the_transcript_counts_more(ws: Warmstart, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "state.db")) as database, database:
        database.execute("ALTER TABLE sessions ADD COLUMN cwd TEXT")
        database.execute("UPDATE sessions SET cwd = '/srv/farm'")
    with ws:
        ws.place_session(SESSIONS[0], "hermes", SHOP)
        ws.place_session(SESSIONS[1], "another agent", SHOP, SCOPE)
        ws.ingest(tmp_path / "state.db")
        assert {(row.project, row.scope) for row in ws.sessions()} == {("/srv/farm", "")}


def test_an_id_that_is_stored_under_another_name_has_no_place(ws: Warmstart) -> None:
    secret = "sk-proj-" + "A1b2C3d4" * 6
    with ws:
        ws.place_session(secret, "hermes", SHOP)
        ws.place_session(" ", "hermes", SHOP)
        assert ws.store.rows("session_place", (secret, "hermes")) == []
