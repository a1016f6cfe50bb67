"""Twelve scopes, each with a canary in what its sessions read, ran and wanted, and in a template's name.

Ten live in databases of Hermes (three profiles; people and chats of two gateways; projects), two in Claude Code.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from transcripts import work_lines, write_jsonl
from warmstart.model import SessionOwner
from warmstart.pipeline import Warmstart
from warmstart.scopes import ScopeNamer

TASK = "Count the open orders of the shop in the ledger"
TIMES = 3  # sessions per place


class Place(NamedTuple):
    """One of the twelve: whose session it is and where it runs."""

    canary: str
    profile: str = ""
    platform: str = ""
    chat: str = ""
    user: str = ""
    project: str = ""
    agent: str = "hermes"

    def find_home(self, root: Path) -> Path:
        """Return Hermes' home of this place's profile."""
        return root / ".hermes" / "profiles" / self.profile if self.profile else root / ".hermes"

    def name_scope(self, ws: Warmstart) -> str:
        owner = SessionOwner(profile=self.profile, platform=self.platform, chat=self.chat, user=self.user)
        return ScopeNamer(ws.settings.home).name(owner, "")

    @property
    def is_own(self) -> bool:
        """Whether it is the machine's own user in the default profile."""
        return not self.profile and not self.platform


PLACES = (
    Place("amberfinch", project="/srv/alpha"),
    Place("brassotter", project="/srv/beta"),
    Place("coralmoose", profile="work", project="/srv/alpha"),
    Place("dustyheron", profile="work", project="/srv/beta"),
    Place("ebonylynx", profile="family"),
    Place("flintraven", platform="telegram", chat="900100", user="900100"),
    Place("gildedtoad", platform="telegram", chat="900200", user="900200"),
    Place("hazelswift", platform="telegram", chat="-500777", user="900100"),
    Place("ivorymarten", platform="slack", chat="C900100", user="U1"),
    Place("jadebadger", profile="work", platform="telegram", chat="900100", user="900100"),
    Place("khakiwren", project="/srv/gamma", agent="claude-code"),
    Place("linengecko", project="/srv/delta", agent="claude-code"),
)


def build_world(ws: Warmstart, root: Path) -> None:
    """Write the transcripts of all places, ingest and learn."""
    for place in PLACES:
        if place.agent == "hermes":
            _write_hermes(place, root)
        else:
            _write_claude(place, root)
    databases = sorted(root.rglob("state.db"))
    report = ws.ingest(*databases, root / "claude")
    assert report.new == TIMES * len(PLACES) and not report.problems
    ws.learn()


def list_commands(place: Place) -> tuple[str, str]:
    return f"ledger count open {place.canary}.csv", f"ledger notes {place.canary}-notes.txt"


def find_missing(place: Place) -> str:
    """Return a command of this place's sessions that fails every time."""
    return f"cat {place.canary}.txt"


def complain(place: Place) -> str:
    """Return the message of that command."""
    return f"cat: {place.canary}.txt: No such file or directory"


def ask_for(place: Place) -> str:
    """Return the request of this place's sessions."""
    return f"{TASK} for {place.canary}"


def _write_claude(place: Place, root: Path) -> None:
    calls = [
        ("Bash", {"command": line}, f"17 rows; the {place.canary} salary is 91000") for line in list_commands(place)
    ]
    missing = ("Bash", {"command": find_missing(place)}, f"Exit code 1\n{complain(place)}")
    for number in range(TIMES):
        lines = work_lines(
            f"{place.canary}-{number}", *calls, missing, task=ask_for(place), cwd=place.project, day=number + 1
        )
        lines[-1]["message"]["content"][0]["is_error"] = True
        write_jsonl(root / "claude" / f"{place.canary}-{number}.jsonl", lines)


def _write_hermes(place: Place, root: Path) -> None:
    home = place.find_home(root)
    home.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(home / "state.db")) as database:
        database.execute(
            "CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, source TEXT, user_id TEXT, chat_id TEXT,"
            " parent_session_id TEXT, started_at REAL, cwd TEXT, profile_name TEXT)"
        )
        database.execute(
            "CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT,"
            " tool_call_id TEXT, tool_calls TEXT, timestamp REAL, active INTEGER DEFAULT 1)"
        )
        for number in range(TIMES):
            _add_session(database, place, number)
        database.commit()


def _add_session(database: sqlite3.Connection, place: Place, number: int) -> None:
    session = f"{place.canary}-{number}"
    facts = (session, place.platform or "cli", place.user or None, place.chat or None, None, 1e9 + 86_400 * number)
    database.execute("INSERT INTO sessions VALUES (?,?,?,?,?,?,?,?)", (*facts, place.project or None, place.profile))
    rows: list[tuple[str, str, str | None, str | None]] = [("user", ask_for(place), None, None)]
    for step, line in enumerate((*list_commands(place), find_missing(place))):
        call = {"id": f"{session}-{step}", "type": "function"}
        call |= {"function": {"name": "terminal", "arguments": json.dumps({"command": line})}}
        rows.append(("assistant", f"I look at the ledger of {place.canary}.", None, json.dumps([call])))
        output = f"17 rows; the {place.canary} salary is 91000"
        result = {"output": output, "exit_code": 0, "error": None}
        if line == find_missing(place):
            result |= {"output": complain(place), "exit_code": 1}
        rows.append(("tool", json.dumps(result), str(call["id"]), None))
    rows.append(("assistant", "There are 17.", None, None))
    database.executemany(
        "INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, timestamp) VALUES (?,?,?,?,?,?)",
        [(session, *row, 1e9 + 86_400 * number + at) for at, row in enumerate(rows)],
    )
