"""The files of a lake: immutable Parquet files, each named by the hash of its bytes, below TABLE/project=.../month=.../.

A name that does not fit its bytes is a file that was never written to its end. Writing the same rows again writes the same
file, so any number of writers may do the same work, and no clock is compared.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import quote

from msgspec import Struct, field

from warmstart.errors import ConfigError, NotFound, StoreError, WarmstartError
from warmstart.model import Problem

VERSION = 1  # of the tables; files of a newer version are refused, older ones are read with defaults
VERSION_KEY = b"warmstart.lake"
TableName = Literal["sessions", "calls", "digests"]
_NAME = re.compile(r"(?P<name>(?:[0-9a-f]{32}-)?[0-9a-f]{32})\.parquet")
_LONG = 150  # characters of a folder's name
_HASH = 16  # bytes
DAMAGED = "the file is damaged and was left out; delete it, and ingest its transcripts again"


class LakeFile(NamedTuple):
    """A file of a lake."""

    table: TableName
    project: str  # as its folder is named
    month: str  # 2026-11, or unknown
    name: str  # hash of its bytes; digests: hash of what they are made of, and of the bytes
    path: str


class Lake(Struct):
    """A folder of Parquet files, local or at any address that fsspec opens."""

    url: str
    files: Any  # fsspec.AbstractFileSystem
    root: str
    problems: list[Problem] = field(default_factory=list)  # files that were left out, each once
    mended: list[Problem] = field(default_factory=list)  # damaged files that were made again

    def check_exists(self) -> None:
        """Raise an error unless there is a lake: to a reader, a misspelt address would look like an empty one."""
        folders = (posixpath.join(self.root, name) for name in (*get_args(TableName), "deleted"))
        with self._asking():
            is_there, is_lake = self.files.exists(self.root), any(map(self.files.exists, folders))
        if not is_lake:
            found = "this is no lake" if is_there else "there is no such lake"
            raise NotFound(f"{self.url}: {found}; fill one: warmstart ingest PATH --lake {self.url}")

    def report(self, problems: Iterable[Problem]) -> None:
        """Remember files that were left out, each once."""
        for problem in problems:
            if all(problem.path != known.path for known in self.problems):
                self.problems.append(problem)

    def list_files(self, table: TableName) -> Sequence[LakeFile]:
        """Return the files of a table, sorted. Unfinished files have other names."""
        base = posixpath.join(self.root, table)
        found = []
        for path in self._find(base):
            parts = path[len(base) :].strip("/").split("/")
            if len(parts) == 3 and (match := _NAME.fullmatch(parts[2])):
                project, month = (part.partition("=")[2] for part in parts[:2])
                found.append(LakeFile(table, project, month, match["name"], path))
        return sorted(found)

    def write(self, table: TableName, folder: str, month: str, body: bytes, made_of: str = "") -> LakeFile:
        """Write a file unless it is there and whole. It appears under its name only when it is complete.

        `folder`: of the project, as `name_folder` names it.
        """
        digest = _hash(body)
        name = f"{made_of}-{digest}" if made_of else digest
        place = posixpath.join(self.root, table, f"project={folder}", f"month={month}")
        file = LakeFile(table, folder, month, name, posixpath.join(place, f"{name}.parquet"))
        with self._asking():
            if not (self.files.exists(file.path) and _hash(self.files.cat_file(file.path)) == digest):
                self._make_folder(place)
                self._put(file.path, body)
        return file

    def _put(self, path: str, body: bytes) -> None:
        if not self._is_local:
            self.files.pipe_file(path, body)  # a bucket shows an object only when it is complete
            return
        part = f"{path}.{secrets.token_hex(4)}.part"
        try:
            self.files.pipe_file(part, body)
            self.files.mv(part, path)
        except OSError:
            with suppress(OSError):
                self.files.rm_file(part)
            raise

    def read(self, file: LakeFile) -> bytes | None:
        """Return the bytes of a file; None, and a problem, if they are not those that were written."""
        try:
            with self._asking(may_be_gone=True):
                body = self.files.cat_file(file.path)
        except FileNotFoundError:
            self.report([Problem(file.path, "the file was removed while the lake was read; run the command again")])
            return None
        except StoreError as error:
            if not self._is_local:  # the bucket does not answer, whichever the file
                raise
            self.report([Problem(file.path, f"the file was left out: {error.__cause__}")])
            return None
        if _hash(body) != file.name.rpartition("-")[2]:
            self.report([Problem(file.path, DAMAGED)])
            return None
        assert isinstance(body, bytes)
        return body

    def delete(self, files: Iterable[LakeFile]) -> None:
        """Delete files; those that are gone already are no error."""
        for file in files:
            with suppress(FileNotFoundError), self._asking(may_be_gone=True):
                self.files.rm_file(file.path)

    def list_deleted(self) -> set[str]:
        """Return the keys of the sessions that a person deleted."""
        return {posixpath.basename(path) for path in self._find(posixpath.join(self.root, "deleted"))}

    def mark_deleted(self, key: str) -> None:
        """Remember that a session was deleted, so that no writer brings it back."""
        base = posixpath.join(self.root, "deleted")
        with self._asking():
            self._make_folder(base)
            self.files.pipe_file(posixpath.join(base, key), b"")

    def _find(self, base: str) -> Sequence[str]:
        with self._asking():
            self.files.invalidate_cache()
            return self.files.find(base) if self.files.exists(base) else ()

    def _make_folder(self, path: str) -> None:
        """Make a folder, except in a bucket: that has none, and a bucket that is missing would be made with them."""
        if self._is_local or self.root.startswith("/"):
            self.files.makedirs(path, exist_ok=True)

    @contextmanager
    def _asking(self, *, may_be_gone: bool = False) -> Iterator[None]:
        """Raise StoreError for whatever a file system raises; FileNotFoundError if the file may be gone."""
        try:
            yield
        except Exception as error:
            if may_be_gone and isinstance(error, FileNotFoundError):
                raise
            reason = (
                (error.strerror or str(error)) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
            )
            raise StoreError(f"{self.url}: {reason}") from error

    @property
    def _is_local(self) -> bool:
        protocol = self.files.protocol
        return "file" in ((protocol,) if isinstance(protocol, str) else protocol)


def _hash(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=_HASH).hexdigest()


def open_lake(url: str) -> Lake:
    """Open a lake at a folder or an address such as s3://bucket/lake. It is made when the first file is written."""
    try:
        import pyarrow.parquet  # noqa: F401
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise ConfigError("a lake needs pyarrow and fsspec; install them: pip install 'warmstart[lake]'") from error
    try:
        files, root = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise ConfigError(f"{url}: {error}") from error
    lake = Lake(url, files, root.rstrip("/"))
    if not lake.root:
        raise ConfigError(f"{url}: names no folder or bucket; give one, such as s3://BUCKET/lake")
    return lake


def name_folder(project: str) -> str:
    """Return the name of a project's folder: readable, and never a path of its own."""
    name = quote(project or "none", safe="")
    if len(name) <= _LONG and name not in (".", ".."):
        return name
    return f"{name[: _LONG // 2]}-{hashlib.blake2b(project.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


class NewerLake(WarmstartError):
    """A file of the lake was written by a newer Warmstart; upgrade this one."""
