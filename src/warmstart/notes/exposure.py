"""Which sessions get advice, and the record of what they were shown."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from warmstart.arms import gets_advice
from warmstart.errors import WarmstartError
from warmstart.notes.session_state import add_showing

log = logging.getLogger("warmstart.notes")


class Exposure:
    """Keeps cold sessions without advice, and writes down what the others got. Nothing is raised into an agent's call."""

    def __init__(self, home: Path, find_arm: Callable[[str], str | None], clock: Callable[[], float]) -> None:
        """`find_arm` returns the arm of a session; None: it takes part in no comparison."""
        self._home = str(home)
        self._find_arm = find_arm
        self._clock = clock

    def admits(self, session: str) -> bool:
        """Return whether a session gets advice. If its arm cannot be read, it gets none."""
        try:
            return gets_advice(self._find_arm(session))
        except (WarmstartError, OSError) as error:
            log.debug("session %s gets no advice: %s", session, error)
            return False

    def record(self, notes: Iterable[str], session: str, how: str) -> None:
        """Write down that a session was shown notes; `learn` takes the lines into the store."""
        try:
            for note in notes:
                add_showing(self._home, note, session, how, self._clock())
        except OSError as error:
            log.debug("a showing to session %s is not recorded: %s", session, error)
