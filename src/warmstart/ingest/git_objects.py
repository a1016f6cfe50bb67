"""The objects and refs of a git repository, read so that the repository itself can run nothing.

`git` runs in an empty repository of ours and only borrows the objects: it sees neither the configuration nor the hooks nor
the attributes of the other repository, fetches nothing, and writes nothing there. Refs are read from their files.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import IO, NamedTuple, Self, cast

from warmstart.formats.spooled import Spool
from warmstart.projects.disk import build_environment, find_common

_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?$")
_REF = re.compile(r"(?!/)(?!.*(?:\.\.|//|@\{|\.lock$|/$|/\.))[^\x00-\x20~^:?*\[\\\x7f]{1,200}$")
_PACKED = re.compile(r"^([0-9a-f]{40,64}) (refs/\S+)$", re.M)
_LISTED = re.compile(rb"\d{6} blob ([0-9a-f]+) +(\d+|BAD)\t(.+)", re.S)
_MAX_LISTING = 256 << 20
_MAX_REFS = 64 << 20
_MAX_LINKS = 5
_PATIENCE = 120  # seconds that git may take to answer


class GitEntry(NamedTuple):
    """A file on a branch."""

    id: str
    size: int  # -1: the object is missing
    path: str  # written by others; never used as a path here


def find_repository(path: Path) -> Path | None:
    """Return the folder with a repository's objects and refs: of a checkout, a worktree or a bare repository."""
    try:
        common = find_common(path / ".git") or path
        return common if (common / "objects").is_dir() and (common / "HEAD").is_file() else None
    except ValueError:
        return None


def list_refs(folder: Path) -> dict[str, str]:
    """Return the commit of each ref of a repository. Raises OSError if it keeps refs in an unknown way."""
    if (folder / "reftable").is_dir():
        raise OSError("the repository keeps its refs in a reftable, which cannot be read")
    refs = {name: commit for commit, name in _PACKED.findall(_read_text(folder / "packed-refs"))}
    root = folder / "refs"
    for file in root.rglob("*"):
        if file.is_file() and (commit := _follow(folder, file.relative_to(folder).as_posix(), refs)):
            refs[file.relative_to(folder).as_posix()] = commit
    return refs


def resolve_ref(folder: Path, name: str) -> tuple[str, str] | None:
    """Return the full name and the commit of a branch, tag or commit; None where there is none."""
    if _ID.match(name):
        return name, name
    if not _REF.match(name):
        return None
    refs = list_refs(folder)
    for prefix in ("", "refs/", "refs/heads/", "refs/tags/", "refs/remotes/"):
        if commit := refs.get(prefix + name) or (_follow(folder, name, refs) if name == "HEAD" else None):
            return prefix + name, commit
    return None


def _follow(folder: Path, name: str, packed: dict[str, str]) -> str | None:
    """Return the commit of a ref that may name another one."""
    for _ in range(_MAX_LINKS):
        if not _REF.match(name):
            return None
        text = _read_text(folder / name, 1 << 10).strip()
        if not text.startswith("ref:"):
            return text if _ID.match(text) else packed.get(name)
        name = text.removeprefix("ref:").strip()
    return None


def _read_text(path: Path, most: int = _MAX_REFS) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(most).decode("utf-8", "replace")


