"""One transcript file: its bytes as a stream, its lines, its records, and the problems met while reading."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from warmstart.errors import SourceError, explain
from warmstart.formats.lenient import DECODE_ERRORS, MAX_VALUE, Scanner, convert, loose_values
from warmstart.model import Problem

T = TypeVar("T")

_ZSTD = b"\x28\xb5\x2f\xfd"
_SQLITE = b"SQLite format 3\x00"
_HEAD, _HEAD_LINES = 16 << 10, 8
_FURTHER, _FURTHER_LINES = 256 << 10, 60  # some files begin with lines that fit any format
_LONG_HEAD = 4 << 20  # read for a document whose first element is longer than the head
_BUFFER = 128 << 10
_BLOCK = 128 << 10  # bytes of lines decoded together
_WHOLE = 32 << 20  # documents up to this size are decoded in one go
_MAX_UNPACKED = 8 << 30
_PACKED_CHUNK = 16 << 10  # small: a zip bomb may unpack each chunk to a thousand times its size
_MAX_PROBLEMS = 1_000
_raw_document = msgspec.json.Decoder(dict[str, msgspec.Raw] | list[msgspec.Raw])
_raw_list = msgspec.json.Decoder(list[msgspec.Raw])


class Source:
    """A transcript file. Once it is open, problems are collected and never raised."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self.shown = str(path).encode("utf-8", "replace").decode()

    @property
    def uri(self) -> str:
        return self.path.absolute().as_uri()

    def report(self, reason: str, line: int | None = None) -> None:
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(Problem(self.shown, reason, line))
        elif len(self.problems) == _MAX_PROBLEMS:
            self.problems.append(Problem(self.shown, f"more than {_MAX_PROBLEMS} problems; the rest is not listed"))

    def open(self) -> IO[bytes]:
        """Open the file for reading; a zstd file is unpacked on the fly."""
        try:
            stream = io.BufferedReader(io.FileIO(self.path), _BUFFER)
            magic = stream.peek(4)[:4]
        except OSError as error:
            raise SourceError(self.shown, explain(error)) from error
        if magic != _ZSTD:
            return stream
        import zstandard

        decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        unpacked = _Unpacked(stream, decompressor.decompressobj, zstandard.ZstdError, self.report)
        return io.BufferedReader(unpacked, _BUFFER)

    @cached_property
    def head(self) -> SourceHead:
        """The beginning of the file, read as far as the end of its first element."""
        return self._read_head(_HEAD, _HEAD_LINES)

    def _read_head(self, size: int, lines: int) -> SourceHead:
        with self.open() as stream:
            try:
                data = stream.read(size)
                head = SourceHead(self.path, data, whole=len(data) < size, lines=lines)
                if not head.root and len(data) == size and not head.sqlite:
                    data += stream.read(_LONG_HEAD)
                    head = SourceHead(self.path, data, whole=len(data) < size + _LONG_HEAD, lines=lines)
            except OSError as error:
                raise SourceError(self.shown, explain(error)) from error
        return head

    def look_further(self) -> SourceHead:
        """Read a longer head, for a file whose format the short one does not show."""
        self.head = self._read_head(_FURTHER, _FURTHER_LINES)
        return self.head

    def _blocks(self) -> Iterator[tuple[bytes, int]]:
        """Yield blocks of whole lines, each with the size of an overlong line skipped after it (0: none)."""
        with self.open() as stream:
            while block := stream.read(_BLOCK):
                rest = b"" if block.endswith(b"\n") else stream.readline(MAX_VALUE)
                if len(rest) < MAX_VALUE or rest.endswith(b"\n"):
                    yield block + rest if rest else block, 0
                else:
                    whole, newline, start = block.rpartition(b"\n")
                    yield whole + newline, len(start) + len(rest) + self._skip_line(stream)

    @staticmethod
    def _skip_line(stream: IO[bytes]) -> int:
        size = 0
        for part in iter(partial(stream.readline, MAX_VALUE), b""):
            size += len(part)
            if part.endswith(b"\n"):
                break
        return size

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the non-empty lines with their numbers; a line over 32 MB is skipped and reported."""
        number = 0
        try:
            for block, skipped in self._blocks():
                lines = block.split(b"\n")
                for place, line in enumerate(lines, number + 1):
                    if line and not line.isspace():
                        yield place, line
                number = self._count_skipped(number + len(lines) - (not lines[-1]), skipped)
        except OSError as error:
            self.report(f"reading stopped: {explain(error)}", number + 1)

    def records(self, decoder: msgspec.json.Decoder[T]) -> Iterator[tuple[int, T]]:
        """Yield the JSON objects of a JSONL file, typed, with their line numbers; a bad line is reported and skipped."""
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
                number = self._count_skipped(number, skipped)
        except OSError as error:
            self.report(f"reading stopped: {explain(error)}", number + 1)

    def _count_skipped(self, number: int, skipped: int) -> int:
        """Report a skipped line, if there is one; return the number of the last line passed."""
        if not skipped:
            return number
        self.report(f"skipped a line of {skipped >> 20} MB; the limit is {MAX_VALUE >> 20} MB", number + 1)
        return number + 1

    def _decode_line(self, line: bytes, decoder: msgspec.json.Decoder[T], number: int) -> Iterable[T]:
        if not line or line.isspace():
            return ()
        try:
            return (decoder.decode(line),)
        except DECODE_ERRORS:
            return self._recover(line, decoder, number)

    def _recover(self, data: bytes, decoder: msgspec.json.Decoder[T], line: int | None) -> Iterable[T]:
        """Yield the records that can be saved from JSON that did not decode."""
        values, problem = loose_values(data)
        if problem:
            self.report(problem, line)
        for value in values:
            record, dropped = convert(value, decoder.type)
            if dropped:
                self.report(dropped, line)
            if record is not None:
                yield record

    def decode(self, data: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T], line: int | None = None) -> T | None:
        """Decode one piece of JSON; None, and a reported problem, when nothing of it can be saved."""
        try:
            return decoder.decode(data)
        except DECODE_ERRORS:
            return next(iter(self._recover(bytes(data), decoder, line)), None)

    def walk(self, *arrays: str) -> Iterator[tuple[str, bytes | msgspec.Raw, int | None]]:
        """Yield the pieces of a JSON document as `Scanner` does: `(key, value, line)`."""
        wanted = frozenset(arrays)
        with self.open() as stream:
            whole = stream.read(_WHOLE + 1)
            if len(whole) <= _WHOLE:
                try:
                    document = _raw_document.decode(whole)
                    named = document.items() if isinstance(document, dict) else [("", item) for item in document]
                    unfolded = [
                        (key, raw)
                        for key, value in named
                        for raw in (_raw_list.decode(value) if key in wanted and is_list(value) else (value,))
                    ]
                except DECODE_ERRORS:
                    pass
                else:
                    for key, raw in unfolded:
                        yield key, raw, None
                    return
            start = io.BytesIO(whole)
            del whole
            scanner = Scanner(
                lambda size: start.read(size) or stream.read(size), lambda line, reason: self.report(reason, line)
            )
            yield from scanner.pieces(wanted)


def is_list(value: msgspec.Raw) -> bool:
    """Return whether a raw JSON value is a list."""
    return bytes(memoryview(value)[:1]) == b"["


class _Unpacked(io.RawIOBase):
    """The bytes of consecutive zstd frames. Stops at a size limit and reports a file that is cut off."""

    def __init__(
        self, stream: IO[bytes], new_frame: Callable[[], Any], broken: type[Exception], report: Callable[[str], None]
    ) -> None:
        self._stream = stream
        self._new_frame = new_frame
        self._broken = broken
        self._report = report
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
                    self._report("the packed file is cut off")
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


def _decode_loosely(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except DECODE_ERRORS:
        return next(iter(loose_values(data)[0]), None)


class SourceHead:
    """The beginning of a file, decoded as far as it goes. `sniff` recognises its format by it."""

    def __init__(self, path: Path, data: bytes, *, whole: bool, lines: int) -> None:
        self.path = path
        self.sqlite = data.startswith(_SQLITE)
        self.empty = not data.strip()
        self.root = ""  # "lines", "object" or "list"
        self.records: list[dict[str, Any]] = []  # the first lines, the first elements of a list, or the one object
        if not self.sqlite and not self.empty:
            self._read(data, whole, lines)

    def _read(self, data: bytes, whole: bool, most: int) -> None:
        lines = data.lstrip(b"\xef\xbb\xbf \t\r\n").split(b"\n", most)
        complete = [line for line in (lines if whole and len(lines) <= most else lines[:-1]) if line.strip()]
        decoded = [_decode_loosely(line) for line in complete]
        self.records = [value for value in decoded if isinstance(value, dict)]
        if complete and complete[0].strip() == b"[":
            self._read_document(data)
        elif len(complete) == 1 and self.records:
            self.root = "object"
        elif len(self.records) * 2 >= len(complete) and self.records:
            self.root = "lines"
        else:
            self._read_document(data)

    def _read_document(self, data: bytes) -> None:
        """Read the beginning of a document that spans several lines and may go on after the head."""
        self.records = []
        stream = io.BytesIO(data)
        whole: dict[str, Any] = {}
        for key, piece, _line in Scanner(stream.read, lambda _line, _reason: None).pieces(frozenset(_ARRAYS)):
            value = _decode_loosely(piece)
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
        """The first record, or {} where there is none."""
        return self.records[0] if self.records else {}


_ARRAYS = ("messages", "simulations", "traj", "steps", "history", "trajectory", "conversations", "items")
