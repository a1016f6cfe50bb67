"""Hermes: the database in every state (live, locked, old, cut in half), its exports and its trajectories."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from formats.databases import MESSAGES, SESSIONS, add, calls_json, fill
from formats.reading import steps
from places import CORPUS, DATA, NO_CORPUS
from warmstart.formats import claude_code, hermes_db, hermes_export, openai_chat, sharegpt
from warmstart.formats.source import Source
from warmstart.model import UNKNOWN, Message, Outcome, Session, SessionOwner, Signal, ToolCall, ToolResult


def judge(call: ToolCall | None, text: str, signal: Signal | None) -> Outcome:
    assert signal is None  # Hermes has no conclusive flag
    return UNKNOWN if call is None else Outcome("ok", "text")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def database(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection:
        yield connection


def read(path: Path) -> tuple[list[Session], list[str]]:
    source = Source(path)
    assert hermes_db.sniff(source.head)
    return list(hermes_db.read(source, judge)), [problem.reason for problem in source.problems]


def test_a_plain_database(path: Path, database: sqlite3.Connection) -> None:
    fill(database)
    database.execute(
        "UPDATE sessions SET input_tokens=5, output_tokens=6, cache_read_tokens=7, estimated_cost_usd=0.5, ended_at=99.0,"
        " end_reason='cli_close', cwd='/home/lea', parent_session_id='s0', source='subagent' WHERE id='s1'"
    )
    database.commit()
    (path.parent / "labels.json").write_text('{"s1": 1.0, "s0": 0}')
    (first, second), problems = read(path)
    assert problems == []
    assert (first.id, first.task, first.model, first.label) == ("s0", "Question 0", "qwen3", False)
    assert first.usage is not None and first.usage.basis == "estimated", "the columns begin at zero: nobody counted"
    assert [type(step) for step in first.steps] == [Message, ToolCall, ToolResult, Message]
    assert steps(first, ToolResult)[0].outcome.status == "ok"
    assert second.usage is not None and (second.usage.input, second.usage.cache_read, second.usage.cost) == (5, 7, 0.5)
    assert (second.parent, second.project, second.end_reason, second.ended) == ("s0", "/home/lea", "cli_close", 99.0)
    assert second.label is True and second.source_uri.endswith("state.db#s1")


def test_whose_session_it_is(tmp_path: Path) -> None:
    home = tmp_path / "profiles" / "work"
    home.mkdir(parents=True)
    with closing(sqlite3.connect(home / "state.db")) as database:
        fill(database, count=6)
        for column in ("user_id", "chat_id", "profile_name"):
            database.execute(f"ALTER TABLE sessions ADD COLUMN {column} TEXT")
        changes = {
            "s1": "source='telegram', user_id='7', chat_id='70'",
            "s2": "source='telegram', parent_session_id='s1'",  # goes on after a compression
            "s3": "source='subagent', parent_session_id='s2'",
            "s4": "source='subagent', parent_session_id='gone'",
            "s5": "source='irc'",
        }
        for session, change in changes.items():
            database.execute(f"UPDATE sessions SET {change} WHERE id='{session}'")
        database.commit()
    sessions, _problems = read(home / "state.db")
    person = SessionOwner(profile="work", platform="telegram", chat="70", user="7")
    own = SessionOwner(profile="work")
    nobody = [SessionOwner(profile="work", platform=platform) for platform in ("subagent", "irc")]
    assert [session.owner for session in sessions] == [own, person, person, person, *nobody]
    export = tmp_path / "export.jsonl"
    message = {"role": "user", "content": "hello there"}
    facts = {"source": "slack", "started_at": 1.0, "parent_session_id": None, "messages": [message]}
    rows = [facts | {"id": "a", "user_id": "U1"}, facts | {"id": "b", "source": "subagent", "parent_session_id": "a"}]
    export.write_text("".join(json.dumps(row | {"profile_name": "home"}) + "\n" for row in rows))
    expected = SessionOwner(profile="home", platform="slack", user="U1")
    assert [session.owner for session in hermes_export.read(Source(export), judge)] == [expected] * 2


def test_compaction_in_place_counts_everything_once(path: Path, database: sqlite3.Connection) -> None:
    for table in (SESSIONS, MESSAGES):
        database.execute(table)
    database.execute("INSERT INTO sessions (id, source, started_at) VALUES ('s', 'cli', 1.0)")
    long = "Please look through the whole of the garden shed and count"
    old = {"active": 0, "compacted": 1}
    add(database, "s", "user", long, **old)
    add(database, "s", "assistant", "", tool_calls=calls_json("a", "b"), **old)
    add(database, "s", "tool", "one", tool_call_id="a", **old)
    add(database, "s", "tool", "two", tool_call_id="b", **old)
    add(database, "s", "user", "yes", timestamp=2.0, **old)
    add(database, "s", "user", "taken back", active=0, compacted=0)
    add(database, "s", "user", long, timestamp=5.0)
    add(database, "s", "user", "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns ...", timestamp=5.0)
    add(database, "s", "assistant", "", tool_calls=calls_json("b"), timestamp=5.0)
    add(database, "s", "tool", "[old output cleared]", tool_call_id="b", timestamp=5.0)
    add(database, "s", "user", "yes", timestamp=6.0)
    add(database, "s", "assistant", "", tool_calls=calls_json("a", command="pwd"), timestamp=7.0)  # an id used again
    add(database, "s", "tool", "three", tool_call_id="a", timestamp=7.0)
    database.commit()
    (session,), problems = read(path)
    assert problems == []
    assert [m.text for m in steps(session, Message)] == [long, "yes", "yes"]
    assert [c.call_id for c in steps(session, ToolCall)] == ["a", "b", "a"]
    assert [r.text for r in steps(session, ToolResult)] == ["one", "two", "three"]
    assert all(r.outcome.status == "ok" for r in steps(session, ToolResult))


def test_ids_used_in_every_turn_are_no_copies(path: Path, database: sqlite3.Connection) -> None:
    fill(database, 1)
    for text in ("again", "and again"):
        add(database, "s0", "assistant", "", tool_calls=calls_json("c0"))
        add(database, "s0", "tool", text, tool_call_id="c0")
    database.commit()
    (session,), _ = read(path)
    assert len(steps(session, ToolCall)) == len(steps(session, ToolResult)) == 3


def test_contents_of_every_kind(path: Path, database: sqlite3.Connection) -> None:
    fill(database, 1)
    add(database, "s0", "user", '\x00json:[{"type": "text", "text": "See this"}, {"type": "image_url"}]')
    add(database, "s0", "user", "\x00json:[broken")
    add(database, "s0", "session_meta", '{"tools": []}')
    add(database, "s0", "wizard", "abracadabra")
    add(database, "s0", "user", b"bytes \xff here")
    add(database, "s0", "assistant", None, tool_calls="no json")
    add(database, "s0", "assistant", 42, tool_calls="[5, {}]", timestamp="soon")
    add(database, "s0", "tool", None, tool_call_id="nobody's")
    database.execute(
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s0', 'user', CAST(x'61ff62' AS TEXT), 2)"
    )
    database.commit()
    (session,), problems = read(path)
    texts = [m.text for m in steps(session, Message)][2:]
    assert texts == ["See this\n[image_url]", "[broken", "bytes � here", "42", "a�b"]
    assert steps(session, ToolResult)[-1].outcome == UNKNOWN
    assert any("not JSON" in problem for problem in problems)


def test_columns_that_are_not_there(path: Path, database: sqlite3.Connection) -> None:
    database.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT)")
    database.execute(
        "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id, role, content, tool_calls, tool_call_id)"
    )
    database.execute("INSERT INTO sessions VALUES ('old', 'cli')")
    for role, content, calls, call in (
        ("user", "Hi", None, None),
        ("assistant", "", calls_json("k"), None),
        ("tool", "ok", None, "k"),
    ):
        database.execute(
            "INSERT INTO messages (session_id, role, content, tool_calls, tool_call_id) VALUES ('old', ?, ?, ?, ?)",
            (role, content, calls, call),
        )
    database.commit()
    (session,), problems = read(path)
    assert problems == [] and len(session.steps) == 3 and session.started is None


@pytest.mark.parametrize(
    "tables",
    [
        (),
        ("CREATE TABLE sessions (id)", "CREATE TABLE message (id)"),
        ("CREATE TABLE sessions (id)", "CREATE TABLE messages (id, body)"),
    ],
)
def test_other_databases_are_not_claimed(path: Path, database: sqlite3.Connection, tables: tuple[str, ...]) -> None:
    for table in tables or ("CREATE TABLE t (x)",):
        database.execute(table)
    database.commit()
    assert not hermes_db.sniff(Source(path).head)


def fingerprint(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()}


def test_reading_leaves_no_trace(tmp_path: Path) -> None:
    live = tmp_path / "live"
    live.mkdir()
    with closing(sqlite3.connect(live / "state.db")) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        fill(writer)
        before = fingerprint(live)
        assert {"state.db-wal", "state.db-shm"} < before.keys()
        copied = tmp_path / "copied"  # the log without its index, as a backup has it
        copied.mkdir()
        for name in ("state.db", "state.db-wal"):
            shutil.copy(live / name, copied / name)
        for folder in (live, copied):
            kept = fingerprint(folder)
            sessions, problems = read(folder / "state.db")
            assert len(sessions) == 2 and problems == []
            assert fingerprint(folder) == kept
        add(writer, "s0", "user", "one more")
        writer.commit()
        assert len(read(live / "state.db")[0][0].steps) == 5
    kept = fingerprint(live)
    assert kept.keys() == {"state.db"}
    assert len(read(live / "state.db")[0]) == 2
    assert fingerprint(live) == kept


@pytest.mark.slow
def test_a_locked_database_is_reported(path: Path, database: sqlite3.Connection) -> None:
    fill(database)
    lock = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN EXCLUSIVE'); print('held', flush=True); input()"
    holder = subprocess.Popen(  # a lock counts only between processes
        [sys.executable, "-c", lock, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        sessions, problems = read(path)
        holder.communicate(b"\n")
    assert sessions == [] and len(problems) == 1 and "locked" in problems[0]
    assert len(read(path)[0]) == 2


@pytest.mark.parametrize("part", [0.3, 0.5, 0.8, 0.99])
def test_half_a_database_gives_what_it_holds(path: Path, database: sqlite3.Connection, part: float) -> None:
    fill(database, 60, padding=20_000)
    database.close()
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    sessions, problems = read(path)
    assert problems and len(sessions) >= int(60 * part) - 6
    whole = [s for s in sessions if len(s.steps) == 4]
    assert whole and whole[0].task == "Question 0"


def test_damage_in_the_middle(path: Path, database: sqlite3.Connection) -> None:
    fill(database, 60, padding=20_000)
    database.close()
    data = bytearray(path.read_bytes())
    half = len(data) // 2
    data[half : half + 40_000] = b"\xa5" * 40_000
    path.write_bytes(data)
    sessions, _ = read(path)
    assert len(sessions) >= 50


@pytest.mark.parametrize("size", [16, 100, 4096])
def test_a_file_that_only_begins_like_a_database(path: Path, size: int) -> None:
    path.write_bytes(b"SQLite format 3\x00".ljust(size, b"\x07"))
    source = Source(path)
    assert not hermes_db.sniff(source.head)
    assert list(hermes_db.read(source, judge)) == [] and source.problems


# ---- exports and trajectories ----


def exported(path: Path) -> tuple[list[Session], list[str]]:
    source = Source(path)
    assert hermes_export.sniff(source.head) and not openai_chat.sniff(source.head)
    return list(hermes_export.read(source, judge)), [problem.reason for problem in source.problems]


def test_export_in_lines_and_cut_off(tmp_path: Path) -> None:
    text = (DATA / "hermes_export" / "case.jsonl").read_text()
    path = tmp_path / "export.jsonl"
    path.write_text(text[:-40])
    sessions, problems = exported(path)
    assert len(sessions) == 1 and len(problems) == 1
    path.write_text(text.replace("0.004", "NaN"))
    sessions, problems = exported(path)
    assert len(sessions) == 2 and problems == []
    assert sessions[0].usage is not None and sessions[0].usage.cost is None


def test_snapshot_of_one_session(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    snapshot = {
        "session_id": "one",
        "session_start": "2026-03-01T09:00:00Z",
        "last_updated": "2026-03-01T09:01:00Z",
        "platform": "cli",
        "messages": [{"role": "user", "content": "Hi"}, {"role": "session_meta"}, {"role": "tool", "content": None}],
    }
    path.write_text(json.dumps(snapshot, indent=2))
    (session,), problems = exported(path)
    assert (session.id, session.started, session.ended) == ("one", 1772355600.0, 1772355660.0)
    assert len(session.steps) == 2 and problems == []


def test_trajectories_of_odd_shapes(tmp_path: Path) -> None:
    talk: list[Any] = [
        {"from": "human", "value": "Go"},
        {"from": "gpt", "value": '<tool_call>{"name": "a", "arguments": "{\\"x\\": 1}"}'},
        {"from": "tool", "value": "plain"},
        {"from": "function_call", "value": '{"name": "b", "arguments": {}}'},
        {"from": "observation", "value": "seen"},
        {"from": "gpt", "value": None},
        7,
        {"from": None, "value": "?"},
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps([{"conversations": talk}, {"conversations": None}, {"conversations": []}], indent=1))
    source = Source(path)
    assert sharegpt.sniff(source.head)
    (session,) = sharegpt.read(source, judge)
    assert [(c.tool, c.arguments) for c in steps(session, ToolCall)] == [("a", {"x": 1}), ("b", {})]
    assert [r.text for r in steps(session, ToolResult)] == ["plain", "seen"]
    assert all(r.outcome.status == "ok" for r in steps(session, ToolResult))


# ---- the corpus ----


@pytest.fixture
def corpus() -> Path:
    if not (CORPUS / "hermes").exists():
        pytest.skip(NO_CORPUS)
    return CORPUS / "hermes"


def test_corpus_database_and_export(corpus: Path) -> None:
    sessions, problems = read(corpus / "state.db")
    again, more_problems = exported(corpus / "export.jsonl")
    labels = json.loads((corpus / "labels.json").read_text())
    assert problems == more_problems == []
    assert {s.id: s.steps for s in sessions} == {s.id: s.steps for s in again}
    with closing(sqlite3.connect(f"file:{corpus / 'state.db'}?immutable=1", uri=True)) as plain:
        names = [name for (name,) in plain.execute("SELECT id FROM sessions")]
        rows = plain.execute("SELECT session_id, role, content, tool_calls FROM messages ORDER BY id").fetchall()
    assert sorted(s.id for s in sessions) == sorted(names)
    for session in sessions:
        own = [row for row in rows if row[0] == session.id]
        assert session.label is (labels[session.id] == 1.0)
        assert [c.call_id for c in steps(session, ToolCall)] == [c["id"] for r in own if r[3] for c in json.loads(r[3])]
        assert len(steps(session, ToolResult)) == sum(row[1] == "tool" for row in own)
        assert len(steps(session, Message)) == sum(row[1] != "tool" and bool((row[2] or "").strip()) for row in own)


def test_corpus_trajectories(corpus: Path) -> None:
    path = corpus / "trajectory_samples.jsonl"
    source = Source(path)
    assert sharegpt.sniff(source.head) and not openai_chat.sniff(source.head)
    sessions = list(sharegpt.read(source, judge))
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    assert source.problems == [] and len(sessions) == len(runs) == len({s.id for s in sessions})
    for session, run in zip(sessions, runs, strict=True):
        answers = [t["value"] for t in run["conversations"] if t["from"] == "gpt"]
        assert len(steps(session, ToolCall)) == sum(text.count("<tool_call>") for text in answers)
        results = [t["value"] for t in run["conversations"] if t["from"] == "tool"]
        assert len(steps(session, ToolResult)) == sum(text.count("<tool_response>") for text in results)
        assert all(r.outcome.status == "ok" for r in steps(session, ToolResult))


def test_the_trace_is_claude_codes(corpus: Path) -> None:
    head = Source(corpus / "trace_claude_code.jsonl").head
    assert claude_code.sniff(head)
    assert not any(m.sniff(head) for m in (hermes_db, hermes_export, sharegpt, openai_chat))