class GitObjects:
    """The objects of a repository, read by `git`. Use it as a context."""

    def __init__(self, folder: Path, some_id: str) -> None:
        """`some_id`: an id of the repository, whose length shows how its objects are named."""
        self._objects = folder / "objects"
        self._name = "sha256" if len(some_id) > 40 else "sha1"
        self._batch: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._own = tempfile.TemporaryDirectory(prefix="warmstart-")
        own = Path(self._own.name)
        (own / "refs").mkdir()
        (own / "HEAD").write_text("ref: refs/heads/none\n")
        (own / "config").write_text(
            f"[core]\nrepositoryformatversion = 1\nbare = true\n[extensions]\nobjectformat = {self._name}\n"
        )
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self._stop()
        self._own.cleanup()

    def _stop(self) -> None:
        process, self._batch = self._batch, None
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    with suppress(BrokenPipeError):
                        pipe.close()
            process.wait()

    def list_files(self, commit: str) -> list[GitEntry]:
        """Return the files of a commit. Raises OSError if they cannot be listed."""
        process = self._start("ls-tree", "-r", "-l", "-z", "--full-tree", commit)
        timer = Timer(_PATIENCE, process.kill)
        timer.start()
        try:
            with process:
                listing = process.stdout.read(_MAX_LISTING + 1) if process.stdout else b""
                if len(listing) > _MAX_LISTING:
                    process.kill()
                    raise OSError(f"the branch lists more than {_MAX_LISTING >> 20} MB of files")
        finally:
            timer.cancel()
        if process.returncode:
            raise OSError(f"git cannot list the files of {commit[:12]}; the repository is damaged or incomplete")
        found = filter(None, (_LISTED.match(line) for line in listing.split(b"\0")))
        return [
            GitEntry(id.decode(), int(size) if size.isdigit() else -1, path.decode("utf-8", "replace"))
            for id, size, path in (entry.groups() for entry in found)
        ]

    def read(self, entry: GitEntry) -> bytes:
        """Return the content of a small file. Raises OSError if it cannot be read."""
        spool = self.spool([entry])
        return spool.read_at(0, spool.size)

    def spool(self, parts: list[GitEntry]) -> Spool:
        """Return the content of a file in several parts, each of which ends a line. Raises OSError if one is missing."""
        try:
            return Spool(cast("IO[bytes]", _Joined(self, parts)))
        except OSError:
            self._stop()  # the rest of an answer may be left in the pipe
            raise

    def begin(self, id: str) -> int:
        """Ask for an object and return its size; its bytes and a newline follow."""
        if self._batch is None:
            self._batch = self._start("cat-file", "--batch", stdin=subprocess.PIPE)
        reader, writer = self._batch.stdout, self._batch.stdin
        if reader is None or writer is None:
            raise OSError("git has no pipes")
        writer.write(id.encode() + b"\n")
        writer.flush()
        answer = self.read_answer(None).split()
        if len(answer) != 3 or not answer[2].isdigit():
            raise OSError(f"the object {id[:12]} cannot be read; the repository is damaged or incomplete")
        return int(answer[2])

    def read_answer(self, size: int | None) -> bytes:
        """Return the next line, or the next bytes, of git's answer. Raises OSError if it ends early or hangs."""
        process = self._batch
        if process is None or process.stdout is None:
            raise OSError("git is not running")
        timer = Timer(_PATIENCE, process.kill)
        timer.start()
        try:
            answer = process.stdout.readline(1 << 10) if size is None else process.stdout.read(size)
        finally:
            timer.cancel()
        if not answer and size != 0:
            raise OSError("git ended before its answer was complete; the object is damaged")
        return answer

    def _start(self, *arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        environment = build_environment() | {
            "GIT_DIR": self._own.name,
            "GIT_OBJECT_DIRECTORY": str(self._objects.absolute()),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ALLOW_PROTOCOL": "none",
        }
        try:
            return subprocess.Popen(
                ["git", "--no-replace-objects", *arguments],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd=self._own.name,
            )
        except FileNotFoundError as error:
            raise OSError("git is not installed, or not on the path") from error


class _Joined(io.RawIOBase):
    """The bytes of several objects, one after the other, with a newline after each but the last."""

    def __init__(self, objects: GitObjects, parts: list[GitEntry]) -> None:
        self._objects = objects
        self._waiting = list(parts)
        self._left = 0

    def read(self, size: int = -1) -> bytes:
        while not self._left:
            if not self._waiting:
                return b""
            self._left = self._objects.begin(self._waiting.pop(0).id) + 1
        data = self._objects.read_answer(min(size, self._left))
        self._left -= len(data)
        return data if self._left or self._waiting else data[:-1]
