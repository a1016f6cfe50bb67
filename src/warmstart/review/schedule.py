"""When a review is due: after a number of user turns, and after a number of tool calls."""

from __future__ import annotations

from warmstart.config import ReviewSettings
from warmstart.review.prompts import Focus


class Schedule:
    """Counts one session. Turns are about the user, so they lead to memory; calls are about work, so they lead to skills."""

    def __init__(self, settings: ReviewSettings) -> None:
        self._every_turns = settings.every_turns
        self._every_calls = settings.every_calls
        self._turns = 0
        self._calls = 0

    def count_turn(self) -> None:
        self._turns += 1

    def count_calls(self, number: int = 1) -> None:
        self._calls += number

    def take(self) -> Focus | None:
        """Return the focus of the review that is due, or None, and restart its count."""
        memory = bool(self._every_turns) and self._turns >= self._every_turns
        skills = bool(self._every_calls) and self._calls >= self._every_calls
        self._turns = 0 if memory else self._turns
        self._calls = 0 if skills else self._calls
        if memory and skills:
            return "both"
        return "memory" if memory else "skills" if skills else None
