"""A file of settings that another program owns: read, changed in place, and given back exactly as it was.

A change is a row of insertions. Where each went is remembered under the home, never what stands around it: settings
may hold secrets. While nobody else has touched the file, undoing takes the same characters out again and checks that
what is left is the original, byte for byte; after that it is left to the caller to take out what is theirs.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from warmstart.atomic_files import write_beside
from warmstart.errors import Refused

_LARGEST = 10_000_000  # bytes; nobody's settings are larger


class InsertedText(Protocol):
    """Text that was put in at a place of the text before it."""

    @property
    def at(self) -> int: ...
    @property
    def text(self) -> str: ...


PutIn = Callable[[str], Sequence[InsertedText]]  # each for the text that the one before it has made
TakeOut = Callable[[str], str]


class _Memory(Struct, frozen=True):
    """What a change did to a file."""

    before: str | None  # digest of the original; None: there was no file
    after: str  # digest of what was written
    inserted: tuple[tuple[int, int], ...]  # where and how many characters, in the order they were put in
    made_folder: bool = False


class SettingsFile:
    """One file and one owner of changes in it. `memory` is a folder of ours."""

    def __init__(self, path: Path, memory: Path, owner: str) -> None:
        self.path = path
        self._real = Path(os.path.realpath(path))  # a link stays, what it leads to is written
        name = hashlib.blake2b(f"{owner}\0{self._real}".encode("utf-8", "surrogateescape"), digest_size=10).hexdigest()
        self._memory = memory / f"{name}.json"

    def read(self) -> str | None:
        """Its text, or None where there is no file. Raises Refused where it is nothing that can be changed and kept."""
        data = self._read_bytes()
        return None if data is None else self._decode(data)

    def put_in(self, make: PutIn, take_out: TakeOut) -> bool:
        """Change the file; False where there was nothing to do. `take_out` tells whether anything of ours is in it."""
        data = self._read_bytes()
        text = "" if data is None else self._decode(data)
        inserted: list[tuple[int, int]] = []
        changed = text
        for one in make(text):
            changed = changed[: one.at] + one.text + changed[one.at :]
            inserted.append((one.at, len(one.text)))
        if changed == text:
            return False
        made_folder = not self._real.parent.exists()
        new = changed.encode()
        memory = None
        if take_out(text) == text:
            before = None if data is None else _digest(data)
            memory = _Memory(before, _digest(new), tuple(inserted), made_folder)
        self._write(data, new)
        self._remember(memory)
        return True

    def take_out(self, take_out: TakeOut) -> bool:
        """Undo the change: to the byte where nobody else has changed the file since. False: nothing of ours is there."""
        data = self._read_bytes()
        if data is None:
            self._remember(None)
            return False
        memory = self._recall()
        if memory is not None and memory.after == _digest(data):
            original = _undo(self._decode(data), memory.inserted).encode()
            if memory.before is None and not original:
                self._remove(memory.made_folder)
                return True
            if memory.before == _digest(original):
                self._write(data, original)
                self._remember(None)
                return True
        text = self._decode(data)
        left = take_out(text)
        if left != text:
            self._write(data, left.encode())
        self._remember(None)
        return left != text

    # The file

    def _read_bytes(self) -> bytes | None:
        try:
            facts = self._real.stat()
            if not stat.S_ISREG(facts.st_mode):
                raise Refused(f"{self.path}: not a file; it was left as it is")
            if facts.st_size > _LARGEST:
                raise Refused(f"{self.path}: too large for settings; it was left as it is")
            return self._real.read_bytes()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise Refused(f"{self.path}: cannot be read ({_reason(error)}); it was left as it is") from error

    def _decode(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise Refused(f"{self.path}: not UTF-8; it was left as it is") from None

    def _write(self, before: bytes | None, new: bytes) -> None:
        """In one step, with the rights it had; refused where someone has written to it since it was read."""
        try:
            if before is not None and not os.access(self._real, os.W_OK):
                raise Refused(f"{self.path}: read-only; it was left as it is")
            self._real.parent.mkdir(parents=True, exist_ok=True)
            with write_beside(self._real, new, synced=True) as new_file:
                self._copy_rights(new_file)
                if self._read_bytes() != before:
                    raise Refused(f"{self.path}: someone else has just changed it; it was left as it is. Try again")
                new_file.replace(self._real)
        except OSError as error:
            raise Refused(f"{self.path}: cannot be written ({_reason(error)}); it was left as it is") from error

    def _copy_rights(self, new_file: Path) -> None:
        try:
            facts = self._real.stat()
        except FileNotFoundError:
            new_file.chmod(0o600)
            return
        new_file.chmod(stat.S_IMODE(facts.st_mode))
        if hasattr(os, "chown"):
            with suppress(OSError):  # only root may give files away, and only root has to
                os.chown(new_file, facts.st_uid, facts.st_gid)

    def _remove(self, made_folder: bool) -> None:
        try:
            self._real.unlink()
        except OSError as error:
            raise Refused(f"{self.path}: cannot be removed ({_reason(error)})") from error
        if made_folder:
            with suppress(OSError):  # not empty: others use it now
                self._real.parent.rmdir()
        self._remember(None)

    # What was done to it

    def _recall(self) -> _Memory | None:
        try:
            return msgspec.json.decode(self._memory.read_bytes(), type=_Memory)
        except (OSError, msgspec.DecodeError):
            return None

    def _remember(self, memory: _Memory | None) -> None:
        """Without it, undoing is less exact; so trouble here is none."""
        with suppress(OSError):
            if memory is None:
                self._memory.unlink(missing_ok=True)
                return
            for folder in (self._memory.parent.parent, self._memory.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self._memory, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(memory))


def _undo(text: str, inserted: Sequence[tuple[int, int]]) -> str:
    for at, length in reversed(inserted):
        text = text[:at] + text[at + length :]
    return text


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=20).hexdigest()


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
