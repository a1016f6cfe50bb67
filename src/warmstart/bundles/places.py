"""Where a bundle lies: a git repository, a folder, or an archive on the web or on disk."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Protocol
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from warmstart.atomic_files import lock_file, sync_folder, write_whole
from warmstart.bundles.git import Author, GitRemote, hide_user, is_repository
from warmstart.bundles.items import LARGEST, is_item_path
from warmstart.errors import Refused, SourceError, explain
from warmstart.model import Problem
from warmstart.projects.remotes import normalise_remote

MOST_FILES = 10_000
MOST_BYTES = 64 << 20
ROOTS = ("notes", "templates")  # folders with items; whatever else a repository holds is not looked at
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
_LARGEST_ARCHIVE = 64 << 20


class BundleFiles(Struct, frozen=True):
    """The files of a bundle, by path, and what was refused unread."""

    files: dict[str, bytes]
    problems: tuple[Problem, ...] = ()
    revision: str | None = None  # the commit; None: not in git, or empty


class CommitFacts(Struct, frozen=True, kw_only=True):
    """What a commit says besides its files."""

    message: str
    author: Author = Author()
    now: float


class BundlePlace(Protocol):
    """A place that holds a bundle."""

    shown: str  # its address without a password, the same however it was written

    def read(self) -> BundleFiles:
        """Return the files."""

    def write(self, changes: Mapping[str, bytes], facts: CommitFacts) -> str:
        """Write files and return where they are now. Raises PushRejected if another write came first."""


class _Collecting:
    """Collects the files of a bundle within limits; what is refused becomes a problem."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._bytes = 0
        self.files: dict[str, bytes] = {}
        self.problems: list[Problem] = []

    def admits(self, path: str, size: int, refusal: str | None = None) -> bool:
        """Return whether a file below the folders of items may be read."""
        if refusal is None and not is_item_path(path):
            refusal = "not the name of a note or template"
        if refusal is None and size > LARGEST:
            refusal = f"larger than {LARGEST >> 10} KB"
        if refusal is None and (len(self.files) >= MOST_FILES or self._bytes + size > MOST_BYTES):
            raise SourceError(self._shown, f"it has more than {MOST_FILES:,} files or {MOST_BYTES >> 20} MB")
        if refusal is not None:
            if len(self.problems) < 1_000:
                self.problems.append(Problem(f"{self._shown}: {path[:200]}", refusal))
            return False
        self._bytes += size
        return True

    def done(self, revision: str | None = None) -> BundleFiles:
        return BundleFiles(dict(sorted(self.files.items())), tuple(self.problems), revision)


class GitBundle:
    """A bundle in a git repository."""

    def __init__(self, remote: GitRemote, branch: str | None) -> None:
        self.shown = name_place(remote.shown)
        self._remote = remote
        self._branch = branch
        self._base: tuple[str, str | None] | None = None

    def read(self) -> BundleFiles:
        branch, commit = self._base = self._remote.fetch(self._branch)
        collecting = _Collecting(f"{self.shown} ({branch})")
        wanted = []
        for entry in self._remote.list_entries(commit, *ROOTS) if commit else ():
            if collecting.admits(entry.path, entry.size, _refuse_mode(entry.mode)):
                wanted.append(entry)
                collecting.files[entry.path] = b""
        collecting.files.update(self._remote.read(wanted))
        return collecting.done(commit)

    def write(self, changes: Mapping[str, bytes], facts: CommitFacts) -> str:
        if self._base is None:
            self.read()
        assert self._base is not None
        branch, base = self._base
        commit = self._remote.commit(base, changes, facts.message, facts.author, facts.now)
        self._remote.push(commit, branch)
        return f"branch {branch}, commit {commit[:10]}"


def _refuse_mode(mode: str) -> str | None:
    if mode in ("100644", "100755", "100664"):
        return None
    return {"120000": "a symbolic link", "160000": "a submodule"}.get(mode, f"not a file (mode {mode})")


class FolderBundle:
    """A bundle in a plain folder: of a checkout that you commit yourself, or of a shared disk. Links are not followed."""

    def __init__(self, folder: Path, *, create: bool = False) -> None:
        self.shown = str(folder)
        self._folder = folder
        self._create = create

    def read(self) -> BundleFiles:
        collecting = _Collecting(self.shown)
        if not self._folder.is_dir() and not self._create:
            raise SourceError(self.shown, "there is no such folder")
        for path, size, refusal in self._walk():
            if collecting.admits(path, size, refusal):
                collecting.files[path] = _read_file(self._folder / path)
        return collecting.done()

    def _walk(self) -> Iterator[tuple[str, int, str | None]]:
        for root in ROOTS:
            top = self._folder / root
            if top.is_symlink():
                yield root, 0, "a symbolic link"
                continue
            for folder, folders, names in os.walk(top):
                here = PurePosixPath(Path(folder).relative_to(self._folder).as_posix())
                for name in sorted(folders):
                    if (Path(folder) / name).is_symlink():
                        yield str(here / name), 0, "a symbolic link"
                for name in sorted(names):
                    if name.startswith(".") and name.endswith(".part"):
                        continue  # of a writer that was killed, or writes right now
                    facts = (Path(folder) / name).lstat()
                    yield str(here / name), facts.st_size, None if stat.S_ISREG(facts.st_mode) else "not a plain file"

    def write(self, changes: Mapping[str, bytes], facts: CommitFacts) -> str:
        self._folder.mkdir(parents=True, exist_ok=True)
        with lock_file(self._folder / ".warmstart.lock", wait=True):
            for path, data in sorted(changes.items()):
                target = self._folder / path
                for parent in (target.parent.parent, target.parent):
                    if parent.is_symlink():
                        raise Refused(f"{parent} is a symbolic link; nothing more was written")
                    parent.mkdir(exist_ok=True)
                write_whole(target, data, mode=0o644, synced=True)
                sync_folder(target.parent)
        return f"folder {self.shown}"


