"""A transcript that is no file of its own: a member of an archive, an object of a git repository, a remote file.

Its bytes are read once into a spool: a buffer in memory, or an unnamed temporary file where they are many. Its name comes
from elsewhere and is never used as a path.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import quote

from warmstart.errors import SourceError, explain
from warmstart.formats.archive import show_name
from warmstart.formats.source import Looks, Source

MAX_SPOOLED = 2 << 30  # bytes of one transcript
TOO_LARGE = f"larger than {MAX_SPOOLED >> 30} GB"

_IN_MEMORY = 4 << 20
_CHUNK = 256 << 10
_NEEDS_FILE = (b"SQLite format 3\x00", b"PK\x03\x04", b"PK\x05\x06")  # their readers need a file on disk
_MAX_PARTS, _MAX_PART = 40, 100


def hash_number(text: str) -> int:
    """Return a number that stands for a text, of a size that the store can keep."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()) >> 1


class Spool:
    """Bytes that can be read several times. The temporary file goes when the spool does."""

    def __init__(self, stream: IO[bytes], most: int = MAX_SPOOLED) -> None:
        """Read the stream to its end. Raises OSError where it cannot be read, or has more than `most` bytes."""
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed with the spool
        self._closer = weakref.finalize(self, self._file.close)
        self._digest = hashlib.blake2b(digest_size=8)
        self.size = 0
        while chunk := stream.read(_CHUNK):
            self.size += len(chunk)
            if self.size > most:
                raise OSError(TOO_LARGE if most == MAX_SPOOLED else f"larger than {most} bytes")
            self._digest.update(chunk)
            self._file.write(chunk)

    @property
    def looks(self) -> Looks:
        """Numbers that change with the content."""
        return self.size, 0, int.from_bytes(self._digest.digest()) >> 1

    def read_at(self, offset: int, size: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(size)


class _SpoolView(io.RawIOBase):
    """A spool, read from its beginning."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._spool.read_at(self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class SpooledName(NamedTuple):
    """How a transcript that is no file is named."""

    holder: str  # the address of the archive, branch or folder that holds it
    holder_shown: str  # the same as messages show it
    name: str  # its name there, written by others
    mark: str = "!/"  # stands between the two

    @property
    def uri(self) -> str:
        return f"{self.holder}{self.mark}{quote(self.name, errors='replace')}"

    @property
    def shown(self) -> str:
        return f"{self.holder_shown}{self.mark}{show_name(self.name)}"


class SpooledSource(Source):
    """A transcript that is read through a spool, which is filled when the transcript is first opened."""

    local = False

    def __init__(self, name: SpooledName, content: Callable[[], Spool], looks: Looks | None) -> None:
        super().__init__(_make_harmless(name.name))
        self._uri = name.uri
        self._content = content
        self._looks = looks
        self._spool: Spool | None = None
        self.shown = name.shown.encode("utf-8", "replace").decode()

    @property
    def uri(self) -> str:
        return self._uri

    def look(self) -> Looks | None:
        return self._looks

    def reopen(self) -> Source:
        again = SpooledSource(SpooledName("", "", ""), self._fill, self._looks)
        again.path, again._uri, again.shown = self.path, self._uri, self.shown
        return again

    def _fill(self) -> Spool:
        if self._spool is None:
            try:
                self._spool = self._content()
            except OSError as error:
                raise SourceError(self.shown, explain(error)) from error
            if self._spool.read_at(0, 16).startswith(_NEEDS_FILE):
                self.path = self._write_file(self._spool)
        return self._spool

    def _open_file(self) -> io.RawIOBase:
        return _SpoolView(self._fill())

    def _open_head(self) -> IO[bytes]:
        return self.open()

    def _write_file(self, spool: Spool) -> Path:
        """Copy the content to a temporary file with a name of ours, for the lifetime of this source."""
        folder = tempfile.mkdtemp(prefix="warmstart-")
        weakref.finalize(self, shutil.rmtree, folder, True)
        file = Path(folder, "content.db")
        with file.open("wb") as copy:
            shutil.copyfileobj(io.BufferedReader(_SpoolView(spool), _CHUNK), copy, _CHUNK)
        return file


def _make_harmless(name: str) -> Path:
    """Return a path that has the name's parts but can never exist: readers take hints from names."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    kept = ("".join(c if c.isprintable() and c != ":" else "_" for c in part)[-_MAX_PART:] for part in parts)
    return Path(os.devnull, *list(kept)[-_MAX_PARTS:])
