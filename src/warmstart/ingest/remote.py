"""Remote transcripts (`https://`, `s3://`, `gs://`), read by fsspec, which the extra `remote` installs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from warmstart.errors import SourceError
from warmstart.formats import may_be_archive, may_be_transcript
from warmstart.formats.source import Looks, Source
from warmstart.formats.spooled import MAX_SPOOLED, TOO_LARGE, Spool, SpooledName, SpooledSource, hash_number
from warmstart.ingest.skips import OTHER_NAME, Skip
from warmstart.model import Problem

_WEB = ("http", "https")
_EXTRAS = {"http": "remote", "https": "remote", "memory": "remote", "s3": "remote,s3", "gs": "remote,gcs"}  # by scheme
_VERSIONS = ("ETag", "md5Hash", "Content-MD5", "Last-Modified", "LastModified", "mtime", "updated", "created")
_MAX_FILES = 200_000


def is_remote(name: str) -> bool:
    """Return whether a name is an address that fsspec may read. Chained addresses (`a::b`) and others are paths."""
    scheme, mark, _rest = name.partition("://")
    return bool(mark) and scheme.lower() in _EXTRAS


class RemoteFiles:
    """The files of a storage that fsspec reads. Other processes can use it too."""

    def __init__(self, address: str) -> None:
        """Find the storage of an address. Raises SourceError if a package is missing."""
        self.shown = _strip(address)
        self._address = address
        self._scheme = urlsplit(address).scheme.lower()
        with self.explained():
            from fsspec.core import url_to_fs

            self.storage, self.root = url_to_fs(address)

    @property
    def is_web(self) -> bool:
        return self._scheme in _WEB

    def open(self, path: str) -> Any:
        options = {"block_size": 0} if self.is_web else {}  # one request, also of servers without ranges
        return self.storage.open(path, "rb", **options)

    def fetch(self, path: str) -> Spool:
        with self.explained(), self.open(path) as stream:
            return Spool(stream)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Raise SourceError for whatever the storage raises, without the secrets that an address may have."""
        try:
            yield
        except ImportError as error:
            extra = _EXTRAS[self._scheme]
            reason = f"reading {self._scheme}:// needs more packages: pip install 'warmstart[{extra}]'"
            raise SourceError(self.shown, reason) from error
        except FileNotFoundError as error:
            raise SourceError(self.shown, "there is no such file or folder") from error
        except PermissionError as error:
            raise SourceError(self.shown, "permission denied") from error
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".replace(self._address, self.shown)
            raise SourceError(self.shown, f"it cannot be read: {reason}") from error


class RemoteFolder:
    """The transcripts at a remote address: one file, or all files below a folder."""

    def __init__(self, address: str) -> None:
        """List the files. Raises SourceError if there are none, or if a package is missing."""
        self._files = RemoteFiles(address)
        self.uri = self.shown = self._files.shown
        self.problems: list[Problem] = []
        self._root = self._files.root
        with self._files.explained():
            self.single = self._files.is_web or self._files.storage.isfile(self._root)
            self._facts = self._list()

    def look(self) -> Looks | None:
        """Return None: each file shows by itself whether it changed."""
        return None

    def sources(self, skip: Skip) -> Iterator[Source]:
        """Yield the files that may be transcripts; none is fetched before it is opened."""
        for path, facts in self._facts.items():
            name = self._name(path)
            file = PurePosixPath(name.name.replace("\0", ""))
            if not (self.single or may_be_transcript(file) or may_be_archive(file)):
                skip(name.shown, OTHER_NAME)
            elif (_size(facts) or 0) > MAX_SPOOLED:
                skip(name.shown, TOO_LARGE)
            else:
                yield SpooledSource(name, partial(self._files.fetch, path), _find_looks(facts))

    def read_single(self, at_most: int) -> bytes:
        """Return the bytes of the one file at the address."""
        with self._files.explained(), self._files.open(self._root) as stream:
            data = bytearray()
            while len(data) <= at_most and (block := stream.read(1 << 20)):
                data += block
        if len(data) > at_most:
            raise SourceError(self.shown, f"larger than {at_most >> 20} MB")
        return bytes(data)

    def _list(self) -> dict[str, Mapping[str, Any]]:
        storage = self._files.storage
        if self.single:
            return {self._root: storage.info(self._root)}
        found = storage.find(self._root, detail=True)
        if not found:
            raise FileNotFoundError
        if len(found) > _MAX_FILES:
            raise OSError(f"it has more than {_MAX_FILES:,} files; name a smaller folder")
        return dict(sorted(found.items()))

    def _name(self, path: str) -> SpooledName:
        if self.single:
            holder, _mark, name = self.shown.rpartition("/")
        else:
            holder, name = self.shown.rstrip("/"), path.removeprefix(self._root).strip("/")
        return SpooledName(holder, holder, unquote(name), mark="/")


def fetch_file(address: str, at_most: int) -> bytes:
    """Return the bytes of one remote file. Raises SourceError if it is larger than that, or cannot be read."""
    if not is_remote(address):
        raise SourceError(_strip(address), "only https://, s3:// and gs:// addresses of archives can be read")
    return RemoteFolder(address).read_single(at_most)


def _strip(address: str) -> str:
    """Return an address without user, password, query and fragment, which may be secret."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme.lower(), parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _size(facts: Mapping[str, Any]) -> int | None:
    size = facts.get("size")
    return size if isinstance(size, int) else None


def _find_looks(facts: Mapping[str, Any]) -> Looks | None:
    """Return numbers that change with the file; None where the storage has neither a version nor a time."""
    version = next((str(facts[name]) for name in _VERSIONS if facts.get(name)), None)
    return None if version is None else (_size(facts) or 0, 0, hash_number(version))
