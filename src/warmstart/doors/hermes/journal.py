"""JSON lines under WARMSTART_HOME/hermes/, to which several Hermes processes may append at the same time."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from warmstart.atomic_files import write_whole
from warmstart.errors import WarmstartError


class UnseededSession(Struct, frozen=True, kw_only=True):
    """A session that got no seed although it was not assigned to stay cold."""

    session: str  # "": about all sessions
    reason: str
    at: float = msgspec.field(default_factory=time.time)


class SeenCall(Struct, frozen=True, kw_only=True):
    """The outcome of a call that Hermes' database does not show. Never the call's text."""

    session: str
    call: str  # its id
    tool: str
    status: str  # blocked, cancelled: it did not run; invalid: its arguments were not JSON, and Hermes kept nothing
    at: float = msgspec.field(default_factory=time.time)


BLOCKED, CANCELLED, INVALID = "blocked", "cancelled", "invalid"

Line = TypeVar("Line", UnseededSession, SeenCall)


class Journal(Generic[Line]):
    """One file. When it grows too long, only its last lines are kept."""

    def __init__(self, path: Path, kind: type[Line], *, most: int = 8 << 20) -> None:
        self.path = path
        self._most = most  # bytes
        self._decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(kind)

    def add(self, line: Line) -> None:
        """Append a line in one short write, so that lines of several processes do not mix."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _append(self.path, msgspec.json.encode(line) + b"\n") > self._most:
            self._shorten()

    def read(self) -> list[Line]:
        """Return the lines, oldest first, without partial lines left by a crash."""
        try:
            data = self.path.read_bytes()
        except OSError:
            return []
        lines: list[Line] = []
        for line in data.splitlines():
            try:
                lines.append(self._decoder.decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
        return lines

    def _shorten(self) -> None:
        write_whole(self.path, self.path.read_bytes()[-self._most // 2 :].partition(b"\n")[2])


def _append(path: Path, data: bytes) -> int:
    """Append to a file that only its owner can read; return its size."""
    descriptor = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.write(descriptor, data)
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def open_notes(home: Path) -> Journal[UnseededSession]:
    """Open the journal of unseeded sessions, which `/warm` shows."""
    return Journal(home / "hermes" / "not-seeded.jsonl", UnseededSession, most=256 << 10)


def open_sightings(home: Path) -> Journal[SeenCall]:
    """Open the journal of calls that the hooks saw, which corrects trials."""
    return Journal(home / "hermes" / "observations.jsonl", SeenCall)


def describe(error: BaseException) -> str:
    """Describe an error for the journal: the message of our own, only the kind of others, which may quote anything."""
    return str(error) if isinstance(error, WarmstartError) else f"an unexpected {type(error).__name__}"
