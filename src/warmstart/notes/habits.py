"""How a project runs its checks: the usual command for each purpose, and the commands that take minutes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from statistics import median

from warmstart.notes.counts import Habit
from warmstart.notes.types import Note

SLOW = 120.0  # seconds
_PURPOSES = (
    ("type check", re.compile(r"type-?check|\btsc\b|mypy|pyright", re.I)),
    ("lint", re.compile(r"lint|clippy|vet\b|ruff|flake8|check(?!out)", re.I)),
    ("format", re.compile(r"fmt|format|prettier|black\b", re.I)),
    ("build", re.compile(r"build|compile|\bmake\b", re.I)),
    ("test", re.compile(r"test|spec\b|pytest|jest|vitest|verify", re.I)),
)


def find_habits(habits: Mapping[str, Habit], sessions: int) -> list[Note]:
    """Return a note for the usual command of each purpose, and one for each slow command."""
    best: dict[str, str] = {}
    for form in sorted(habits, key=lambda form: (-len(habits[form].sessions), habits[form].failed, form)):
        purpose = name_purpose(form)
        if purpose and len(habits[form].sessions) >= 2 and habits[form].worked > habits[form].failed:
            best.setdefault(purpose, form)
    notes = [_make_note("works", purpose, form, habits[form], sessions) for purpose, form in sorted(best.items())]
    slow = [
        form
        for form, habit in habits.items()
        if len(habit.sessions) >= 2 and sum(habit.seconds.values()) >= 2 and _find_median(habit.seconds) >= SLOW
    ]
    return [*notes, *(_make_note("slow", form, form, habits[form], sessions) for form in sorted(slow))]


def _make_note(kind: str, subject: str, form: str, habit: Habit, sessions: int) -> Note:
    length = f", {_state_seconds(_find_median(habit.seconds))}" if habit.seconds else ""
    passed = f"{habit.worked} of {habit.worked + habit.failed} passed"
    is_slow = kind == "slow"
    return Note(
        id="",
        project="",
        kind="slow" if is_slow else "works",
        subject=subject,
        key=f"{kind}:{subject}",
        trigger=f"run:{form}" if is_slow else "",
        text=f"`{form}` takes long ({passed}{length})" if is_slow else f"{subject}: `{form}` ({passed}{length})",
        fix="" if is_slow else form,
        support=len(habit.sessions),
        against=habit.worked,
        failures=habit.failed,
        first_seen=habit.first_seen,
        last_seen=habit.last_seen,
        rate=min(1.0, len(habit.sessions) / max(sessions, 1)) * (0.5 if is_slow else 0.2),
    )


def _find_median(seconds: Mapping[float, int]) -> float:
    return median(length for length, times in seconds.items() for _ in range(times))


def name_purpose(form: str) -> str | None:
    """Return what a command is for; None where it is none of the usual purposes."""
    return next((purpose for purpose, pattern in _PURPOSES if pattern.search(form)), None)


def _state_seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
