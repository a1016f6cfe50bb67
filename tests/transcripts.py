"""Transcripts of Claude Code sessions, made for tests."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from warmstart.pipeline import Warmstart

Call = tuple[Any, ...]  # tool, arguments, result, and perhaps an id
TEST: Call = ("Bash", {"command": "uv run pytest -q tests/test_cart.py"}, "3 passed in 0.12s")
CART: tuple[Call, ...] = (
    ("Read", {"file_path": "/home/dev/shop/cart.py"}, "1 def total(): ..."),
    TEST,
    ("Edit", {"file_path": "/home/dev/shop/cart.py", "old_string": "a", "new_string": "b"}, "updated"),
)


def claude_lines(session: str = "s-1", calls: int = 2, text: str = "fine", **facts: Any) -> list[dict[str, Any]]:
    """Return the lines of a small Claude Code session."""
    common = {
        "sessionId": session,
        "cwd": "/home/dev/shop",
        "version": "2.1.0",
        "timestamp": "2026-10-01T10:00:00.000Z",
    } | facts
    lines = [common | {"type": "user", "uuid": f"{session}-u", "message": {"role": "user", "content": "do it"}}]
    for n in range(calls):
        use = {"type": "tool_use", "id": f"toolu_{session}_{n}", "name": "Bash", "input": {"command": f"echo {n}"}}
        answer = {"type": "tool_result", "tool_use_id": use["id"], "content": f"{text} {n}"}
        message = {"id": f"m{n}", "role": "assistant", "model": "m", "content": [use]}
        lines.append(common | {"type": "assistant", "uuid": f"{session}-a{n}", "message": message})
        lines.append(
            common | {"type": "user", "uuid": f"{session}-r{n}", "message": {"role": "user", "content": [answer]}}
        )
    return lines


def write_jsonl(path: Path, lines: list[dict[str, Any]]) -> Path:
    """Write one JSON value per line and return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def write_now(shift: float = 0.0) -> str:
    """Return the present, shifted by some seconds, as transcripts write it."""
    return (datetime.now(UTC) + timedelta(seconds=shift)).isoformat().replace("+00:00", "Z")


def outcome_lines(session: str, outcomes: list[bool], **facts: Any) -> list[dict[str, Any]]:
    """Return a Claude Code session of now whose calls had these outcomes: it can close a trial that began before."""
    lines = claude_lines(session, calls=len(outcomes), **({"timestamp": write_now()} | facts))
    results = [line for line in lines if isinstance(line["message"]["content"], list) and line["type"] == "user"]
    for line, worked in zip(results, outcomes, strict=True):
        if not worked:
            line["message"]["content"][0] |= {"is_error": True, "content": "Exit code 1\nboom"}
    return lines


def work_lines(
    session: str, *calls: Call, task: str = "fix the failing cart tests", cwd: str = "/home/dev/shop", day: int = 1
) -> list[dict[str, Any]]:
    """Return a Claude Code session of these calls."""
    common = {"sessionId": session, "cwd": cwd, "version": "2.1.0"}
    steps: list[tuple[str, dict[str, Any]]] = [("user", {"role": "user", "content": task})]
    for n, (tool, arguments, result, *own) in enumerate(calls):
        id_ = own[0] if own else f"toolu_{session}_{n}"
        use = {"type": "tool_use", "id": id_, "name": tool, "input": arguments}
        answer = {"type": "tool_result", "tool_use_id": id_, "content": result}
        steps.append(("assistant", {"id": f"m{n}", "role": "assistant", "model": "m", "content": [use]}))
        steps.append(("user", {"role": "user", "content": [answer]}))
    return [
        common
        | {"type": kind, "uuid": f"{session}-{n}", "message": message}
        | {"timestamp": f"2026-10-{day:02}T10:{n // 60:02}:{n % 60:02}.000Z"}
        for n, (kind, message) in enumerate(steps)
    ]


def teach(ws: Warmstart, *sessions: list[dict[str, Any]], folder: str = "in") -> None:
    """Write transcripts beside the home and ingest them."""
    place = ws.settings.home.parent / folder
    for lines in sessions:
        write_jsonl(place / f"{lines[0]['sessionId']}.jsonl", lines)
    ws.ingest(place)


def cart_sessions(number: int, first: int = 0) -> list[list[dict[str, Any]]]:
    """Return sessions that fix the cart tests, a day apart."""
    return [work_lines(f"cart-{n}", *CART, day=n + 1) for n in range(first, first + number)]


GITHUB = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
