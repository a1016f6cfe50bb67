"""When background processes learn: after every session, but after a run that took long only once a pause is over.

Sessions read during the pause are remembered, so the first process after the pause makes up for them. The hooks of agents
and the plugin of Hermes take turns by the same files.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from warmstart.pipeline import Warmstart
    from warmstart.templates.library import Learned

_QUICK = 2.0  # seconds of computing: a shorter run needs no pause
_PAUSE = 10  # a pause lasts this many times as long as learning took


class LastLearning(Struct, frozen=True, kw_only=True):
    """What the latest run in the background learned."""

    at: float  # seconds since the epoch
    sessions: int  # considered
    active: int  # templates in use
    new: int  # templates that are new or have changed
    notes: int  # in use


class LearningTurn:
    """Two files under a home: sessions that nothing was learned from yet; until when learning pauses, and what it found."""

    def __init__(self, home: Path) -> None:
        self._owed, self._pause = home / "unlearned", home / "learned"

    def owe(self) -> None:
        """Remember that sessions were read."""
        self._owed.touch(0o600)

    def is_due(self) -> bool:
        """Return whether there is something to learn from, and no pause."""
        return self._owed.exists() and time.time() >= self._read_pause()

    def finish(self, took: float, learned: LastLearning | None = None) -> None:
        """Remember that everything read so far was learned from, in this many seconds of computing."""
        until = time.time() + (_PAUSE * took if took > _QUICK else 0)
        self._pause.touch(0o600)
        if learned is not None:
            self._pause.write_bytes(msgspec.json.encode(learned))
        os.utime(self._pause, (until, until))
        self._owed.unlink(missing_ok=True)

    def read_last(self) -> LastLearning | None:
        """Return what the latest run learned; None if none has run."""
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(self._pause.read_bytes(), type=LastLearning)
        return None

    def _read_pause(self) -> float:
        with suppress(OSError):
            return self._pause.stat().st_mtime
        return 0.0


def learn_in_turn(ws: Warmstart, *, has_changed: bool) -> Learned | None:
    """Learn from the stored sessions if it is time; return what was learned. `has_changed`: sessions were read just now."""
    turn = LearningTurn(ws.settings.home)
    if has_changed:
        turn.owe()
    if not turn.is_due():
        return None
    began = time.process_time()
    learned = ws.learn()
    found = LastLearning(
        at=time.time(),
        sessions=learned.considered,
        active=sum(template.status == "active" for template in learned.templates),
        new=sum(template.change != "same" for template in learned.templates),
        notes=learned.notes.notes if learned.notes else 0,
    )
    turn.finish(time.process_time() - began, found)
    return learned
