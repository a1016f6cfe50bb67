"""Databases of Hermes, written without Hermes."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path


def write_weather_chats(database: Path, count: int) -> None:
    """Write a database of Hermes with later sessions, of Telegram, about the weather."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, started_at REAL, chat_id TEXT)"
        )
        connection.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT,"
            " tool_call_id TEXT, tool_calls TEXT, timestamp REAL, active INTEGER DEFAULT 1)"
        )
        for number in range(count):
            session, at = f"20260201_00000{number}_abcdef", 1.1e9 + number
            connection.execute("INSERT INTO sessions VALUES (?, 'telegram', 'scripted', ?, '7')", (session, at))
            function = {"name": "web_search", "arguments": '{"query": "weather in Lyon tomorrow"}'}
            calls = json.dumps([{"id": f"w{number}", "type": "function", "function": function}])
            result = '{"results": [{"title": "Sunny, 20 degrees", "url": "https://weather.example/lyon"}]}'
            connection.executemany(
                "INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, timestamp)"
                " VALUES (?,?,?,?,?,?)",
                [
                    (session, "user", "Look up the weather in Lyon", None, None, at),
                    (session, "assistant", "I look it up.", None, calls, at),
                    (session, "tool", result, f"w{number}", None, at),
                    (session, "assistant", "Sunny.", None, None, at),
                ],
            )
        connection.commit()
