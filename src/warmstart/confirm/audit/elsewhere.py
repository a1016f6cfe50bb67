"""Anchors elsewhere: the newest hash of the audit is also written to places that the daemon's machine cannot rewrite.

| address | what is written |
|---|---|
| `git+ssh://host/repo.git`, `git+https://...`, `git+file:///path` | a line per anchor in `NAME.anchors`, committed and pushed |
| `s3://bucket/folder`, `file:///folder`, any other of fsspec | one object per anchor; use object lock or versions |
| `mailto://...`, any other of apprise | a message with the anchor |

A copy that was put back, or a chain that was written anew, contradicts an anchor that lies elsewhere. `verify` reads all
anchors of a place, not only the newest: an attacker who may only add to it cannot hide behind a new one.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from warmstart.confirm.audit.chain import ChainHead
from warmstart.confirm.store.protocol import ConfirmStore
from warmstart.errors import ConfigError, StoreError

_LITERAL = re.compile(r"([0-9]{1,15}):([0-9a-f]{64})")
_OBJECT = re.compile(r"([0-9]{1,15})-([0-9a-f]{64})\.anchor")
_PATIENCE = 20  # seconds for one git command
OFTEN, SELDOM = 60.0, 3_600.0  # seconds between anchors at a place; a message is sent more seldom


class Witness(NamedTuple):
    """An anchor that lies elsewhere."""

    place: str  # for messages, without secrets
    head: ChainHead | None  # None: the place holds none of this audit


class AnchorPlace(Protocol):
    """A place for anchors."""

    name: str  # for messages, without secrets
    every: float  # seconds between anchors, at least

    def write(self, head: ChainHead) -> None:
        """Add an anchor. Raise StoreError if the place does not take it."""

    def read(self) -> list[ChainHead]:
        """Return the anchors. Raise StoreError if they cannot be read."""


def read_literal(text: str) -> ChainHead | None:
    """Return an anchor that is written out, as a message holds it: `118:9f86...`; None if it is none."""
    match = _LITERAL.fullmatch(text.strip())
    return ChainHead(int(match[1]), match[2]) if match else None


def write_literal(head: ChainHead) -> str:
    return f"{head.sequence}:{head.hash}"


def open_place(address: str, home: Path, label: str) -> AnchorPlace:
    """Return the place at an address. `home` keeps the working copy of a git repository; `label` names this audit."""
    scheme = address.partition("://")[0].lower()
    if "://" not in address:
        raise ConfigError(f"{address}: give the place for anchors as an address, such as git+ssh://host/repo.git")
    if scheme.startswith("git+"):
        return GitPlace(address[4:], home, label)
    if scheme in _known_file_systems():
        return FolderPlace(address, label)
    return MessagePlace(address, label)


def _known_file_systems() -> set[str]:
    try:
        from fsspec.registry import known_implementations
    except ImportError:
        return {"file", "s3", "gs", "memory", "az", "abfs"}  # FolderPlace says what to install
    return set(known_implementations) - {"http", "https"}


class FolderPlace:
    """A folder of fsspec: a bucket, another disk. One object per anchor, never overwritten by us."""

    every = OFTEN

    def __init__(self, address: str, label: str) -> None:
        parts = urlsplit(address)
        self.name = f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
        try:
            import fsspec

            self._files: Any
            self._files, root = fsspec.core.url_to_fs(address)
        except ImportError as error:
            raise ConfigError(
                f"{self.name}: needs {error.name}; install it with: pip install 'warmstart[remote,s3]'"
            ) from error
        self._folder = f"{root.rstrip('/')}/{label}"

    def write(self, head: ChainHead) -> None:
        path = f"{self._folder}/{head.sequence}-{head.hash}.anchor"
        try:
            self._files.makedirs(self._folder, exist_ok=True)
            self._files.pipe_file(path, msgspec.json.encode(head) + b"\n")
        except Exception as error:
            raise StoreError(f"{self.name}: the anchor cannot be written: {type(error).__name__}: {error}") from error

    def read(self) -> list[ChainHead]:
        try:
            self._files.invalidate_cache()
            found = self._files.ls(self._folder, detail=False) if self._files.exists(self._folder) else []
        except Exception as error:
            raise StoreError(f"{self.name}: the anchors cannot be read: {type(error).__name__}: {error}") from error
        matches = (_OBJECT.fullmatch(str(path).rpartition("/")[2]) for path in found)
        return sorted(
            (ChainHead(int(match[1]), match[2]) for match in matches if match), key=lambda head: head.sequence
        )


class GitPlace:
    """A git repository that the anchors are pushed to. Let its server refuse force pushes."""

    every = OFTEN

    def __init__(self, address: str, home: Path, label: str) -> None:
        parts = urlsplit(address)
        self.name = f"git {parts.scheme}://{parts.hostname or ''}{parts.path}"
        self._address = address
        self._copy = home / f"confirm-anchors-{hashlib.sha256(address.encode()).hexdigest()[:12]}"
        self._file = f"{label}.anchors"

    def write(self, head: ChainHead) -> None:
        self._update()
        path = self._copy / self._file
        known = path.read_text("utf-8") if path.exists() else ""
        line = write_literal(head)
        if line in known.splitlines():
            return
        path.write_text(f"{known}{line}\n", "utf-8")
        self._git("add", self._file)
        self._git("commit", "--quiet", "-m", f"Anchor entry {head.sequence}")
        self._git("push", "--quiet", "origin", "HEAD:refs/heads/anchors")

    def read(self) -> list[ChainHead]:
        """Return every anchor that was ever pushed, also one that a later commit took out."""
        self._update()
        if not self._has_anchors():
            return []
        log = self._git("log", "--format=", "-p", "--unified=0", "origin/anchors", "--", self._file)
        heads = (read_literal(line[1:]) for line in log.splitlines() if line.startswith("+") and line[:3] != "+++")
        return [ChainHead(*pair) for pair in sorted({(head.sequence, head.hash) for head in heads if head})]

    def _update(self) -> None:
        if not (self._copy / ".git").exists():
            self._copy.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._git("init", "--quiet", "--initial-branch=anchors")
            self._git("remote", "add", "origin", self._address)
        self._git("fetch", "--quiet", "origin")
        if self._has_anchors():
            self._git("reset", "--quiet", "--hard", "origin/anchors")

    def _has_anchors(self) -> bool:
        return bool(self._git("branch", "--remotes", "--list", "origin/anchors"))

    def _git(self, *arguments: str) -> str:
        identity = [
            "-c",
            "user.name=warmstart",
            "-c",
            "user.email=warmstart@localhost",
            "-c",
            "core.hooksPath=/dev/null",
        ]
        environment = os.environ | {"GIT_TERMINAL_PROMPT": "0"}
        try:
            done = subprocess.run(
                ["git", *identity, *arguments],
                cwd=self._copy,
                env=environment,
                capture_output=True,
                text=True,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise StoreError(f"{self.name}: git {arguments[0]} failed: {type(error).__name__}") from error
        if done.returncode:
            why = (done.stderr.strip().splitlines() or ["no reason given"])[-1].replace(self._address, "the repository")
            raise StoreError(f"{self.name}: git {arguments[0]} failed: {why[:200]}")
        return done.stdout.strip()


class MessagePlace:
    """An address of apprise, such as an e-mail's: people keep the messages."""

    every = SELDOM

    def __init__(self, address: str, label: str) -> None:
        from warmstart.confirm.notify.channels import make_channels

        (self._channel,) = make_channels([address])
        self.name = self._channel.kind
        self._label = label

    def write(self, head: ChainHead) -> None:
        from warmstart.confirm.notify.messages import Notification
        from warmstart.confirm.notify.sending import Undelivered

        text = f"{write_literal(head)}\nCheck later: warmstart confirm verify --anchor {write_literal(head)}"
        try:
            self._channel.send(Notification(f"Anchor of the audit {self._label}", text))
        except Undelivered as error:
            raise StoreError(f"{self.name}: the anchor cannot be sent: {error}") from error

    def read(self) -> list[ChainHead]:
        raise StoreError(f"{self.name}: messages cannot be read here; give the anchor of one: --anchor SEQUENCE:HASH")


