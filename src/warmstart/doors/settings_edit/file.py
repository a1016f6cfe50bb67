"""A settings file that another program owns: read, changed in place, and restored exactly.

A change is a list of insertions. Their places are remembered under the home, never the text around them: settings may
hold secrets. While nobody else has changed the file, undoing cuts the same characters out again and checks that the rest
is the original, byte for byte; otherwise the editor for the file's language removes what is ours.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from warmstart.atomic_files import write_beside
from warmstart.doors.settings_edit.json_text import Insertion
from warmstart.errors import Refused

_LARGEST = 10_000_000  # bytes; nobody's settings are larger


class Editor(NamedTuple):
    """How to read the file's language, and how to remove from a text what is ours."""

    parse: Callable[[str], Any]
    remove: Callable[[str], str]


class _Change(Struct, frozen=True):
    """What a change did to a file."""

    before: str | None  # digest of the original; None: there was no file
    after: str  # digest of what was written
    inserted: tuple[tuple[int, int], ...]  # place and number of characters, in the order of insertion
    made_folder: int | bool = False  # how many folders were made for the file; earlier versions wrote true for one


class SettingsFile:
    """A settings file and one owner of changes in it. Refusals name the file, which is then unchanged."""

    def __init__(self, path: Path, home: Path, owner: str, editor: Editor) -> None:
        self.path = path
        self._editor = editor
        self._real = Path(os.path.realpath(path))  # a link stays; its target is written
        name = hashlib.blake2b(f"{owner}\0{self._real}".encode("utf-8", "surrogateescape"), digest_size=10).hexdigest()
        self._memory = home / "changed" / f"{name}.json"

    def load(self) -> Any:
        """Return the parsed value; a missing file counts as an empty one. Raises Refused."""
        with self._naming_the_file():
            return self._editor.parse(_decode(self._read_bytes() or b""))

    def replace(self, insert: Callable[[str], Iterable[Insertion]]) -> None:
        """Put our text in, in place of any that is there. `insert` gets the text without ours. Raises Refused."""
        with self._naming_the_file():
            data = self._read_bytes()
            original, made_folders = self._restore(data)
            changed = original or ""
            inserted: list[tuple[int, int]] = []
            for insertion in insert(changed):
                changed = insertion.apply(changed)
                inserted.append((insertion.at, len(insertion.text)))
            change = _Change(
                before=None if original is None else _digest(original.encode()),
                after=_digest(changed.encode()),
                inserted=tuple(inserted),
                made_folder=made_folders or sum(not folder.exists() for folder in self._real.parents),
            )
            self._write(data, changed.encode())
            self._remember(change)

    def remove(self) -> bool:
        """Take our text out; return whether there was any. Raises Refused."""
        with self._naming_the_file():
            data = self._read_bytes()
            original, made_folders = self._restore(data)
            is_ours = data != (None if original is None else original.encode())
            if is_ours and original is None:
                self._delete(made_folders)
            elif is_ours and original is not None:
                self._write(data, original.encode())
            self._remember(None)
            return is_ours

    def _restore(self, data: bytes | None) -> tuple[str | None, int]:
        """Return the text without ours (None: there was no file), and how many folders were made for it."""
        if data is None:
            return None, 0
        change, text = self._recall(), _decode(data)
        if change is not None and change.after == _digest(data):
            original = _undo(text, change.inserted)
            if change.before is None and not original:
                return None, change.made_folder
            if change.before == _digest(original.encode()):
                return original, 0
        return self._editor.remove(text), 0

    @contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        try:
            yield
        except Refused as error:
            raise Refused(f"{self.path}: {error}; it was left as it is") from error

    # The file

    def _read_bytes(self) -> bytes | None:
        try:
            facts = self._real.stat()
            if not stat.S_ISREG(facts.st_mode):
                raise Refused("it is not a file")
            if facts.st_size > _LARGEST:
                raise Refused("it is too large for settings")
            return self._real.read_bytes()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise Refused(f"it cannot be read ({_reason(error)})") from error

    def _write(self, before: bytes | None, new: bytes) -> None:
        """Write in one step and keep the file's rights; refuse if it has changed since it was read."""
        try:
            if before is not None and not os.access(self._real, os.W_OK):
                raise Refused("it is read-only")
            self._real.parent.mkdir(parents=True, exist_ok=True)
            with write_beside(self._real, new, synced=True) as new_file:
                self._copy_rights(new_file)
                if self._read_bytes() != before:
                    raise Refused("someone else has just changed it, so try again")
                new_file.replace(self._real)
        except OSError as error:
            raise Refused(f"it cannot be written ({_reason(error)})") from error

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

    def _delete(self, made_folders: int) -> None:
        try:
            self._real.unlink()
        except OSError as error:
            raise Refused(f"it cannot be deleted ({_reason(error)})") from error
        with suppress(OSError):  # not empty: others use it now
            for folder in list(self._real.parents)[:made_folders]:
                folder.rmdir()

    # What was done to it

    def _recall(self) -> _Change | None:
        try:
            return msgspec.json.decode(self._memory.read_bytes(), type=_Change)
        except (OSError, msgspec.DecodeError):
            return None

    def _remember(self, change: _Change | None) -> None:
        """Store or forget a change. Errors are ignored: without it, undoing is only less exact."""
        with suppress(OSError):
            if change is None:
                self._memory.unlink(missing_ok=True)
                return
            for folder in (self._memory.parent.parent, self._memory.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self._memory, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(change))


def _decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Refused("it is not UTF-8") from None


def _undo(text: str, inserted: Sequence[tuple[int, int]]) -> str:
    for at, length in reversed(inserted):
        text = text[:at] + text[at + length :]
    return text


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=20).hexdigest()


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
