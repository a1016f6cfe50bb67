"""Packed bytes as a stream: unpacked on the fly, and never more than a limit."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import IO, Any

from warmstart.errors import explain

_MAX_UNPACKED = 8 << 30
_HARMLESS = 16 << 20  # bytes that may be unpacked of however few
_PACKED_CHUNK = 2 << 10  # small: zstd may unpack each chunk to 32,000 times its size


class UnpackLimit:
    """How much may be unpacked: a few packed bytes may stand for any number."""

    def __init__(self, most_times: int | None = None) -> None:
        self._most_times = most_times  # the packed size; transcripts shrink to a tenth or so
        self._packed = self._unpacked = 0

    def add(self, packed: int, unpacked: int) -> None:
        """Count what was unpacked; raise OSError where that is too much."""
        self._packed += packed
        self._unpacked += unpacked
        if self._unpacked > _MAX_UNPACKED:
            raise OSError(f"unpacks to more than {_MAX_UNPACKED >> 30} GB")
        if self._most_times and self._unpacked > max(_HARMLESS, self._packed * self._most_times):
            raise OSError(f"unpacks to more than {self._most_times} times its size")


class Unpacked(io.RawIOBase):
    """The bytes of consecutive packed frames. Stops at a size limit and reports a file that is cut off."""

    def __init__(
        self,
        stream: IO[bytes],
        new_frame: Callable[[], Any],
        broken: type[Exception],
        report: Callable[[str], None],
        limit: UnpackLimit | None = None,
    ) -> None:
        self._stream = stream
        self._new_frame = new_frame
        self._broken = broken
        self._report = report
        self._frame: Any = None
        self._ready, self._given = b"", 0
        self._limit = limit or UnpackLimit()
        self._begun = self._stopped = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer. What cannot be unpacked ends the stream, or is raised where nothing could be."""
        try:
            self._fill()
        except OSError as error:
            if not (self._begun or self._ready):
                raise
            self._report(f"reading stopped: {explain(error)}")
            self._stopped = True
        self._begun = True
        count = min(len(buffer), len(self._ready) - self._given)
        buffer[:count] = memoryview(self._ready)[self._given : self._given + count]
        self._given += count
        return count

    def _fill(self) -> None:
        while self._given == len(self._ready) and not self._stopped:
            self._ready, self._given = b"", 0
            packed = self._stream.read(_PACKED_CHUNK)
            size = len(packed)
            if not packed:
                if self._frame is not None:
                    self._frame = None
                    self._report("the packed file is cut off")
                return
            while packed:
                self._frame = self._frame or self._new_frame()
                try:
                    self._ready += self._frame.decompress(packed)
                except self._broken as error:
                    raise OSError(f"cannot be unpacked from here: {error}") from error
                packed = self._frame.unused_data
                if self._frame.eof:
                    self._frame = None
            self._limit.add(size, len(self._ready))

    def close(self) -> None:
        self._stream.close()
        super().close()
