"""A zip archive whose members are read in place: nothing is extracted, and the bytes unpacked are bounded.

The directory at the end of an archive names its members. An archive that was cut off has none; its members are then found
one after the other, by the header in front of each.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from warmstart.errors import SourceError, explain
from warmstart.formats.source import Source
from warmstart.formats.unpacked import Unpacked, UnpackLimit

_STORED, _DEFLATED, _ZSTD = 0, 8, 93
_ENCRYPTED = 1
_HEADER = struct.Struct("<4s5H3I2H")
_MAGIC = b"PK\x03\x04"
_MAX_DIRECTORY = 8 << 20  # bytes of the directory: well over 100,000 members
_MAX_MEMBERS = 200_000
_MOST_TIMES = 200  # the packed size, for all members together
_MAX_NAME = 200
_BUFFER = 128 << 10
_BROKEN = (zipfile.BadZipFile, NotImplementedError, struct.error, UnicodeError, ValueError, OSError)


class Member(NamedTuple):
    """A file in an archive."""

    name: str
    offset: int  # of its header
    size: int  # bytes, packed
    method: int
    flags: int


class Archive:
    """The members of one zip file. Problems are reported to its source."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._limit = UnpackLimit(_MOST_TIMES)

    def members(self) -> dict[str, Member]:
        """Return the members by name; of several with one name the last."""
        members, problem = list_members(self._source.path)
        if problem:
            self._source.report(problem)
        return members

    def open(self, member: Member) -> Source:
        """Return a member as a source of its own, with the archive's path and problems."""
        return _MemberSource(self._source, member, self._limit)


def list_members(path: Path) -> tuple[dict[str, Member], str | None]:
    """Return the members of a zip file, and the problem with its directory. Raises SourceError if it cannot be opened."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise SourceError(str(path), explain(error)) from error
    with file:
        try:
            with zipfile.ZipFile(_Bounded(file)) as packed:
                return {
                    info.filename: Member(
                        info.filename, info.header_offset, info.compress_size, info.compress_type, info.flag_bits
                    )
                    for info in packed.infolist()
                }, None
        except _BROKEN as error:
            members = {member.name: member for member in _scan(file)}
            return members, f"the archive's directory cannot be read ({error}); {len(members)} files in it were found"


class _Bounded(io.RawIOBase):
    """A file that refuses to be read in huge pieces, such as a directory of millions of members."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        wanted = size if size >= 0 else self._remaining()
        if wanted > _MAX_DIRECTORY:
            raise OSError(f"it is larger than {_MAX_DIRECTORY >> 20} MB")
        return self._file.read(size)

    def _remaining(self) -> int:
        at = self._file.tell()
        end = self._file.seek(0, io.SEEK_END)
        self._file.seek(at)
        return end - at

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


def _scan(file: IO[bytes]) -> Iterator[Member]:
    """Yield the members by the header in front of each, as far as the headers name the members' sizes."""
    try:
        at = file.seek(0)
        for _ in range(_MAX_MEMBERS):
            member, start = _read_header(file, at)
            if member is None:
                return
            yield member
            at = start + member.size
    except OSError:
        return


def _read_header(file: IO[bytes], at: int) -> tuple[Member | None, int]:
    """Return the member whose header stands there, and where its content begins."""
    file.seek(at)
    data = file.read(_HEADER.size)
    if len(data) < _HEADER.size or not data.startswith(_MAGIC):
        return None, at
    _magic, _version, flags, method, _time, _date, _crc, size, _unpacked, name_size, extra_size = _HEADER.unpack(data)
    name = file.read(name_size).decode("utf-8", "replace")
    return Member(name, at, size, method, flags), at + _HEADER.size + name_size + extra_size


class _MemberSource(Source):
    """A member of an archive. Its problems are the archive's."""

    def __init__(self, archive: Source, member: Member, limit: UnpackLimit) -> None:
        super().__init__(archive.path, whole=archive.whole)
        self._archive = archive
        self._member = member
        self._limit = limit

    @property
    def uri(self) -> str:
        return self._archive.uri

    def report(self, reason: str, line: int | None = None) -> None:
        self._archive.report(f"{show_name(self._member.name)}: {reason}", line)

    def open(self) -> IO[bytes]:
        member = self._member
        try:
            file = self.path.open("rb")
        except OSError as error:
            raise SourceError(self.shown, explain(error)) from error
        try:
            header, start = _read_header(file, member.offset)
            file.seek(start)
        except (OSError, ValueError) as error:
            file.close()
            self.report(f"it cannot be found in the archive: {error}")
            return io.BytesIO()
        packed = io.BufferedReader(_Part(file, member.size), _BUFFER)
        unpack = None if header is None or member.flags & _ENCRYPTED else _UNPACKERS.get(member.method)
        if unpack is None:
            packed.close()
            self.report("it is encrypted, or packed in an unknown way")
            return io.BytesIO()
        new_frame, broken = unpack()
        return io.BufferedReader(Unpacked(packed, new_frame, broken, self.report, self._limit), _BUFFER)


class _Part(io.RawIOBase):
    """The next bytes of a file, up to a size."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(min(len(buffer), self._left))
        self._left -= len(data)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


class _Stored:
    """A frame that is not packed."""

    unused_data = b""
    eof = True

    def decompress(self, data: bytes) -> bytes:
        return data


def _unpack_zstd() -> tuple[Callable[[], Any], type[Exception]]:
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj, zstandard.ZstdError


_UNPACKERS: dict[int, Callable[[], tuple[Callable[[], Any], type[Exception]]]] = {
    _STORED: lambda: (_Stored, zlib.error),
    _DEFLATED: lambda: (lambda: zlib.decompressobj(-zlib.MAX_WBITS), zlib.error),
    _ZSTD: _unpack_zstd,
}


def show_name(name: str) -> str:
    """Return a member's name as messages and addresses show it: one line, not too long."""
    return "".join(c if c.isprintable() else "\ufffd" for c in name[:_MAX_NAME])
