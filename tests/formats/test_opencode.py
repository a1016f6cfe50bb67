"""OpenCode: the database in every state, one session of it, exports, and the counts of real files."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import warmstart
from formats.archives import unpack
from formats.databases import CASE, TABLES, add_session
from formats.reading import Listener, steps
from warmstart.formats import hermes_db, opencode, opencode_db
from warmstart.formats.source import Source
from warmstart.ingest.queue import Queue
from warmstart.ingest.read import inspect
from warmstart.judging.outcome import judge_result
from warmstart.model import Session, Signal, ToolCall, ToolResult


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "opencode" / "opencode.db"


@pytest.fixture
def database(path: Path) -> Iterator[sqlite3.Connection]:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        for table in TABLES:
            connection.execute(table)
        yield connection


def read(path: Path, only: str = "") -> tuple[list[Session], list[str]]:
    source = Source(path, only)
    assert opencode_db.sniff(source.head) and not hermes_db.sniff(source.head)
    return list(opencode_db.read(source, judge_result)), [problem.reason for problem in source.problems]


def list_outcomes(session: Session) -> list[str]:
    return [result.outcome.status for result in steps(session, ToolResult)]


def test_an_export_with_its_outcomes_words_and_tokens() -> None:
    (session,) = opencode.read(Source(CASE), judge_result)
    assert list_outcomes(session) == ["error", "error", "rejected", "ok"]
    assert steps(session, ToolResult)[2].outcome.words == "keep the old tables"
    assert (session.project, session.model, session.started) == ("/srv/harbour", "harbour-large", 1790000000.0)
    assert session.usage is not None
    assert (session.usage.input, session.usage.output, session.usage.cache_read) == (600, 150, 240)


def test_the_database_holds_the_same(path: Path, database: sqlite3.Connection) -> None:
    add_session(database, "ses_a")
    (session,), problems = read(path)
    (exported,) = opencode.read(Source(CASE), judge_result)
    assert (session.steps, session.usage, problems) == (exported.steps, exported.usage, [])
    assert session.source_uri.endswith("opencode.db#ses_a")


def test_one_session_is_read_with_its_subagents(path: Path, database: sqlite3.Connection) -> None:
    for name, parent in (("ses_a", None), ("ses_b", "ses_a"), ("ses_c", "ses_b"), ("ses_d", None)):
        add_session(database, name, parent)
    assert [session.id for session in read(path)[0]] == ["ses_a", "ses_b", "ses_c", "ses_d"]
    sessions, _problems = read(path, "ses_a")
    assert [(session.id, session.parent) for session in sessions] == [
        ("ses_a", None),
        ("ses_b", "ses_a"),
        ("ses_c", "ses_b"),
    ]
    assert read(path, "ses_x") == ([], [])


def test_a_queued_session_is_read_alone_and_again_when_it_has_grown(path: Path, database: sqlite3.Connection) -> None:
    add_session(database, "ses_a")
    add_session(database, "ses_b")
    with warmstart.open() as ws:
        queue = Queue(ws.settings.home)
        queue.add(path.with_name("opencode.db#ses_b"))
        assert (ws.catch_up().new, [row.id for row in ws.sessions()], queue.count()) == (1, ["ses_b"], 0)
        data = json.dumps({"type": "text", "text": "One more."})
        database.execute("INSERT INTO part VALUES ('prt_ses_b_6_99', 'msg_ses_b_6', 'ses_b', ?)", (data,))
        database.commit()
        queue.add(path.with_name("opencode.db#ses_b"))
        assert ws.catch_up().updated == 1
        assert (ws.ingest(path).new, len(ws.sessions())) == (1, 2)


def fingerprint(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


def test_reading_leaves_no_trace_while_opencode_writes(path: Path, database: sqlite3.Connection) -> None:
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA wal_autocheckpoint = 0")
    add_session(database, "ses_a")
    database.execute("BEGIN IMMEDIATE")  # a turn is being written
    database.execute("INSERT INTO session VALUES ('ses_b', NULL, '/', 1)")
    before = fingerprint(path.parent)
    sessions, problems = read(path)
    assert ([session.id for session in sessions], problems) == (["ses_a"], [])
    assert fingerprint(path.parent) == before


@pytest.mark.parametrize("part", [0.5, 0.9])
def test_half_a_database_gives_what_it_holds(path: Path, database: sqlite3.Connection, part: float) -> None:
    for number in range(40):
        add_session(database, f"ses_{number:02}", padding=20_000)
    database.close()
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    sessions, problems = read(path)
    assert problems and len(sessions) >= int(40 * part) - 8 and sessions[0].task == "Print the tide table of Rotterdam"


HOSTILE: list[Any] = [7, [], "text", {"type": "tool"}, {"type": "tool", "state": []}, {"type": ["tool"], "text": {}}]


def test_hostile_rows_cost_only_themselves(path: Path, database: sqlite3.Connection) -> None:
    add_session(database, "ses_a")
    for number, value in enumerate([*HOSTILE, None]):
        data = '{"type": "text", "te' if value is None else json.dumps(value)
        database.execute("INSERT INTO part VALUES (?, 'msg_ses_a_1', 'ses_a', ?)", (f"prt_x{number}", data))
    database.execute("INSERT INTO part VALUES ('prt_y', 'msg_ses_a_1', 'ses_a', ?)", (b"\xff\xfe{",))
    database.execute("INSERT INTO message VALUES ('msg_z', 'ses_a', 99, '[]')")
    database.commit()
    (session,), problems = read(path)
    assert list_outcomes(session) == ["error", "error", "rejected", "ok"] and problems


def test_signals_of_commands(tmp_path: Path) -> None:
    case = json.loads(CASE.read_text())
    states = [
        {"status": "completed", "output": "x\nUser aborted the command", "metadata": {"exit": None}},
        {"status": "completed", "output": "bash tool terminated command after exceeding timeout 5 ms", "metadata": {"exit": None}},
        {"status": "completed", "output": "?", "metadata": {"exit": None}},
        {"status": "error", "error": "Tool execution aborted", "metadata": {"interrupted": True}},
        {"status": "completed", "output": "y\n\n[warmstart] n", "metadata": {"exit": 0, "warmstart": {"note": "[warmstart] n", "input": {"command": "z"}}}},
    ]  # fmt: skip
    case["messages"][1]["parts"] = [
        {"type": "tool", "tool": "bash", "callID": f"c{number}", "state": {"input": {"command": "a"}} | state}
        for number, state in enumerate(states)
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(case | {"messages": case["messages"][:2]}))
    listener = Listener()
    (session,) = opencode.read(Source(path), listener)
    cancelled = Signal(status="cancelled")
    assert listener.signals == [cancelled, Signal(failed=True), None, cancelled, Signal(exit_code=0)]
    assert listener.texts[-1] == "y" and steps(session, ToolCall)[-1].arguments == {"command": "z"}


@pytest.mark.parametrize(("archive", "folder"), [("gatomia", "sessions"), ("formats", "opencode")])
def test_the_real_files_are_counted_like_a_plain_script_counts_them(archive: str, folder: str, tmp_path: Path) -> None:
    files = unpack(archive, tmp_path) / folder
    expected: Counter[str] = Counter()
    for path in files.glob("*__opencode__*.json"):
        expected["sessions"] += 1
        for message in json.loads(path.read_text())["messages"]:
            for part in message["parts"]:
                state = part.get("state") or {}
                expected["calls"] += part["type"] == "tool"
                expected["results"] += state.get("status") in ("completed", "error")
                expected["interrupted"] += (state.get("metadata") or {}).get("interrupted") is True
                expected["failed"] += state.get("status") == "error"
                exit_code = (state.get("metadata") or {}).get("exit")
                expected["failed"] += exit_code not in (None, 0)
                expected["failed"] += exit_code is None and "exceeding timeout" in state.get("output", "")[-200:]
    expected["failed"] -= expected["interrupted"]
    assert expected["calls"] == {"gatomia": 1492, "formats": 40}[archive]
    read_back: Counter[str] = Counter(interrupted=0)
    for path in files.glob("*__opencode__*.json"):
        inspection = inspect(path)
        assert inspection.problems == ()
        for scored in inspection.sessions:
            results = steps(scored.session, ToolResult)
            read_back["sessions"] += 1
            read_back["calls"] += len(steps(scored.session, ToolCall))
            read_back["results"] += len(results)
            flagged = [result.outcome for result in results if result.outcome.basis in ("flag", "exit_code")]
            read_back["failed"] += sum(outcome.status == "error" for outcome in flagged)
            read_back["interrupted"] += sum(outcome.status == "cancelled" for outcome in flagged)
    assert read_back == expected