def _read_file(path: Path) -> bytes:
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as file:
        return file.read(LARGEST + 1)


class ArchiveBundle:
    """A bundle in a zip or tar archive, which can only be read."""

    def __init__(self, shown: str, fetch: Callable[[], bytes]) -> None:
        self.shown = shown
        self._fetch = fetch

    def read(self) -> BundleFiles:
        collecting = _Collecting(self.shown)
        data = self._fetch()
        try:
            (_read_zip if data.startswith(b"PK") else _read_tar)(data, collecting)
        except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError) as error:
            raise SourceError(self.shown, f"not an archive that can be read: {error}") from error
        return collecting.done()

    def write(self, changes: Mapping[str, bytes], facts: CommitFacts) -> str:
        raise Refused(f"{self.shown} is an archive: push to a folder or a repository, and pack that")


def _drop_top(path: str) -> str | None:
    """Return the path from the folder of items on; archives of repositories put one folder around everything."""
    parts = PurePosixPath(path).parts
    start = next((at for at, part in enumerate(parts[:2]) if part in ROOTS), None)
    return None if start is None or len(parts) < start + 2 else "/".join(parts[start:])


def _read_zip(data: bytes, collecting: _Collecting) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        for info in packed.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            path = None if info.is_dir() else _drop_top(info.filename)
            refusal = None if kind in (0, stat.S_IFREG) else "not a plain file"
            if path is not None and collecting.admits(path, info.file_size, refusal):
                with packed.open(info) as stream:
                    collecting.files[path] = stream.read(LARGEST + 1)


def _read_tar(data: bytes, collecting: _Collecting) -> None:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r|*") as tar:
        for number, member in enumerate(tar):
            if number > 10 * MOST_FILES:
                raise tarfile.TarError(f"more than {10 * MOST_FILES} members")
            path = None if member.isdir() else _drop_top(member.name)
            refusal = None if member.isreg() else "not a plain file"
            if path is not None and collecting.admits(path, member.size, refusal):
                stream = tar.extractfile(member)
                collecting.files[path] = stream.read(LARGEST + 1) if stream else b""


@contextmanager
def open_place(address: str, home: Path, branch: str | None = None, *, create: bool = False) -> Iterator[BundlePlace]:
    """Open the place at an address: an archive's URL or file, a folder, or anything that git takes.

    `create`: a folder that does not exist yet is made when it is written.
    """
    scheme = urlsplit(address).scheme.lower() if "://" in address else ""
    path = _find_path(address) if not scheme else None
    if urlsplit(address).path.lower().endswith(_ARCHIVES) and (scheme or (path and path.is_file())):
        yield ArchiveBundle(hide_user(address), lambda: _fetch(address, path))
    elif path is not None and not is_repository(path) and not _is_remote(address, path):
        if branch is not None:
            raise Refused(f"{path} is a folder, not a repository: --branch means nothing there")
        yield FolderBundle(path, create=create)
    else:
        with GitRemote(str(path) if path is not None and path.exists() else address, home / "bundles") as remote:
            yield GitBundle(remote, branch)


def name_place(address: str) -> str:
    """Return one name for all ways of writing the address of a repository: `github.com/team/notes`, or its folder."""
    if address.startswith("file://"):
        return str(_find_path(unquote(urlsplit(address).path)))
    return normalise_remote(address) or address.rstrip("/")


def _find_path(address: str) -> Path:
    """Return the folder or file that an address without a scheme may mean; git also finds NOTES.git as NOTES."""
    path = Path(address).expanduser()
    bare = path.with_name(f"{path.name}.git") if path.name not in ("", "..") else path
    if not path.exists() and bare.is_dir():
        path = bare
    return path.resolve()


def _is_remote(address: str, path: Path) -> bool:
    """Return whether an address without a scheme is one for SSH: `git@host:team/notes.git`."""
    head, colon, _ = address.partition(":")
    return bool(colon) and not path.exists() and "/" not in head and len(head) > 1


def _fetch(address: str, path: Path | None) -> bytes:
    if path is None:
        from warmstart.ingest.remote import fetch_file

        return fetch_file(address, _LARGEST_ARCHIVE)
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_ARCHIVE + 1)
    except OSError as error:
        raise SourceError(str(path), explain(error)) from error
    if len(data) > _LARGEST_ARCHIVE:
        raise SourceError(str(path), f"larger than {_LARGEST_ARCHIVE >> 20} MB")
    return data
