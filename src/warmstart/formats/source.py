"""One transcript file: its bytes as a stream, its lines, its records, and the problems met while reading."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from warmstart.errors import SourceError, explain
from warmstart.formats.lenient import DECODE_ERRORS, MAX_VALUE, NotPlain, Scanner, convert, loose_values, plain_pieces
from warmstart.formats.unpacked import Unpacked, UnpackLimit
from warmstart.model import Problem

T = TypeVar("T")

Looks = tuple[int, int, int]  # size, modification time and inode of a file, or three other numbers that change with it

_PLAIN_PATH = re.compile(r"/[A-Za-z0-9_.~/-]*")  # the same in a URI; quoting is slow
_ZSTD = b"\x28\xb5\x2f\xfd"
_GZIP = b"\x1f\x8b"
_TAR, _TAR_AT = b"ustar", 257
_SQLITE = b"SQLite format 3\x00"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_HEAD, _HEAD_LINES = 16 << 10, 8
_FURTHER, _FURTHER_LINES = 256 << 10, 60  # some files begin with lines that fit any format
_LONGER_HEADS = (112 << 10, 1 << 20, 3 << 20)  # read on for a document whose first element is longer than the head
_TEXT = 256 << 10
_BUFFER = 128 << 10
_BLOCK = 128 << 10  # bytes of lines decoded together
_WHOLE = 32 << 20  # documents up to this size are decoded in one go
_BUFFERED = 2 << 20
_MOST_TIMES = 1_000  # the packed size: copies of one growing transcript shrink to a hundredth
_MAX_PROBLEMS = 1_000
_NO_OBJECT = re.compile(rb"[\s,]*+[!-z|}~]")  # a line whose first value, if there is one, is no object
_raw_document = msgspec.json.Decoder(dict[str, msgspec.Raw] | list[msgspec.Raw])
_raw_list = msgspec.json.Decoder(list[msgspec.Raw])


class Source:
    """A transcript file. Once it is open, problems are collected and never raised.

    `only`: the one session to read of a database; "" is all of them. `whole`: keep texts in full, as far as memory allows.
    """

    local = True  # its path is that of a file on this machine, which has others beside it
    nested = False  # it is a member of an archive

    def __init__(self, path: Path, only: str = "", *, whole: bool = False) -> None:
        self.path, self.only, self.whole = path, only, whole
        self.problems: list[Problem] = []
        self.shown = str(path).encode("utf-8", "replace").decode()

    @property
    def uri(self) -> str:
        return self._file_uri

    @cached_property
    def _file_uri(self) -> str:  # every session of the file asks for it
        absolute = self.path.absolute()
        text = str(absolute)
        return f"file://{text}" if _PLAIN_PATH.fullmatch(text) else absolute.as_uri()

    def report(self, reason: str, line: int | None = None) -> None:
        problem = Problem(self.shown, reason, line)
        if problem in self.problems[-2:]:  # a file is opened several times, and breaks off at the same place
            return
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(problem)
        elif len(self.problems) == _MAX_PROBLEMS:
            self.problems.append(Problem(self.shown, f"more than {_MAX_PROBLEMS} problems; the rest is not listed"))

    def look(self) -> Looks | None:
        """Return size, time and inode of the file, with its SQLite WAL; they change when the file is written."""
        try:
            main = self.path.stat()
        except OSError:
            return None
        try:
            log = (
                self.path.with_name(self.path.name + "-wal").stat()
                if self.path.suffix not in (".jsonl", ".json")
                else None
            )
        except OSError:
            log = None
        if log is None:
            return main.st_size, main.st_mtime_ns, main.st_ino
        return main.st_size + log.st_size, max(main.st_mtime_ns, log.st_mtime_ns), main.st_ino

    def reopen(self) -> Source:
        """Return the same file as a new source, whose problems are its own."""
        return Source(self.path)

    def _open_file(self) -> io.RawIOBase:
        return io.FileIO(self.path)

    def open(self) -> IO[bytes]:
        """Open the file for reading; a zstd or gzip file is unpacked on the fly."""
        try:
            stream = io.BufferedReader(self._open_file(), _BUFFER)
            magic = stream.peek(4)[:4]
        except OSError as error:
            raise SourceError(self.shown, explain(error)) from error
        limit = UnpackLimit(_MOST_TIMES)
        if magic == _ZSTD:
            import zstandard

            decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
            unpacked = Unpacked(stream, decompressor.decompressobj, zstandard.ZstdError, self.report, limit)
        elif magic.startswith(_GZIP):
            import zlib

            unpacked = Unpacked(stream, lambda: zlib.decompressobj(16 + zlib.MAX_WBITS), zlib.error, self.report, limit)
        else:
            return stream
        return io.BufferedReader(unpacked, _BUFFER)

    def _open_head(self) -> IO[bytes]:
        """Open the file for one short read. A file that is not packed needs no buffer for that."""
        try:
            stream = io.FileIO(self.path)
            try:
                is_packed = stream.read(4).startswith((_ZSTD, _GZIP))
                stream.seek(0)
            except OSError:
                stream.close()
                raise
        except OSError as error:
            raise SourceError(self.shown, explain(error)) from error
        if not is_packed:
            return stream
        stream.close()
        return self.open()

    @cached_property
    def head(self) -> SourceHead:
        """The beginning of the file, read as far as the end of its first element."""
        return self._read_head(_HEAD, _HEAD_LINES)

    def _read_head(self, size: int, lines: int) -> SourceHead:
        with self._open_head() as stream:
            try:
                data = stream.read(size)
                head = SourceHead(self.path, data, whole=len(data) < size, lines=lines)
                for further in _LONGER_HEADS:
                    if head.root or len(data) < size or head.sqlite or head.archive:
                        break
                    data += stream.read(further)
                    size += further
                    longer = SourceHead(self.path, data, whole=len(data) < size, lines=lines)
                    if longer.root == "list" or len(data) < size or further == _LONGER_HEADS[-1]:
                        head = longer
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
            read = partial(self._read_on, stream)
            whole = read(_BUFFERED)  # most documents are no longer; asking for more takes a buffer of that size
            if len(whole) == _BUFFERED:
                whole += read(_WHOLE + 1 - _BUFFERED)
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
                lambda size: start.read(size) or read(size), lambda line, reason: self.report(reason, line)
            )
            yield from scanner.pieces(wanted)

    def _read_on(self, stream: IO[bytes], size: int) -> bytes:
        """Return the next bytes of a stream. A part that cannot be read is reported and ends it."""
        try:
            return stream.read(size)
        except OSError as error:
            self.report(f"reading stopped: {explain(error)}")
            return b""


def is_list(value: msgspec.Raw) -> bool:
    """Return whether a raw JSON value is a list."""
    return bytes(memoryview(value)[:1]) == b"["


def _is_tar(data: bytes) -> bool:
    if not data.startswith(_TAR, _TAR_AT):
        return False
    import tarfile  # slow to load

    try:
        tarfile.TarInfo.frombuf(data[: tarfile.BLOCKSIZE], "utf-8", "replace")
    except tarfile.HeaderError:
        return False
    return True


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
        self.zip = data.startswith(_ZIP)
        self.tar = _is_tar(data)
        self.empty = not data.strip()
        self.root = ""  # "lines", "object" or "list"
        self.records: list[dict[str, Any]] = []  # the first lines, the first elements of a list, or the one object
        self.text = ""  # the first characters of a file that is neither a database nor an archive
        if not self.sqlite and not self.archive and not self.empty:
            self.text = data[:_TEXT].decode("utf-8", "replace").lstrip("\ufeff")
            self._read(data, whole, lines)

    def _read(self, data: bytes, whole: bool, most: int) -> None:
        lines = data.lstrip(b"\xef\xbb\xbf \t\r\n").split(b"\n", most)
        complete = [line for line in (lines if whole and len(lines) <= most else lines[:-1]) if line.strip()]
        decoded = [_decode_loosely(line) for line in complete if not _NO_OBJECT.match(line)]
        self.records = [value for value in decoded if isinstance(value, dict)]
        if complete and complete[0].strip() == b"[":
            self._read_document(data, most)
        elif len(complete) == 1 and self.records:
            self.root = "object"
        elif len(self.records) * 2 >= len(complete) and self.records:
            self.root = "lines"
        else:
            self._read_document(data, most)

    def _read_document(self, data: bytes, most: int) -> None:
        """Read the beginning of a document that spans several lines and may go on after the head.

        Of a list only the first elements are read: they may be whole sessions.
        """
        arrays = frozenset(_ARRAYS)
        try:
            self._take_pieces(plain_pieces(data.decode("utf-8", "replace"), arrays), most)
        except NotPlain:
            pieces = Scanner(io.BytesIO(data).read, lambda _line, _reason: None).pieces(arrays)
            self._take_pieces(((key, _decode_loosely(piece)) for key, piece, _line in pieces), most)

    def _take_pieces(self, pieces: Iterator[tuple[str, Any]], most: int) -> None:
        self.root, self.records = "", []
        whole: dict[str, Any] = {}
        for key, value in pieces:
            if key == "":
                self.root = "list"
                if isinstance(value, dict):
                    self.records.append(value)
                    if len(self.records) == most:
                        break
            else:
                self.root = "object"
                if key in _ARRAYS:
                    whole.setdefault(key, []).append(value)
                else:
                    whole[key] = value
        if self.root == "object":
            self.records = [whole]

    @property
    def archive(self) -> bool:
        """Whether the file holds other files."""
        return self.zip or self.tar

    @property
    def first(self) -> dict[str, Any]:
        """The first record, or {} where there is none."""
        return self.records[0] if self.records else {}


_ARRAYS = (
    "messages",
    "simulations",
    "traj",
    "steps",
    "history",
    "trajectory",
    "conversations",
    "items",
    "spans",
    "resourceSpans",
)
