"""The queue of transcripts that agents' hooks leave for a later ingest.

Each transcript is one small file, named by a hash of its path, so that it waits only once. A reader marks the entries
that it takes and removes them when it is done. A transcript queued meanwhile waits again, and entries that a crashed
reader took are taken by the next one.
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
_LIMIT = 10_000  # waiting entries; beyond that nobody reads them


class Entry(NamedTuple):
    """A transcript taken from the queue."""

    transcript: Path
    file: Path  # its file in the queue, to be removed when the transcript is read


class Queue:
    """The queue of a Warmstart home."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "queue"
        self._lock = home / "queue.lock"

    def add(self, transcript: Path) -> None:
        """Queue a transcript. Raises OSError if its entry cannot be written."""
        for folder in (self._folder.parent, self._folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = os.fsencode(transcript)
        file = self._folder / (hashlib.blake2b(name, digest_size=16).hexdigest() + _WAITING)
        if file.exists() or self.count() >= _LIMIT:
            return
        write_whole(file, name)

    def count(self) -> int:
        """Return the number of entries that wait or were taken by a reader that never finished."""
        return sum(1 for _file in self._files())

    def take(self) -> list[Entry]:
        """Take every entry whose transcript still exists. Pass them to `forget` when they are read."""
        entries: dict[Path, Entry] = {}
        for file in sorted(self._files()):
            taken = file.with_suffix(_TAKEN)
            with suppress(OSError, ValueError):
                file.replace(taken)
                transcript = Path(os.fsdecode(taken.read_bytes()))
                if transcript.exists():
                    entries[transcript] = Entry(transcript, taken)
                else:
                    taken.unlink()
        return list(entries.values())

    def forget(self, entries: list[Entry]) -> None:
        """Remove entries from the queue."""
        for entry in entries:
            with suppress(OSError):
                entry.file.unlink()

    def _files(self) -> Iterator[Path]:
        try:
            with os.scandir(self._folder) as files:
                for file in files:
                    if file.name.endswith((_WAITING, _TAKEN)):
                        yield Path(file.path)
        except OSError:
            return

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Lock the queue; yields whether that succeeded. The system releases the lock when the process ends."""
        self._lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self._lock, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            yield _try_lock(handle)
        finally:
            os.close(handle)


def _try_lock(handle: int) -> bool:
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
