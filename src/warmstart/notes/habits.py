"""How a project runs its checks: the usual command for each purpose, and the commands that take minutes."""

from __future__ import annotations

import re
from statistics import median

from msgspec import Struct, field

from warmstart.notes.digest import Digest
from warmstart.notes.types import Note

SLOW = 120.0  # seconds
_PURPOSES = (
    ("type check", re.compile(r"type-?check|\btsc\b|mypy|pyright", re.I)),
    ("lint", re.compile(r"lint|clippy|vet\b|ruff|flake8|check(?!out)", re.I)),
    ("format", re.compile(r"fmt|format|prettier|black\b", re.I)),
    ("build", re.compile(r"build|compile|\bmake\b", re.I)),
    ("test", re.compile(r"test|spec\b|pytest|jest|vitest|verify", re.I)),
)


class _Habit(Struct):
    """One command, added up over sessions."""

    sessions: dict[str, int] = field(default_factory=dict)  # root session -> its position
    worked: int = 0
    failed: int = 0
    seconds: list[float] = field(default_factory=list)
    last_seen: float | None = None
    first_seen: float | None = None


class Habits:
    """Counts the runs of a project's checks."""

    def __init__(self) -> None:
        self._commands: dict[str, _Habit] = {}

    def add(self, digest: Digest, at: int) -> None:
        """Add one session."""
        for form, runs in digest.runs.items():
            habit = self._commands.setdefault(form, _Habit())
            habit.sessions[digest.session] = at
            habit.worked += runs.worked
            habit.failed += runs.failed
            habit.seconds += runs.seconds
            if digest.at is not None:
                habit.last_seen = max(habit.last_seen or 0.0, digest.at)
                habit.first_seen = min(habit.first_seen or digest.at, digest.at)

    def find(self, sessions: int) -> list[Note]:
        """Return a note for the usual command of each purpose, and one for each slow command."""
        best: dict[str, str] = {}
        for form, habit in self._commands.items():
            purpose = name_purpose(form)
            if purpose and len(habit.sessions) >= 2 and habit.worked > habit.failed:
                usual = best.get(purpose)
                if usual is None or len(habit.sessions) > len(self._commands[usual].sessions):
                    best[purpose] = form
        notes = [self._note("works", purpose, form, sessions) for purpose, form in sorted(best.items())]
        slow = [
            form
            for form, habit in self._commands.items()
            if len(habit.sessions) >= 2 and len(habit.seconds) >= 2 and median(habit.seconds) >= SLOW
        ]
        return [*notes, *(self._note("slow", form, form, sessions) for form in sorted(slow))]

    def _note(self, kind: str, subject: str, form: str, sessions: int) -> Note:
        habit = self._commands[form]
        length = f", {_state_seconds(median(habit.seconds))}" if habit.seconds else ""
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


def name_purpose(form: str) -> str | None:
    """Return what a command is for; None where it is none of the usual purposes."""
    return next((purpose for purpose, pattern in _PURPOSES if pattern.search(form)), None)


def _state_seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
