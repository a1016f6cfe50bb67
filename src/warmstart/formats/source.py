"""One file to read from: its bytes as a stream, its lines, its records, and what could not be read of it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from warmstart.errors import SourceError
from warmstart.formats.lenient import DECODE_ERRORS, MAX_VALUE, Scanner, convert, loose_values
from warmstart.model import Problem

T = TypeVar("T")

_ZSTD = b"\x28\xb5\x2f\xfd"
_SQLITE = b"SQLite format 3\x00"
_HEAD = 64 << 10
_LONG_HEAD = 4 << 20  # of a document whose first element does not end sooner
_HEAD_LINES = 24
_WHOLE = 32 << 20  # documents up to this size are decoded in one go
_MAX_UNPACKED = 8 << 30
_PACKED_CHUNK = 16 << 10  # small: a bomb may unpack each to a thousand times its size
_MAX_PROBLEMS = 1_000
_raw_document = msgspec.json.Decoder(dict[str, msgspec.Raw] | list[msgspec.Raw])
_raw_list = msgspec.json.Decoder(list[msgspec.Raw])


class Source:
    """A transcript file. Problems are collected, never raised, once it is open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self.shown = str(path).encode("utf-8", "replace").decode()
        self.read_bytes = 0

    @property
    def uri(self) -> str:
        return self.path.absolute().as_uri()

    def report(self, reason: str, line: int | None = None) -> None:
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(Problem(self.shown, reason, line))
        elif len(self.problems) == _MAX_PROBLEMS:
            self.problems.append(Problem(self.shown, f"more than {_MAX_PROBLEMS} problems; the rest is not listed"))

    def open(self) -> IO[bytes]:
        """The bytes, unpacked where the file is packed."""
        try:
            stream = io.BufferedReader(io.FileIO(self.path), 1 << 20)
            magic = stream.peek(4)[:4]
        except OSError as error:
            raise SourceError(self.shown, _say(error)) from error
        if magic != _ZSTD:
            return stream
        import zstandard

        decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        return io.BufferedReader(_Unpacked(stream, decompressor.decompressobj, self.report), 1 << 20)

    @cached_property
    def head(self) -> Head:
        with self.open() as stream:
            try:
                data = stream.read(_HEAD)
                head = Head(self.path, data)
                if not head.root and len(data) == _HEAD and not head.sqlite:
                    head = Head(self.path, data + stream.read(_LONG_HEAD))
            except OSError as error:
                raise SourceError(self.shown, _say(error)) from error
            except Exception as error:  # zstandard.ZstdError is not known without importing zstandard
                if type(error).__name__ != "ZstdError":
                    raise
                raise SourceError(self.shown, f"cannot be unpacked: {error}") from error
        return head

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Numbered lines; one too long to hold is skipped and reported."""
        number = 0
        with self.open() as stream:
            while True:
                try:
                    line = stream.readline(MAX_VALUE)
                except OSError as error:
                    self.report(f"reading stopped: {_say(error)}", number + 1)
                    return
                except Exception as error:
                    if type(error).__name__ != "ZstdError":
                        raise
                    self.report(f"cannot be unpacked from here: {error}", number + 1)
                    return
                if not line:
                    return
                number += 1
                self.read_bytes += len(line)
                if len(line) >= MAX_VALUE and not line.endswith(b"\n"):
                    size = len(line)
                    while line and not line.endswith(b"\n"):
                        line = stream.readline(MAX_VALUE)
                        size += len(line)
                    self.read_bytes += size - MAX_VALUE
                    self.report(f"a line of {size >> 20} MB is longer than {MAX_VALUE >> 20} MB; skipped", number)
                    continue
                yield number, line

    def records(self, decoder: msgspec.json.Decoder[T]) -> Iterator[tuple[int, T]]:
        """Each JSON object of a JSONL file, typed; a bad line is reported and the next one read."""
        decode = decoder.decode
        for number, line in self.lines():
            try:
                record = decode(line)
            except DECODE_ERRORS:
                for loose in self.recover(line, decoder, number):
                    yield number, loose
                continue
            yield number, record

    def recover(self, data: bytes, decoder: msgspec.json.Decoder[T], line: int | None) -> Iterable[T]:
        """What can be saved of a piece of JSON that did not decode."""
        values, wrong = loose_values(data)
        if wrong:
            self.report(wrong, line)
        for value in values:
            record, dropped = convert(value, decoder.type)
            if dropped:
                self.report(dropped, line)
            if record is not None:
                yield record

    def decode(self, data: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T], line: int | None = None) -> T | None:
        """One piece of JSON, typed, or None (reported) when nothing of it can be saved."""
        try:
            return decoder.decode(data)
        except DECODE_ERRORS:
            return next(iter(self.recover(bytes(data), decoder, line)), None)

    def walk(self, *arrays: str) -> Iterator[tuple[str, bytes | msgspec.Raw, int | None]]:
        """The pieces of a JSON document, as `Scanner` yields them: `(key, value, line)`."""
        wanted = frozenset(arrays)
        with self.open() as stream:
            whole = stream.read(_WHOLE + 1)
            self.read_bytes += len(whole)
            if len(whole) <= _WHOLE:
                try:
                    document = _raw_document.decode(whole)
                    named = document.items() if isinstance(document, dict) else [("", item) for item in document]
                    unfolded = [
                        (key, raw)
                        for key, value in named
                        for raw in (_raw_list.decode(value) if key in wanted and _is_list(value) else (value,))
                    ]
                except DECODE_ERRORS:
                    pass
                else:
                    for key, raw in unfolded:
                        yield key, raw, None
                    return
            pending = io.BytesIO(whole)
            del whole

            def read(size: int) -> bytes:
                data = pending.read(size)
                if data:
                    return data
                data = stream.read(size)
                self.read_bytes += len(data)
                return data

            yield from Scanner(read, lambda line, reason: self.report(reason, line)).pieces(wanted)


def _is_list(value: msgspec.Raw) -> bool:
    return bytes(memoryview(value)[:1]) == b"["


def _say(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


class _Unpacked(io.RawIOBase):
    """Packed frames, one after the other, that may neither unpack without end nor end without being told."""

    def __init__(self, stream: IO[bytes], new_frame: Callable[[], Any], tell: Callable[[str], None]) -> None:
        self._stream = stream
        self._new_frame = new_frame
        self._tell = tell
        self._frame: Any = None
        self._ready = b""
        self._left = _MAX_UNPACKED

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            packed = self._stream.read(_PACKED_CHUNK)
            if not packed:
                if self._frame is not None:
                    self._frame = None
                    self._tell("the packed file is cut off")
                return 0
            while packed:
                self._frame = self._frame or self._new_frame()
                self._ready += self._frame.decompress(packed)
                packed = self._frame.unused_data
                if self._frame.eof:
                    self._frame = None
            self._left -= len(self._ready)
            if self._left < 0:
                raise OSError(f"unpacks to more than {_MAX_UNPACKED >> 30} GB")
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()


def _quick_value(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except DECODE_ERRORS:
        return next(iter(loose_values(data)[0]), None)


class Head:
    """The beginning of a file, decoded as far as it goes, for telling formats apart."""

    def __init__(self, path: Path, data: bytes) -> None:
        self.path = path
        self.sqlite = data.startswith(_SQLITE)
        self.empty = not data.strip()
        self.root = ""  # "lines", "object" or "list"
        self.records: list[dict[str, Any]] = []  # of lines: the first ones; of a document: itself or its first elements
        if not self.sqlite and not self.empty:
            self._look(data)

    def _look(self, data: bytes) -> None:
        lines = data.lstrip(b"\xef\xbb\xbf \t\r\n").split(b"\n", _HEAD_LINES)
        complete = [line for line in (lines if len(data) < _HEAD else lines[:-1]) if line.strip()][:_HEAD_LINES]
        decoded = [_quick_value(line) for line in complete]
        self.records = [value for value in decoded if isinstance(value, dict)]
        if complete and complete[0].strip() == b"[":
            self._look_inside(data)
        elif len(complete) == 1 and self.records:
            self.root = "object"
        elif len(self.records) * 2 >= len(complete) and self.records:
            self.root = "lines"
        else:
            self._look_inside(data)

    def _look_inside(self, data: bytes) -> None:
        """A document over several lines, perhaps longer than what we have of it."""
        self.records = []
        stream = io.BytesIO(data)
        whole: dict[str, Any] = {}
        for key, piece, _line in Scanner(stream.read, lambda _line, _reason: None).pieces(frozenset(_ARRAYS)):
            value = _quick_value(piece)
            if key == "":
                self.root = "list"
                if isinstance(value, dict):
                    self.records.append(value)
            else:
                self.root = "object"
                if key in _ARRAYS:
                    whole.setdefault(key, []).append(value)
                else:
                    whole[key] = value
        if self.root == "object":
            self.records = [whole]

    @property
    def first(self) -> dict[str, Any]:
        return self.records[0] if self.records else {}


_ARRAYS = ("messages", "simulations", "traj", "steps", "history", "trajectory", "conversations", "items")
