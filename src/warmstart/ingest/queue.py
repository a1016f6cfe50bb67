"""Transcripts that wait to be read: what agents' hooks leave behind in a moment, for someone with more time.

One small file a transcript, named by a hash of its path, so that the same one waits only once. Whoever reads marks what
it takes and forgets it when it is done: what is queued again meanwhile waits again, and what a crash interrupted is
taken up by the next.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from warmstart.atomic_files import write_whole

_WAITING, _TAKEN = ".waiting", ".taken"
_MOST = 10_000  # that wait; more than that and nobody reads them


class Entry(NamedTuple):
    """A transcript that was taken."""

    transcript: Path
    file: Path  # to be removed when it is read


class Queue:
    """The queue of a home."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "queue"
        self._lock = home / "queue.lock"

    def add(self, transcript: Path) -> None:
        """Let a transcript wait. Raises OSError where it cannot be written down."""
        for folder in (self._folder.parent, self._folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = os.fsencode(transcript)
        file = self._folder / (hashlib.blake2b(name, digest_size=16).hexdigest() + _WAITING)
        if file.exists() or self.count() >= _MOST:
            return
        write_whole(file, name)

    def count(self) -> int:
        """How many wait, or were taken by someone who never finished."""
        return sum(1 for _file in self._files())

    def take(self) -> list[Entry]:
        """All that wait and are still there. Give them back to `forget` when they are read."""
        found: dict[Path, Entry] = {}
        for file in sorted(self._files()):
            taken = file.with_suffix(_TAKEN)
            with suppress(OSError, ValueError):
                file.replace(taken)
                transcript = Path(os.fsdecode(taken.read_bytes()))
                if transcript.exists():
                    found[transcript] = Entry(transcript, taken)
                else:
                    taken.unlink()
        return list(found.values())

    def forget(self, entries: list[Entry]) -> None:
        for entry in entries:
            with suppress(OSError):
                entry.file.unlink()

    def _files(self) -> Iterator[Path]:
        try:
            with os.scandir(self._folder) as found:
                for file in found:
                    if file.name.endswith((_WAITING, _TAKEN)):
                        yield Path(file.path)
        except OSError:
            return

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether we are the only one at work on it. The system lets go of the lock when a process ends, however."""
        self._lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self._lock, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            yield _lock(handle)
        finally:
            os.close(handle)


def _lock(handle: int) -> bool:
    try:
        try:
            import fcntl
        except ImportError:  # Windows
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
