"""Run the real Hermes against a scripted provider, and look at the results."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import warmstart
from hermes.scripted_server import Answer, Call, Request, ScriptedServer, rounds_since_user
from places import AUTHORITY
from warmstart import Warmstart, config
from warmstart.dialects.compose import EXAMPLE_MARK
from warmstart.model import Measures
from warmstart.store import TrialRow, TrialStore

FULL = os.environ.get("WARMSTART_FULL") == "1"
variant = pytest.mark.skipif(not FULL, reason="a variant of another test, ten seconds of Hermes each: WARMSTART_FULL=1")
_ENDLESS = 600.0  # seconds; on a busy machine Hermes alone takes a minute to start

TASK = "Count the open orders in orders.csv"
REVIEW_QUESTION = "This is a review in the background"

CONFIG = """
model: {{default: scripted, provider: custom, base_url: "{url}/v1", api_key: none, context_length: 200000}}
security: {{allow_lazy_installs: false}}
plugins: {{enabled: [{plugins}]}}
auxiliary: {{title_generation: {{enabled: false}}}}
compression: {{enabled: true}}
"""


class Hermes:
    """One sealed Hermes home."""

    def __init__(self, venv: Path, root: Path, server: ScriptedServer) -> None:
        self.venv = venv
        self.root = root
        self.server = server
        self.home = root / ".hermes"
        self.work = root / "work"
        self.warm_home = root / "warmstart"
        self.environ = {
            "PATH": f"{sys.base_prefix}/bin{os.pathsep}{os.environ['PATH']}",  # Hermes runs python3, which may be a slow shim
            "SSL_CERT_FILE": str(AUTHORITY),
            "HOME": str(root),
            "HERMES_HOME": str(self.home),
            "HERMES_DISABLE_LAZY_INSTALLS": "1",
            "WARMSTART_HOME": str(self.warm_home),
            "WARMSTART_HOLDOUT": "0",
            "TERM": "dumb",
            "NO_COLOR": "1",
        }
        for folder in (self.home, self.work):
            folder.mkdir()
        self.configure()

    def configure(self, *plugins: str) -> None:
        text = CONFIG.format(url=self.server.url, plugins=", ".join(plugins or ("warmstart",)))
        (self.home / "config.yaml").write_text(text)

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return self._run([str(self.venv / "bin" / "hermes"), *arguments], environ)

    def script(self, path: Path, *arguments: str, **environ: str) -> Any:
        """Run a Python file in Hermes' venv; return the JSON on its last line of output."""
        done = self._run([str(self.venv / "bin" / "python"), str(path), *arguments], environ)
        return json.loads(done.stdout.strip().splitlines()[-1])

    def _run(self, command: list[str], environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command,
            env=self.environ | environ,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ENDLESS,
            check=False,
        )
        assert done.returncode == 0, f"{command} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done

    def open(self) -> Warmstart:
        return Warmstart(config.load(environ=self.environ))

    def trials(self) -> list[TrialRow]:
        with self.open() as ws:
            return sorted(TrialStore(ws.store).recent_trials(100), key=lambda trial: trial.at)

    def wait_closed(self, session: str, *, calls: int, errors: int, judged: int) -> Measures:
        """Wait until the processes that Hermes left behind have closed the trial with these counts."""
        deadline = time.monotonic() + _ENDLESS / 5
        measures, wanted = None, (calls, errors, judged)
        with self.open() as ws:
            while time.monotonic() < deadline:
                measures = _measure(ws, session)
                if measures and wanted == (measures.all_calls, measures.all_errors, measures.all_judged):
                    return measures
                time.sleep(0.1)
        raise AssertionError(f"the trial of {session} was not closed as expected, but with {measures}")

    def measures(self, session: str) -> Measures | None:
        with self.open() as ws:
            return _measure(ws, session)

    def notes(self) -> list[dict[str, Any]]:
        path = self.warm_home / "hermes" / "not-seeded.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        uri = f"{(self.home / 'state.db').as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as database:
            return database.execute(query, values).fetchall()


def _measure(ws: Warmstart, session: str) -> Measures | None:
    trial = TrialStore(ws.store).trial(session)
    assert trial is not None, f"no trial for {session}"
    return ws.experiments.measures(trial)


def answer_in_turn(*answers: Answer) -> Callable[[dict[str, Any]], Answer]:
    """Return a script for turns: the first answer, and the next one after each round of tools.

    It keeps no state: Hermes may have a second conversation under way in a thread, its own review of the session.
    """

    def script(body: dict[str, Any]) -> Answer:
        if not body.get("tools"):
            return Answer("A title")
        answer = answers[min(rounds_since_user(body), len(answers) - 1)]
        return Answer(answer.text, [Call(call.name, call.arguments) for call in answer.calls], answer.status)

    return script


# Requests


def seed_of(request: Request, field: str = "messages") -> list[dict[str, Any]]:
    """Return the messages of the seed, which must follow the system messages and occur once."""
    messages = request.body[field]
    at = 0
    while messages[at].get("role") in ("system", "developer"):
        at += 1
    marked = [n for n, message in enumerate(messages) if EXAMPLE_MARK in json.dumps(message)]
    if not marked:
        return []
    assert marked[0] == at, "the seed does not follow the system messages"
    asked = [n for n, message in enumerate(messages) if TASK in json.dumps(message)]
    end = next(n for n in asked if n > marked[-1])
    seed: list[dict[str, Any]] = messages[at:end]
    assert json.dumps(messages).count(json.dumps(seed)[1:-1]) == 1, "the seed occurs twice"
    return seed


def prefix_bytes(request: Request, field: str = "messages") -> bytes:
    """Return the bytes on the wire up to the end of the seed."""
    last = json.dumps(seed_of(request, field)[-1], separators=(",", ":"), ensure_ascii=False).encode()
    at = request.raw.find(last)
    assert at > 0
    return request.raw[request.raw.find(f'"{field}"'.encode()) : at + len(last)]


def lint(request: Request, dialect: Any = "openai", field: str = "messages") -> list[Any]:
    return list(warmstart.lint(request.body[field], dialect))


# A past to learn from


def make_past(root: Path) -> Path:
    """Return a home that has read and learned from three sessions, in Hermes' own database, that counted orders."""
    database = root / "state.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, started_at REAL)")
        connection.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT,"
            " tool_call_id TEXT, tool_calls TEXT, timestamp REAL, active INTEGER DEFAULT 1)"
        )
        for n in range(3):
            _add_session(connection, f"20260101_00000{n}_abcdef", n)
        connection.commit()
    home = root / "home"
    with Warmstart(config.load(home, environ={"HOME": str(root)})) as ws:
        ws.ingest(database)
        learned = ws.learn()
    assert any(template.status == "active" for template in learned.templates), learned
    return home


def _add_session(connection: sqlite3.Connection, session: str, number: int) -> None:
    calls = [
        ("terminal", {"command": "grep -c open orders.csv"}, {"output": "17", "exit_code": 0, "error": None}),
        ("read_file", {"path": "orders.csv", "limit": 5}, {"content": "1|id,state\n2|1,open", "total_lines": 40}),
    ]
    connection.execute("INSERT INTO sessions VALUES (?, 'cli', 'scripted', ?)", (session, 1e9 + number))
    rows: list[tuple[Any, ...]] = [("user", f"Count the open orders in the file orders.csv, part {number}", None, None)]
    for n, (name, arguments, result) in enumerate(calls):
        call = {"id": f"c{number}_{n}", "type": "function"} | {
            "function": {"name": name, "arguments": json.dumps(arguments)}
        }
        rows.append(("assistant", "I look at the orders.", None, json.dumps([call])))
        rows.append(("tool", json.dumps(result), call["id"], None))
    rows += [("assistant", "There are 17 open orders.", None, None), ("user", "Thanks, that is right.", None, None)]
    connection.executemany(
        "INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, timestamp) VALUES (?,?,?,?,?,?)",
        [(session, *row, 1e9 + number * 100 + n) for n, row in enumerate(rows)],
    )
