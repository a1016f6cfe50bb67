"""One file to read from: its bytes as a stream, its lines, its records, and what could not be read of it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from warmstart.errors import SourceError
from warmstart.formats.lenient import DECODE_ERRORS, MAX_VALUE, Scanner, convert, loose_values
from warmstart.model import Problem

T = TypeVar("T")

_ZSTD = b"\x28\xb5\x2f\xfd"
_SQLITE = b"SQLite format 3\x00"
_HEAD, _HEAD_LINES = 16 << 10, 8
_FURTHER, _FURTHER_LINES = 256 << 10, 60  # some files begin with much that says nothing
_LONG_HEAD = 4 << 20  # of a document whose first element does not end sooner
_BUFFER = 128 << 10
_BLOCK = 128 << 10  # of lines, decoded together
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
            stream = io.BufferedReader(io.FileIO(self.path), _BUFFER)
            magic = stream.peek(4)[:4]
        except OSError as error:
            raise SourceError(self.shown, _say(error)) from error
        if magic != _ZSTD:
            return stream
        import zstandard

        decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        unpacked = _Unpacked(stream, decompressor.decompressobj, zstandard.ZstdError, self.report)
        return io.BufferedReader(unpacked, _BUFFER)

    @cached_property
    def head(self) -> SourceHead:
        """How the file begins: a little of it, as much more as needed to see the end of its first element."""
        return self.look(_HEAD, _HEAD_LINES)

    def look(self, size: int, lines: int) -> SourceHead:
        with self.open() as stream:
            try:
                data = stream.read(size)
                head = SourceHead(self.path, data, whole=len(data) < size, lines=lines)
                if not head.root and len(data) == size and not head.sqlite:
                    data += stream.read(_LONG_HEAD)
                    head = SourceHead(self.path, data, whole=len(data) < size + _LONG_HEAD, lines=lines)
            except OSError as error:
                raise SourceError(self.shown, _say(error)) from error
        return head

    def look_further(self) -> SourceHead:
        """More of the beginning, where a little did not tell."""
        self.head = self.look(_FURTHER, _FURTHER_LINES)
        return self.head

    def _blocks(self) -> Iterator[tuple[bytes, int]]:
        """Whole lines, some at a time, each with the size of a line too long to hold that follows them (0: none)."""
        with self.open() as stream:
            while block := stream.read(_BLOCK):
                rest = b"" if block.endswith(b"\n") else stream.readline(MAX_VALUE)
                self.read_bytes += len(block) + len(rest)
                if len(rest) < MAX_VALUE or rest.endswith(b"\n"):
                    yield block + rest if rest else block, 0
                else:
                    whole, newline, start = block.rpartition(b"\n")
                    yield whole + newline, len(start) + len(rest) + self._skip_line(stream)

    def _skip_line(self, stream: IO[bytes]) -> int:
        size = 0
        for part in iter(partial(stream.readline, MAX_VALUE), b""):
            size += len(part)
            if part.endswith(b"\n"):
                break
        self.read_bytes += size
        return size

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Numbered lines, without those that are empty; one too long to hold is skipped and reported."""
        number = 0
        try:
            for block, skipped in self._blocks():
                lines = block.split(b"\n")
                for place, line in enumerate(lines, number + 1):
                    if line and not line.isspace():
                        yield place, line
                number = self._after(number + len(lines) - (not lines[-1]), skipped)
        except OSError as error:
            self.report(f"reading stopped: {_say(error)}", number + 1)

    def records(self, decoder: msgspec.json.Decoder[T]) -> Iterator[tuple[int, T]]:
        """Each JSON object of a JSONL file, typed; a bad line is reported and the next one read."""
        number = 0
        try:
            for block, skipped in self._blocks():
                try:
                    records = decoder.decode_lines(block)
                except DECODE_ERRORS:
                    lines = block.split(b"\n")
                    for place, line in enumerate(lines, number + 1):
                        for record in self._decode_line(line, decoder, place):
                            yield place, record
                    number += len(lines) - (not lines[-1])
                else:
                    yield from enumerate(records, number + 1)
                    number += len(records)
                number = self._after(number, skipped)
        except OSError as error:
            self.report(f"reading stopped: {_say(error)}", number + 1)

    def _after(self, number: int, skipped: int) -> int:
        """The number of the last line behind us, past one that was skipped."""
        if not skipped:
            return number
        self.report(f"a line of {skipped >> 20} MB is longer than {MAX_VALUE >> 20} MB; skipped", number + 1)
        return number + 1

    def _decode_line(self, line: bytes, decoder: msgspec.json.Decoder[T], number: int) -> Iterable[T]:
        if not line or line.isspace():
            return ()
        try:
            return (decoder.decode(line),)
        except DECODE_ERRORS:
            return self.recover(line, decoder, number)

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

    def __init__(
        self, stream: IO[bytes], new_frame: Callable[[], Any], broken: type[Exception], tell: Callable[[str], None]
    ) -> None:
        self._stream = stream
        self._new_frame = new_frame
        self._broken = broken
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
                try:
                    self._ready += self._frame.decompress(packed)
                except self._broken as error:
                    raise OSError(f"cannot be unpacked from here: {error}") from error
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


class SourceHead:
    """The beginning of a file, decoded as far as it goes, for telling formats apart."""

    def __init__(self, path: Path, data: bytes, *, whole: bool, lines: int) -> None:
        self.path = path
        self.sqlite = data.startswith(_SQLITE)
        self.empty = not data.strip()
        self.root = ""  # "lines", "object" or "list"
        self.records: list[dict[str, Any]] = []  # of lines: the first ones; of a document: itself or its first elements
        if not self.sqlite and not self.empty:
            self._look(data, whole, lines)

    def _look(self, data: bytes, whole: bool, most: int) -> None:
        lines = data.lstrip(b"\xef\xbb\xbf \t\r\n").split(b"\n", most)
        complete = [line for line in (lines if whole and len(lines) <= most else lines[:-1]) if line.strip()]
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
