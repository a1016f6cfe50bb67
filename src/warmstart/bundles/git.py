"""A git repository that holds a bundle, read and written without ever checking a file out.

`git` runs as a process, in an empty repository of our own: files are read as objects and written as a commit, so that
neither links, submodules, attributes, hooks nor settings of the fetched repository can act. What it fetches is bounded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from msgspec import Struct

from warmstart import lazy_regex as re
from warmstart.errors import Refused, SourceError
from warmstart.projects.disk import build_environment

_PATIENCE = 300.0  # seconds for one git command
_MAX_PACK = 256 << 20  # bytes that a fetch may write
_FULL = 1 << 20  # bytes that are free on a full disk, at most
_MAX_LISTED = 8 << 20  # bytes of a listing
_BASE, _NEW = "refs/warmstart/base", "refs/warmstart/new"
_BRANCH = re.compile(r"(?!-)(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)))[\w./+-]{1,200}(?<![./])")
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_USER = re.compile(r"(?<=://)[^/@\s]*@")  # may hold a password
# Settings that win over those of the user and of any repository.
_SAFE = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.bigFileThreshold": "1m",  # larger files are streamed, never held in memory
    "fetch.unpackLimit": "1",
    "fetch.fsckObjects": "true",
    "transfer.fsckObjects": "true",
    "fetch.recurseSubmodules": "false",
    "push.recurseSubmodules": "no",
    "push.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "http.lowSpeedLimit": "100",
    "http.lowSpeedTime": "60",
}
_AT_A_PATH = "-c core.hooksPath=/dev/null -c receive.autogc=false -c gc.auto=0 -c core.fsmonitor=false"
_KEPT = ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_SSL_CAINFO", "GIT_CONFIG_GLOBAL")  # how the user reaches it
_PROTOCOLS = "file:git:http:https:ssh"


class TreeEntry(NamedTuple):
    """One entry of a commit's tree."""

    mode: str
    kind: str  # blob, commit (a submodule)
    object: str
    size: int  # bytes; -1: unknown
    path: str


class Author(Struct, frozen=True):
    """The identity on commits. The default names nobody."""

    name: str = "warmstart"
    email: str = "bundle@warmstart.invalid"


class PushRejected(Refused):
    """Somebody else pushed in the meantime."""


def hide_user(address: str) -> str:
    """Return an address without user and password."""
    return _USER.sub("", address)


