"""Small stored sessions of one project, for mining notes."""

from __future__ import annotations

from typing import Any

from warmstart.model import Outcome, PastCall, PastSession
from warmstart.notes.digest import digest_session
from warmstart.notes.mine import ProjectHistory
from warmstart.notes.types import Note

ROOT = "/home/dev/shop"
DAY = 86_400.0
START = 1_790_553_600.0


def ok(tool: str, arguments: dict[str, Any], result: str = "fine", **facts: Any) -> dict[str, Any]:
    """Return the fields of a call that worked."""
    return {"tool": tool, "arguments": arguments, "excerpt": result, "outcome": Outcome("ok", "flag")} | facts


def failed(tool: str, arguments: dict[str, Any], result: str, *findings: str, **facts: Any) -> dict[str, Any]:
    """Return the fields of a call that failed with this message."""
    outcome = Outcome("error", "flag", "other", findings=findings)
    return {"tool": tool, "arguments": arguments, "excerpt": result, "outcome": outcome} | facts


def bash(command: str, error: str | None = None, *findings: str) -> dict[str, Any]:
    """Return a shell call; with a message it failed."""
    arguments = {"command": command}
    return ok("Bash", arguments) if error is None else failed("Bash", arguments, error, *findings)


def read(path: str, error: str | None = None) -> dict[str, Any]:
    """Return a Read of a file in the project; with a message it failed."""
    arguments = {"file_path": f"{ROOT}/{path}"}
    return ok("Read", arguments) if error is None else failed("Read", arguments, error)


def past(number: int, *calls: dict[str, Any], **facts: Any) -> PastSession:
    """Return the numbered session of the project, a day after the one before."""
    given = {
        "key": f"key-{number}",
        "id": f"session-{number}",
        "agent": "claude-code",
        "category": "coding",
        "task_type": "code",
        "verdict": "unknown",
        "quality": 0.5,
        "project": "shop",
        "folder": ROOT,
        "root": ROOT,
        "started": START + number * DAY,
        "ended": START + number * DAY + 60,
    }
    made = tuple(
        PastCall(**({"ordinal": at, "call_id": f"toolu_{number:06}_{at:06}"} | fields))
        for at, fields in enumerate(calls)
    )
    return PastSession(**(given | {"calls": made} | facts))


def history(*sessions: PastSession) -> ProjectHistory:
    """Return the history of these sessions."""
    added = ProjectHistory("shop")
    for session in sessions:
        added.add(digest_session(session))
    return added


def notes_of(*sessions: PastSession, kind: str | None = None) -> list[Note]:
    """Return the notes of these sessions."""
    return [note for note in history(*sessions).make_notes() if kind in (None, note.kind)]
