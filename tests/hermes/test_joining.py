"""The hooks' journal joined with the database, and the mark file that starts the reading."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import warmstart
from hermes.running import make_past
from warmstart import Warmstart
from warmstart.doors.hermes.close import Closer, close, main
from warmstart.doors.hermes.join import correct
from warmstart.doors.hermes.journal import SeenCall, open_notes, open_sightings
from warmstart.model import Outcome, Session, ToolCall, ToolResult

ERROR = Outcome("error", "structure", "other")


def make_session(*calls: tuple[str, Outcome]) -> Session:
    steps: list[ToolCall | ToolResult] = []
    for at, (name, outcome) in enumerate(calls):
        steps += [ToolCall(name, "terminal", {}, at * 10.0), ToolResult(name, "?", outcome, at * 10.0 + 1)]
    return Session(id="s", format="hermes", source_uri="x", agent="hermes", steps=tuple(steps))


def outcomes(session: Session) -> list[str]:
    return [step.outcome.status for step in session.steps if isinstance(step, ToolResult)]


def see(call: str, status: str, at: float) -> SeenCall:
    return SeenCall(session="s", call=call, tool="terminal", status=status, at=at)


def test_blocked_and_cancelled_are_no_errors() -> None:
    session = make_session(("a", ERROR), ("b", ERROR), ("c", ERROR))
    found = correct(session, [see("a", "blocked", 1.0), see("c", "cancelled", 21.0), see("z", "blocked", 3.0)])
    assert outcomes(found) == ["denied", "error", "cancelled"]


def test_an_id_used_again_is_told_by_the_time() -> None:
    session = make_session(("a", ERROR), ("a", ERROR))
    assert outcomes(correct(session, [see("a", "blocked", 12.0)])) == ["error", "denied"]


def test_what_hermes_threw_away_is_counted_once() -> None:
    """Three tries, of which Hermes keeps the last."""
    session = make_session(("ok", Outcome("ok", "structure")), ("a", ERROR))
    found = correct(session, [see("a", "invalid", at) for at in (3.0, 4.0, 5.0)])
    assert outcomes(found) == ["ok", "error", "error", "error"]
    assert len(found.calls()) == 4 and all(result for _call, result in found.calls())


@pytest.fixture
def ws(tmp_path: Path) -> Warmstart:
    return warmstart.open(make_past(tmp_path))


def test_joined_counts_survive_reading_again(ws: Warmstart, tmp_path: Path) -> None:
    database, session = tmp_path / "state.db", "20260101_000000_abcdef"
    with closing(sqlite3.connect(database)) as connection, connection:
        blocked = json.dumps({"error": "Not in this house."})
        connection.execute(
            "UPDATE messages SET content = ? WHERE session_id = ? AND tool_call_id = 'c0_0'", (blocked, session)
        )
    with ws:
        ws.provision(warmstart.Task(text="x", session=session, agent="hermes"))
        close(ws, database)
        assert ws.session(session).session.errors == 1
        open_sightings(ws.settings.home).add(SeenCall(session=session, call="c0_0", tool="terminal", status="blocked"))
        close(ws, database)
        assert ws.session(session).session.errors == 0
        closed = ws.experiments.close()
        assert closed.trials == 0  # nothing is left to do
        database.touch()
        ws.ingest(database)
        record = ws.session(session)
        assert record.session.errors == 0 and [call.status for call in record.calls] == ["denied", "ok"]


def test_the_mark_is_taken_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    past = make_past(tmp_path)
    home = tmp_path / "other"
    monkeypatch.setenv("WARMSTART_HOME", str(home))
    shutil.rmtree(past)
    main([str(tmp_path / "state.db"), "0"])
    with warmstart.open() as ws:
        assert ws.sessions() == []  # there was no mark
        closer = Closer()
        closer.mark(home, tmp_path / "state.db")
        main([str(tmp_path / "state.db"), "0"])
        assert len(ws.sessions()) == 3 and list((home / "hermes").iterdir()) == []


def test_a_database_that_cannot_be_read_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARMSTART_HOME", str(tmp_path / "home"))
    database = tmp_path / "state.db"
    database.write_bytes(b"SQLite format 3\x00" + b"\x07" * 5_000)
    closer = Closer()
    closer.mark(tmp_path / "home", database)
    assert main([str(database), "0"]) == 1
    (note,) = open_notes(tmp_path / "home").read()
    assert note.session == "" and "state.db was not read" in note.reason
    assert list((tmp_path / "home" / "hermes").glob("unread-*"))
