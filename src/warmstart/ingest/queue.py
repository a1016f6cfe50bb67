"""The queue of transcripts that agents' hooks leave for a later ingest: a file, or one session of a database.

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

from warmstart.atomic_files import lock_file, write_whole

_WAITING, _TAKEN = ".waiting", ".taken"
_LIMIT = 10_000  # waiting entries; beyond that nobody reads them
_DATABASE = ".db#"  # ends the name of a database; the id of one of its sessions follows


def split_session(transcript: str) -> tuple[str, str]:
    """Return a transcript's file, and the session that is meant where the file is a database (`DATABASE#SESSION`)."""
    file, mark, session = transcript.rpartition(_DATABASE)
    return (f"{file}.db", session) if mark and session.isidentifier() else (transcript, "")


def join_session(file: str, session: str) -> str:
    """Return the name of a session in a database."""
    return f"{file}#{session}"


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
                if Path(split_session(str(transcript))[0]).exists():
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
        with lock_file(self._lock, wait=False) as free:
            yield free