class GitRemote:
    """A repository at an address, and our own empty one beside it. Use it as a context manager."""

    def __init__(self, address: str, folder: Path) -> None:
        """`folder`: under which the repository of our own is made, for as long as this is open."""
        if address.startswith("-") or "\0" in address or "::" in address.split("/", 1)[0]:
            raise Refused(f"{address[:200]!r} is not the address of a repository")
        self.address, self.shown = address, hide_user(address)
        self._folder = folder
        self._is_path = address.startswith("file://") or ("://" not in address and Path(address).exists())

    def __enter__(self) -> GitRemote:
        if shutil.which("git") is None:
            raise Refused("git is not installed; use a folder for the bundle, or install git")
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._own = Path(tempfile.mkdtemp(prefix="git-", dir=self._folder))
        try:
            self._run("init", "--quiet", "--bare", "--template=", str(self._own))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        shutil.rmtree(self._own, ignore_errors=True)

    # Reading

    def fetch(self, branch: str | None) -> tuple[str, str | None]:
        """Fetch the newest commit of a branch, or of the main one where there is no such branch.

        Returns the branch to push to, and the commit; None if the repository is empty.
        """
        if branch is not None and not _BRANCH.fullmatch(branch):
            raise Refused(f"{branch[:100]!r} is not the name of a branch")
        listed = self._run("ls-remote", "--symref", "--", self.address, "HEAD", "refs/heads/*").decode()
        lines = listed.splitlines()
        refs = {line.partition("\t")[2] for line in lines if not line.startswith("ref: ")}
        main = next((line[16:].partition("\t")[0] for line in lines if line.startswith("ref: refs/heads/")), "")
        names = (
            branch,
            main,
            "main",
            "master",
            *(sorted(ref[11:] for ref in refs if ref.startswith("refs/heads/"))[:1]),
        )
        wanted = next((name for name in names if name and f"refs/heads/{name}" in refs), None)
        if wanted is None:
            return branch or main or "main", None
        source = f"+refs/heads/{wanted}:{_BASE}"
        options = ["--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"]
        self._run("fetch", *options, "--", self.address, source)
        return branch or wanted, self._run("rev-parse", "--verify", f"{_BASE}^{{commit}}").decode().strip()

    def list_entries(self, commit: str, *paths: str) -> list[TreeEntry]:
        """Return the entries below some paths. Raises SourceError if there are too many."""
        command = ["ls-tree", "-r", "-z", "--long", "--full-tree", commit, "--", *paths]
        listed = self._run(*command, at_most=_MAX_LISTED)
        entries = []
        for line in listed.split(b"\0"):
            if line:
                facts, _, path = line.partition(b"\t")
                mode, kind, name, size = facts.decode().split()
                shown = path.decode("utf-8", "replace")
                entries.append(TreeEntry(mode, kind, name, int(size) if size.isdecimal() else -1, shown))
        return entries

    def read(self, entries: Sequence[TreeEntry]) -> Iterator[tuple[str, bytes]]:
        """Yield path and bytes of files."""
        if not entries:
            return
        asked = "".join(f"{entry.object}\n" for entry in entries).encode()
        at_most = sum(entry.size + 200 for entry in entries)
        answer = self._run("cat-file", "--batch", stdin=asked, at_most=at_most)
        at = 0
        for entry in entries:
            end = answer.index(b"\n", at)
            if answer[at:end].split()[1:] != [b"blob", str(entry.size).encode()]:
                raise SourceError(f"{self.shown}: {entry.path}", "the object is missing")
            yield entry.path, answer[end + 1 : end + 1 + entry.size]
            at = end + 2 + entry.size

    # Writing

    def commit(
        self, base: str | None, changes: Mapping[str, bytes | None], message: str, author: Author, now: float
    ) -> str:
        """Make a commit with changed files, on top of another; None deletes a file. Times are in UTC."""
        who = f"{author.name} <{author.email}> {int(now)} +0000"
        parts = [f"commit {_NEW}\nauthor {who}\ncommitter {who}\n".encode(), _datum(message.encode())]
        if base is not None:
            parts.append(f"from {base}\n".encode())
        for path, data in sorted(changes.items()):
            parts += [f"D {path}\n".encode()] if data is None else [f"M 100644 inline {path}\n".encode(), _datum(data)]
        self._run("fast-import", "--quiet", "--force", "--date-format=raw", stdin=b"".join(parts))
        return self._run("rev-parse", "--verify", _NEW).decode().strip()

    def push(self, commit: str, branch: str) -> None:
        """Push a commit. Raises PushRejected if the branch has moved since it was fetched."""
        at_path = [f"--receive-pack=git {_AT_A_PATH} receive-pack"] if self._is_path else []
        try:
            self._run("push", "--quiet", "--no-verify", *at_path, "--", self.address, f"{commit}:refs/heads/{branch}")
        except Refused as error:
            if re.search(r"non-fast-forward|fetch first|stale info|cannot lock ref|failed to update ref", str(error)):
                raise PushRejected(f"{self.shown}: {branch} was changed by somebody else") from error
            raise

    # Running git

    def _run(self, command: str, *arguments: str, stdin: bytes = b"", at_most: int | None = None) -> bytes:
        own = {"GIT_DIR": str(self._own), "GIT_ALLOW_PROTOCOL": _PROTOCOLS, "GIT_ATTR_NOSYSTEM": "1"}
        own |= {name: os.environ[name] for name in _KEPT if name in os.environ}
        settings = [part for name, value in _SAFE.items() for part in ("-c", f"{name}={value}")]
        process = subprocess.Popen(
            ["git", *settings, command, *arguments],
            cwd=self._own,
            env=build_environment() | own,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        with process, _bounded(process):
            output, errors = _talk(process, stdin, at_most)
        if process.returncode:
            reason = _explain(errors, self.address, process.returncode)
            if shutil.disk_usage(self._folder).free < _FULL:  # of which git's own words say little
                reason += f"; no space left in {self._folder}"
            raise Refused(f"{self.shown}: git {command}: {reason}")
        return output


def _datum(data: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(data), data)


@contextmanager
def _bounded(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Bound the files that a process may write, and end it if the block does not end by itself."""
    with suppress(ImportError, AttributeError, OSError):
        import resource

        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (_MAX_PACK, _MAX_PACK))
    try:
        yield
    except BaseException:
        process.kill()
        raise


def _talk(process: subprocess.Popen[bytes], stdin: bytes, at_most: int | None) -> tuple[bytes, bytes]:
    """Give a process its input and return its output. Raises SourceError if that is longer than it may be."""
    if at_most is None:
        try:
            return process.communicate(stdin, timeout=_PATIENCE)
        except subprocess.TimeoutExpired as error:
            raise Refused(f"git did not finish within {_PATIENCE:.0f} s") from error
    import threading

    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    writer = threading.Thread(target=_feed, args=(process.stdin, stdin), daemon=True)
    writer.start()
    output = process.stdout.read(at_most + 1)
    if len(output) > at_most:
        raise SourceError("bundle", f"its listing is larger than {at_most >> 20} MB")
    writer.join()
    errors = process.stderr.read()
    process.wait(_PATIENCE)
    return output, errors


def _feed(stream: IO[bytes], data: bytes) -> None:
    with suppress(OSError, ValueError):
        stream.write(data)
        stream.close()


def _explain(errors: bytes, address: str, code: int) -> str:
    """Return the last words of git, without the password that an address may hold."""
    text = errors.decode("utf-8", "replace").replace(address, hide_user(address))
    lines = [hide_user(line.strip()) for line in text.splitlines() if line.strip() and not line.startswith("hint:")]
    if code == -25 or any("File too large" in line or "signal 25" in line for line in lines):
        return f"the repository is larger than {_MAX_PACK >> 20} MB"
    chosen = [line for line in lines if re.match(r"(?:fatal|error|remote|\s*!)", line)] or lines
    return "; ".join(chosen[-3:])[:500] or f"it ended with {code}"


def is_repository(path: Path) -> bool:
    """Return whether a folder is a bare repository. A folder with files checked out is a plain folder to us."""
    return (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()
