"""Archives of transcripts, read as folders: tar (also packed by zstd or gzip) and zip.

Members are read one after the other; nothing is extracted under a name that the archive chose. The bytes unpacked, the
number of members and the depth are limited: an archive inside an archive is skipped.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import IO, cast

from warmstart.errors import SourceError
from warmstart.formats import inspect_log, may_be_archive, may_be_transcript
from warmstart.formats.archive import Archive, show_name
from warmstart.formats.source import Looks, Source
from warmstart.formats.spooled import MAX_SPOOLED, TOO_LARGE, Spool, SpooledName, SpooledSource
from warmstart.ingest.skips import LINK, NESTED, OTHER_NAME, Skip

_MAX_MEMBERS = 200_000
_MAX_HEADER = 8 << 20  # bytes of the names and attributes in front of a member
_CHUNK = 256 << 10
_BROKEN = (tarfile.TarError, OSError, RecursionError, ValueError, OverflowError)


class HeldArchive:
    """The transcripts in one archive. Problems are reported to its source."""

    single = False

    def __init__(self, source: Source) -> None:
        self._source = source
        self.uri = source.uri
        self.shown = source.shown
        self.problems = source.problems

    def look(self) -> Looks | None:
        """Return numbers that change with the archive."""
        return self._source.look()

    def sources(self, skip: Skip) -> Iterator[Source]:
        """Yield the members that may be transcripts."""
        yield from self._read_tar(skip) if self._source.head.tar else self._read_zip(skip)

    def _hold(self, name: str, spool: Spool) -> Source:
        source = SpooledSource(SpooledName(self.uri, self.shown, name), lambda: spool, spool.looks)
        source.nested = True
        return source

    def _read_tar(self, skip: Skip) -> Iterator[Source]:
        try:
            with self._source.open() as packed:
                stream = _Forward(packed)
                with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r:", errors="replace") as archive:
                    yield from self._read_members(archive, stream, skip)
        except _BROKEN as error:
            self._source.report(f"the archive cannot be read on: {error}")

    def _read_members(self, archive: tarfile.TarFile, stream: _Forward, skip: Skip) -> Iterator[Source]:
        for _ in range(_MAX_MEMBERS):
            member = archive.next()
            if member is None:
                if not stream.ended:
                    self._source.report("the archive is damaged or cut off; what follows was not read")
                return
            if member.isdir():
                continue
            if reason := _refuse(member):
                skip(f"{self.shown}!/{show_name(member.name)}", reason)
                continue
            stream.seek(member.offset_data)
            spool = Spool(cast("IO[bytes]", _Window(stream, member.size)))
            source = self._hold(member.name, spool)
            if spool.size < member.size:
                source.report("the archive is cut off inside of this file")
            yield source
        self._source.report(f"it has more than {_MAX_MEMBERS:,} members; the rest was not read")

    def _read_zip(self, skip: Skip) -> Iterator[Source]:
        archive = Archive(self._source)
        for count, (name, member) in enumerate(archive.members().items()):
            if count >= _MAX_MEMBERS:
                self._source.report(f"it has more than {_MAX_MEMBERS:,} members; the rest was not read")
                return
            if name.endswith("/"):
                continue
            if reason := _refuse_name(name):
                skip(f"{self.shown}!/{show_name(name)}", reason)
                continue
            try:
                with archive.open(member).open() as stream:
                    spool = Spool(stream)
            except (SourceError, OSError) as error:
                self._source.report(f"{show_name(name)}: {error}")
                continue
            yield self._hold(name, spool)


def open_archive(source: Source) -> HeldArchive | None:
    """Return the archive of a source; None for a file that holds no others, and for an archive that has its own reader."""
    if not source.head.archive or inspect_log.sniff(source.head):
        return None
    return HeldArchive(source)


def _refuse(member: tarfile.TarInfo) -> str | None:
    """Return why a member is not read."""
    if not member.isreg() or member.issparse():
        return LINK
    return TOO_LARGE if member.size > MAX_SPOOLED else _refuse_name(member.name)


def _refuse_name(name: str) -> str | None:
    file = PurePosixPath(name.replace("\0", ""))
    if may_be_transcript(file):
        return None
    if not may_be_archive(file):
        return OTHER_NAME
    packed = file.suffix.lower() == ".gz" and may_be_transcript(file.with_suffix(""))
    return None if packed else NESTED


class _Forward(io.RawIOBase):
    """A stream that can only go forward, for `tarfile`: an archive that points back is damaged or hostile."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._at = 0
        self._last = b""

    @property
    def ended(self) -> bool:
        """Whether the last block read is the one that ends an archive."""
        return len(self._last) == tarfile.BLOCKSIZE and not self._last.strip(b"\0")

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MAX_HEADER:
            raise OSError(f"the header of a member is larger than {_MAX_HEADER >> 20} MB")
        self._last = self._stream.read(size)
        self._at += len(self._last)
        return self._last

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or offset < self._at:
            raise OSError("a member lies in front of its header")
        while self._at < offset and self.read(min(_CHUNK, offset - self._at)):
            pass
        return self._at

    def tell(self) -> int:
        return self._at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


class _Window(io.RawIOBase):
    """The next bytes of a stream, up to a size."""

    def __init__(self, stream: _Forward, size: int) -> None:
        self._stream = stream
        self._left = size

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(min(self._left, size))
        self._left -= len(data)
        return data