def name_audit(store: ConfirmStore) -> str:
    """Return the name of an audit at places that may hold anchors of several: it comes from its first entry."""
    row = store.row("hash_at", {"sequence": 1})
    return f"confirm-{row[0][:16]}" if row else "confirm-empty"


def read_witnesses(sources: Iterable[str], home: Path, store: ConfirmStore) -> list[Witness]:
    """Read the anchors at addresses, or written out. A place without one of this audit is a witness that it was replaced."""
    witnesses: list[Witness] = []
    for source in sources:
        if (head := read_literal(source)) is not None:
            witnesses.append(Witness("the place it was copied from", head))
            continue
        place = open_place(source, home, name_audit(store))
        found = place.read()
        witnesses += [Witness(place.name, head) for head in found] or [Witness(place.name, None)]
    return witnesses


class WitnessCheck:
    """Compares a chain, entry by entry, with the anchors that lie elsewhere."""

    def __init__(self, witnesses: Sequence[Witness]) -> None:
        self._witnesses = witnesses
        self._hashes: dict[int, str] = {head.sequence: "" for _, head in witnesses if head}
        self._last = 0

    def see(self, sequence: int, hash: str) -> None:
        self._last = sequence
        if sequence in self._hashes:
            self._hashes[sequence] = hash

    def find_contradictions(self) -> Iterator[tuple[int | None, str]]:
        """Yield the entry and what is wrong, for each anchor that the chain does not hold."""
        for place, head in self._witnesses:
            if head is None:
                yield None, f"{place} holds no anchor of this audit: another audit was put in its place"
            elif head.sequence and self._hashes[head.sequence] != head.hash:
                cut = f"the audit ends with entry {self._last}: an old copy was put back, or its end was cut"
                why = cut if head.sequence > self._last else "the audit was rewritten"
                yield head.sequence, f"is not there as it was anchored at {place}: {why}"
