"""When the background process learns: after every session, but after a run that took long only once a pause is over.

Sessions read during the pause are remembered, so the first hook of a session after the pause makes up for them.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

_QUICK = 2.0  # seconds of computing: a shorter run needs no pause
_PAUSE = 10  # a pause lasts this many times as long as learning took


class LearningTurn:
    """Two empty files under a home: sessions that nothing was learned from yet, and until when learning pauses."""

    def __init__(self, home: Path) -> None:
        self._owed, self._pause = home / "unlearned", home / "learned"

    def owe(self) -> None:
        """Remember that sessions were read."""
        self._owed.touch(0o600)

    def is_due(self) -> bool:
        """Return whether there is something to learn from, and no pause."""
        return self._owed.exists() and time.time() >= self._read_pause()

    def finish(self, took: float) -> None:
        """Remember that everything read so far was learned from, in this many seconds of computing."""
        until = time.time() + (_PAUSE * took if took > _QUICK else 0)
        self._pause.touch(0o600)
        os.utime(self._pause, (until, until))
        self._owed.unlink(missing_ok=True)

    def _read_pause(self) -> float:
        with suppress(OSError):
            return self._pause.stat().st_mtime
        return 0.0
