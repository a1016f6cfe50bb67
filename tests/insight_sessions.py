"""Small sessions for insights, whose right answer is known by hand."""

from __future__ import annotations

from typing import Any

from warmstart.model import Outcome, PastCall, PastSession

MONDAY = 1_790_553_600.0  # 2026-09-28, a Monday
OK, ERROR = Outcome("ok", "flag"), Outcome("error", "flag", "arguments")


def call(tool: str = "Read", arguments: Any = None, said: str | None = None, **facts: Any) -> dict[str, Any]:
    """Return the fields of a call; with a `said` message it failed."""
    given = {"path": "/src/a.py"} if arguments is None else arguments
    outcome = OK if said is None else ERROR
    return {"tool": tool, "arguments": given, "excerpt": said or "fine", "outcome": outcome} | facts


def session(
    *calls: dict[str, Any], key: str = "k", timed: bool = True, turns: int | None = None, **facts: Any
) -> PastSession:
    """Return a session: each call in a turn of its own, a minute apart, answered after ten seconds."""
    past = []
    for at, fields in enumerate(calls):
        times = {"at": MONDAY + 60 * at, "answered": MONDAY + 60 * at + 10} if timed else {}
        past.append(PastCall(**({"ordinal": at, "call_id": f"{key}-{at}", "turn": at + 1} | times | fields)))
    given = {
        "id": key,
        "agent": "codex",
        "category": "coding",
        "task_type": "code",
        "verdict": "unknown",
        "quality": 0.5,
    }
    last = turns if turns is not None else len(calls)
    return PastSession(**(given | {"key": key, "calls": tuple(past), "turns": last, "started": MONDAY} | facts))


def many(count: int, *calls: dict[str, Any], **facts: Any) -> list[PastSession]:
    """Return equal sessions under different keys."""
    return [session(*calls, key=f"k{number:03}", **facts) for number in range(count)]


FAIL = call(said="File does not exist.")
GOOD = call()

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\x1b[31mred\x07\x00",
    "‮gnp.exe",
    "x" * 10_000,
    "a\nb\tc\u2028d",
    "שלום עולם",
    "]]><!--",
    "'; rm -rf ~ #",
)
