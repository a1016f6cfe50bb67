"""Contents packed with zstd, each in a file named by the SHA-256 of the content: the same content is kept once."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import zstandard
from msgspec import Struct

from warmstart.atomic_files import sweep_unfinished, sync_folder, write_beside
from warmstart.errors import SourceError, explain

_LEVEL = 10  # a third smaller than the default level, and still over 20 MB a second
_CHUNK = 1 << 20
_ENDING = ".zst"
_YOUNG = 60.0  # seconds for which a content without an entry may still get one


class PackedContent(Struct, frozen=True):
    """A content that was packed."""

    digest: str
    size: int  # bytes of the content
    packed: int  # bytes of its file
    beginnings: frozenset[str] = frozenset()  # digests of the beginnings that were asked for


class PackedContents:
    """A folder of packed contents."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, chunks: Iterable[bytes], lengths: Collection[int] = ()) -> PackedContent:
        """Pack a content. It survives a power cut once this returns. `lengths`: of the beginnings to take digests of."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        meter = _Meter(lengths)
        with write_beside(self._folder / "content", _pack(meter.pass_on(chunks)), synced=True) as unfinished:
            digest = meter.whole.hexdigest()
            file = self._file(digest)
            file.parent.mkdir(mode=0o700, exist_ok=True)
            packed = unfinished.stat().st_size
            unfinished.replace(file)
        sync_folder(file.parent)
        sync_folder(self._folder)
        return PackedContent(digest, meter.size, packed, frozenset(meter.beginnings))

    def read(self, digest: str) -> Iterator[bytes]:
        """Yield a content. Raises SourceError if it is missing, or at its end if it is not what was packed."""
        file, seen = self._file(digest), hashlib.sha256()
        try:
            with file.open("rb") as stream:
                for chunk in zstandard.ZstdDecompressor().read_to_iter(stream, read_size=_CHUNK):
                    seen.update(chunk)
                    yield chunk
        except OSError as error:
            raise SourceError(str(file), explain(error)) from error
        except zstandard.ZstdError as error:
            raise SourceError(str(file), f"cannot be unpacked: {error}") from error
        if seen.hexdigest() != digest:
            raise SourceError(str(file), "its content has changed since it was archived")

    def delete(self, digest: str) -> None:
        """Delete a content."""
        self._file(digest).unlink(missing_ok=True)

    def sweep(self, used: Collection[str]) -> int:
        """Delete the contents that no entry uses, left by killed writers; return how many there were."""
        swept = 0
        sweep_unfinished(self._folder)
        for file in self._folder.glob(f"??/*{_ENDING}"):
            with suppress(OSError):
                if file.stem not in used and time.time() - file.stat().st_mtime > _YOUNG:
                    file.unlink()
                    swept += 1
        return swept

    def _file(self, digest: str) -> Path:
        return self._folder / digest[:2] / f"{digest}{_ENDING}"


class _Meter:
    """Takes size and digests of a content that passes by."""

    def __init__(self, lengths: Collection[int]) -> None:
        self.whole = hashlib.sha256()
        self.size = 0
        self.beginnings: list[str] = []
        self._lengths = sorted(set(lengths))

    def pass_on(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in itertools.chain((b"",), chunks):
            start = 0
            while self._lengths and self._lengths[0] <= self.size + len(chunk) - start:
                end = start + self._lengths.pop(0) - self.size
                self._take(chunk[start:end])
                self.beginnings.append(self.whole.hexdigest())
                start = end
            self._take(chunk[start:])
            yield chunk

    def _take(self, part: bytes) -> None:
        self.whole.update(part)
        self.size += len(part)


def _pack(chunks: Iterable[bytes]) -> Iterator[bytes]:
    packer = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compressobj()
    for chunk in chunks:
        yield packer.compress(chunk)
    yield packer.flush()
