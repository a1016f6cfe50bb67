"""Lines of JSON under WARMSTART_HOME/hermes/ that several Hermes processes add to at the same time."""

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
    """A session that got no seed although nobody wanted it cold."""

    session: str  # "" where it is about all of them
    reason: str
    at: float = msgspec.field(default_factory=time.time)


class SeenCall(Struct, frozen=True, kw_only=True):
    """What became of a call, where Hermes' database cannot tell. Never what the call said."""

    session: str
    call: str  # its id
    tool: str
    status: str  # blocked, cancelled: it did not run; invalid: its arguments were no JSON, and nothing was kept of it
    at: float = msgspec.field(default_factory=time.time)


BLOCKED, CANCELLED, INVALID = "blocked", "cancelled", "invalid"

Line = TypeVar("Line", UnseededSession, SeenCall)


class Journal(Generic[Line]):
    """One file. It is begun anew, its last lines kept, when it has grown too long."""

    def __init__(self, path: Path, kind: type[Line], *, most: int = 8 << 20) -> None:
        self.path = path
        self._most = most  # bytes
        self._decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(kind)

    def add(self, line: Line) -> None:
        """One short write at the end of the file: lines of several processes do not mix."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _write(self.path, msgspec.json.encode(line) + b"\n") > self._most:
            self._shorten()

    def read(self) -> list[Line]:
        """The lines, the oldest first; half a line that a crash left behind is passed over."""
        try:
            data = self.path.read_bytes()
        except OSError:
            return []
        found: list[Line] = []
        for line in data.splitlines():
            try:
                found.append(self._decoder.decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
        return found

    def _shorten(self) -> None:
        write_whole(self.path, self.path.read_bytes()[-self._most // 2 :].partition(b"\n")[2])


def _write(path: Path, data: bytes) -> int:
    """At the end of a file that only its owner can read; how long it is then."""
    descriptor = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.write(descriptor, data)
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def open_notes(home: Path) -> Journal[UnseededSession]:
    """Sessions that were not seeded, for `/warm`."""
    return Journal(home / "hermes" / "not-seeded.jsonl", UnseededSession, most=256 << 10)


def open_sightings(home: Path) -> Journal[SeenCall]:
    """What the hooks saw, for closing trials."""
    return Journal(home / "hermes" / "observations.jsonl", SeenCall)


def describe(error: BaseException) -> str:
    """An error in words that may be kept: ours as they are, of others only the kind, for they may quote anything."""
    return str(error) if isinstance(error, WarmstartError) else f"an unexpected {type(error).__name__}"
