"""Databases of Hermes and OpenCode, as tests fill them."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from places import DATA

SESSIONS = """CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, model TEXT, parent_session_id TEXT,
  started_at REAL NOT NULL, ended_at REAL, end_reason TEXT, input_tokens INTEGER DEFAULT 0,
  output_tokens INTEGER DEFAULT 0, cache_read_tokens INTEGER DEFAULT 0, cache_write_tokens INTEGER DEFAULT 0,
  reasoning_tokens INTEGER DEFAULT 0, cwd TEXT, git_repo_root TEXT, estimated_cost_usd REAL, actual_cost_usd REAL)"""
MESSAGES = """CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL,
  content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL,
  active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0)"""
INDEX = "CREATE INDEX idx_messages_session ON messages(session_id, timestamp)"
CASE = DATA / "opencode_export" / "case.json"
TABLES = (
    "CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT NOT NULL, time_created INTEGER)",
    "CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER, data TEXT NOT NULL)",
    "CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL, data TEXT NOT NULL)",
    "CREATE INDEX message_session ON message (session_id, time_created, id)",
    "CREATE INDEX part_message ON part (message_id, id)",
)


def calls_json(*ids: str, name: str = "terminal", command: str = "ls") -> str:
    arguments = json.dumps({"command": command})
    return json.dumps([{"id": i, "type": "function", "function": {"name": name, "arguments": arguments}} for i in ids])


def add(database: sqlite3.Connection, session: str, role: str, content: Any, **fields: Any) -> None:
    row = {"session_id": session, "role": role, "content": content, "timestamp": 1.0, **fields}
    names = ", ".join(row)
    database.execute(f"INSERT INTO messages ({names}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))


def fill(database: sqlite3.Connection, count: int = 2, padding: int = 0) -> None:
    for table in (SESSIONS, MESSAGES, INDEX):
        database.execute(table)
    for n in range(count):
        name = f"s{n}"
        database.execute(
            "INSERT INTO sessions (id, source, model, started_at) VALUES (?, 'cli', 'qwen3', ?)", (name, 10.0 + n)
        )
        add(database, name, "user", f"Question {n}", timestamp=11.0 + n)
        add(database, name, "assistant", None, tool_calls=calls_json(f"c{n}"))
        add(database, name, "tool", json.dumps({"output": "x" * padding, "exit_code": 0}), tool_call_id=f"c{n}")
        add(database, name, "assistant", "Done.")
    database.commit()


def add_session(database: sqlite3.Connection, name: str, parent: str | None = None, padding: int = 0) -> None:
    """Store the session of the fixture under another name."""
    case = json.loads(CASE.read_text())
    database.execute("INSERT INTO session VALUES (?, ?, '/srv/harbour', 1790000000000)", (name, parent))
    for number, message in enumerate(case["messages"]):
        identifier = f"msg_{name}_{number}"
        row = (identifier, name, number, json.dumps(message["info"]))
        database.execute("INSERT INTO message VALUES (?, ?, ?, ?)", row)
        for place, part in enumerate(message["parts"]):
            if part.get("state", {}).get("status") == "completed":
                part["state"]["output"] += "x" * padding
            data = (f"prt_{name}_{number}_{place:02}", identifier, name, json.dumps(part))
            database.execute("INSERT INTO part VALUES (?, ?, ?, ?)", data)
    database.commit()
