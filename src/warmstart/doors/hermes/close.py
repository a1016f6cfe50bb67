"""Close trials from Hermes' database and learn from its sessions, in a separate process.

Hermes has its database open. If Warmstart's SQLite opened and closed the same file in the same process, the system would
drop Hermes' locks on it. So the plugin only leaves a mark file and starts this module, which reads the database
(read-only), adds what the hooks saw, learns templates and notes if it is time, and ends. The process that removes the
mark does the work, so that sessions that end together are read once.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from warmstart.doors.hermes.journal import UnseededSession, describe, open_notes, open_sightings
from warmstart.doors.hooks.learning import LearningTurn, learn_in_turn
from warmstart.errors import WarmstartError
from warmstart.ingest.queue import Queue
from warmstart.pipeline import Warmstart

SETTLING = 1.0  # seconds for Hermes to write the session's end
_PAUSE = 60.0  # seconds between two closings that nobody waits for


class Closer:
    """Inside Hermes: marks databases with new sessions and starts the reading."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[bytes]] = []
        self._unread: set[tuple[Path, Path]] = set()  # marked by this process, reading not started
        self._last = -_PAUSE
        self._is_first = True

    def mark(self, home: Path, database: Path) -> None:
        """Mark the database as having new sessions."""
        path = _mark_path(home, database)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        self._unread.add((home, database))

    def start(self, home: Path, database: Path) -> None:
        """Read the database now, if this process has marked it."""
        if (home, database) in self._unread:
            self._unread.discard((home, database))
            self.run(database)

    def start_sometimes(self, home: Path, database: Path) -> None:
        """Do the same, but not after every turn of a long run."""
        now = time.monotonic()
        if now - self._last >= _PAUSE:
            self._last = now
            self.start(home, database)

    def start_all(self) -> None:
        """Read all marked databases: this process ends."""
        for home, database in list(self._unread):
            self.start(home, database)

    def catch_up(self, home: Path, database: Path) -> None:
        """Once per process, read what an earlier one left unread because it was killed."""
        if self._is_first:
            self._is_first = False
            if _mark_path(home, database).exists():
                self.run(database)

    def run(self, database: Path, *, settling: float = SETTLING, learn: bool = True) -> subprocess.Popen[bytes]:
        """Start the reading, detached: it outlives Hermes and never writes to its terminal. `-P`: nothing must be imported
        from the agent's working folder. Where somebody waits for it, it does not learn."""
        self._started = [process for process in self._started if process.poll() is None]  # no zombies
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, str(database), str(settling), *(["learn"] if learn else [])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._started.append(process)
        return process


def close(ws: Warmstart, database: Path) -> bool:
    """Read the sessions, correct them by what the hooks saw, and close their trials; return whether any is new."""
    from warmstart.doors.hermes.join import join  # loads the readers, which Hermes does not need

    report = ws.ingest(database)
    corrected = join(ws, database, open_sightings(ws.settings.home).read())
    if corrected:
        ws.experiments.close()
    if report.problems and not report.unchanged:  # an unchanged file repeats the problems of its last reading
        raise WarmstartError(report.problems[0].reason)
    return bool(report.new or report.updated or corrected)


def learn(ws: Warmstart, *, has_changed: bool) -> None:
    """Learn if it is time and no other process does: the hooks of other agents learn from the same store."""
    with Queue(ws.settings.home).alone() as alone:
        if alone:
            learn_in_turn(ws, has_changed=has_changed)
        elif has_changed:
            LearningTurn(ws.settings.home).owe()


def main(arguments: Sequence[str]) -> int:
    import warmstart

    database = Path(arguments[0])
    time.sleep(float(arguments[1]))
    with warmstart.open() as ws:
        home = ws.settings.home
        if not _take_mark(home, database):
            return 0
        try:
            has_changed = close(ws, database)
        except Exception as error:  # noqa: BLE001  # nobody sees this process's output: the note appears in /warm
            open_notes(home).add(UnseededSession(session="", reason=f"{database.name} was not read: {describe(error)}"))
            Closer().mark(home, database)  # for another attempt
            return 1
        try:
            if "learn" in arguments[2:]:
                learn(ws, has_changed=has_changed)
            elif has_changed:
                LearningTurn(home).owe()
        except Exception as error:  # noqa: BLE001  # as above; the trials are closed all the same
            open_notes(home).add(UnseededSession(session="", reason=f"nothing was learned: {describe(error)}"))
    return 0


def _take_mark(home: Path, database: Path) -> bool:
    try:
        _mark_path(home, database).unlink()
    except FileNotFoundError:
        return False  # another process reads it
    return True


def _mark_path(home: Path, database: Path) -> Path:
    """Return the mark file of a database; each profile of Hermes has its own."""
    name = hashlib.blake2b(str(database).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    return home / "hermes" / f"unread-{name}"


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(10)  # nobody waits for it
    sys.exit(main(sys.argv[1:]))
