"""Which sessions get advice, and the record of what they were shown."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warmstart.arms import gets_advice
from warmstart.errors import WarmstartError
from warmstart.notes.session_state import add_draw, add_showing

if TYPE_CHECKING:
    from warmstart.notes.session_state import Withholding

log = logging.getLogger("warmstart.notes")


class Exposure:
    """Keeps cold sessions without advice, and writes down what the others got. Nothing is raised into an agent's call."""

    def __init__(
        self,
        home: Path,
        find_arm: Callable[[str], str | None],
        clock: Callable[[], float],
        find_withholding: Callable[[], Withholding | None] = lambda: None,
    ) -> None:
        """`find_arm` returns the arm of a session; None: it takes part in no comparison.

        `find_withholding` returns how notes are tried now; None: they are not.
        """
        self._find_withholding = find_withholding
        self._home = str(home)
        self._find_arm = find_arm
        self._clock = clock

    def ask(self, session: str) -> tuple[bool, Withholding | None]:
        """Return whether a session gets advice, and how notes are tried. If its arm cannot be read, it gets none."""
        try:
            return (True, self._find_withholding()) if gets_advice(self._find_arm(session)) else (False, None)
        except (WarmstartError, OSError) as error:
            log.debug("session %s gets no advice: %s", session, error)
            return False, None

    def record_draw(self, session: str, draw: dict[str, Any]) -> None:
        """Write down what was drawn for a session."""
        try:
            add_draw(self._home, session, self._clock(), draw)
        except OSError as error:
            log.debug("a draw for session %s is not recorded: %s", session, error)

    def record(self, notes: Iterable[str], session: str, how: str) -> None:
        """Write down that a session was shown notes; `learn` takes the lines into the store."""
        try:
            for note in notes:
                add_showing(self._home, note, session, how, self._clock())
        except OSError as error:
            log.debug("a showing to session %s is not recorded: %s", session, error)
