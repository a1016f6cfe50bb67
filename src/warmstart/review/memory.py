"""Lasting notes on disk: MEMORY.md and USER.md, one note per entry, written atomically.

In Hermes' own folder the files have Hermes' form exactly, inside its limits and under its lock: Hermes reads bullets as
one single note, and refuses its own additions to a file that is too long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from warmstart.errors import Refused
from warmstart.review.claims import normalise
from warmstart.review.skills import write_safely

FILES: dict[str, str] = {"memory": "MEMORY.md", "user": "USER.md"}
LONGEST = 1_000  # characters of a note
_SECTION = "\n§\n"  # between notes that Hermes wrote
_BULLET = re.compile(r"^[-*] +")
_HERMES_FOLDER = "memories"
_HERMES_FILES = ("config.yaml", "state.db", "SOUL.md")  # any of them beside the folder
_HERMES_LIMITS = {"memory": 2_200, "user": 1_375}  # characters of a file, unless Hermes' settings have others


class MemoryFolder:
    """The folder of the two files. A file is a list of bullets; it has Hermes' form in Hermes' folder, or if Hermes wrote it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def is_of_hermes(self) -> bool:
        """Whether Hermes reads this folder."""
        return self.root.name == _HERMES_FOLDER and any((self.root.parent / name).exists() for name in _HERMES_FILES)

    def notes(self, target: str) -> list[str]:
        text = self._read(target)
        if self._has_sections(text):
            return list(dict.fromkeys(note.strip() for note in text.split(_SECTION) if note.strip()))
        lines = (line.strip() for line in text.splitlines())
        return [_BULLET.sub("", line) for line in lines if line and not line.startswith("#")]

    def knows(self, content: str) -> bool:
        """Whether one of the files already has this note."""
        wanted = normalise(content)
        return any(wanted in normalise(note) for target in FILES for note in self.notes(target))

    def find(self, target: str, old: str) -> str:
        """Return the one note that holds a text. Raises Refused if there is none, or more than one."""
        notes = [note for note in self.notes(target) if old and old in note]
        if len(notes) != 1:
            raise Refused(f"{len(notes)} notes of {FILES[target]} hold that old_text; exactly one must")
        return notes[0]

    def add(self, target: str, content: str) -> None:
        """Add a note. Raises Refused if Hermes' file has no room for it."""
        with self._locked(target):
            text = self._read(target)
            if self._has_sections(text):
                self._write_sections(target, [*self.notes(target), content])
            else:
                lead = f"{text.rstrip()}\n" if text.strip() else ""
                self._write(target, f"{lead}- {content}\n")

    def replace(self, target: str, old: str, content: str) -> None:
        """Put another note in place of the one that holds a text. Raises Refused if Hermes' file has no room for it."""
        self._change(target, old, content)

    def remove(self, target: str, old: str) -> None:
        """Remove the note that holds a text."""
        self._change(target, old, None)

    def _change(self, target: str, old: str, content: str | None) -> None:
        """Replace a note, or remove it if there is no new content."""
        with self._locked(target):
            text, note = self._read(target), self.find(target, old)
            if self._has_sections(text):
                notes = [content if other == note else other for other in self.notes(target)]
                self._write_sections(target, [other for other in notes if other])
                return
            lines = text.splitlines(keepends=True)
            at = next(n for n, line in enumerate(lines) if _BULLET.sub("", line.strip()) == note)
            lines[at : at + 1] = [] if content is None else [f"- {content}\n"]
            self._write(target, "".join(lines))

    def _has_sections(self, text: str) -> bool:
        return self.is_of_hermes or _SECTION in text

    def _write_sections(self, target: str, notes: list[str]) -> None:
        text = _SECTION.join(notes)
        before, limit = len(_SECTION.join(self.notes(target))), self._find_limit(target)
        if limit is not None and len(text) > max(limit, before - 1):  # a file that is too long may be shortened
            raise Refused(
                f"{FILES[target]} is full: it has {before:,} of {limit:,} characters, and with this note it would have "
                f"{len(text):,}; remove or shorten a note in it first"
            )
        self._write(target, text if self.is_of_hermes else f"{text}\n")

    def _find_limit(self, target: str) -> int | None:
        """Return the limit that Hermes keeps; None for a folder of our own."""
        if not self.is_of_hermes:
            return None
        try:
            settings = (self.root.parent / "config.yaml").read_text("utf-8", "replace")
        except OSError:
            settings = ""
        found = re.search(rf"\b{target}_char_limit\s*:\s*(\d+)", settings)
        return int(found[1]) if found else _HERMES_LIMITS[target]

    @contextmanager
    def _locked(self, target: str) -> Iterator[None]:
        """Hold the lock under which Hermes changes its file; other folders are written by one process at a time."""
        if not self.is_of_hermes:
            yield
            return
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with Path(f"{self._path(target)}.lock").open("a+") as lock:
            try:
                import fcntl
            except ImportError:  # a system without these locks
                yield
                return
            fcntl.flock(lock, fcntl.LOCK_EX)  # closing the file ends it
            yield

    def _read(self, target: str) -> str:
        path = self._path(target)
        return path.read_text("utf-8", "replace") if path.exists() else ""

    def _write(self, target: str, text: str) -> None:
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_safely(self._path(target), text)

    def _path(self, target: str) -> Path:
        """Return the path of a file. Raises Refused if a link leads out of the folder."""
        path = self.root / FILES[target]
        if not path.resolve().is_relative_to(self.root.resolve()):
            raise Refused(f"{path.name} lies outside the folder of notes")
        return path


def flatten_note(text: str) -> str:
    """Return a note as one line, without marks that would make it look like several. Raises Refused if it is too long."""
    note = " ".join(text.replace("§", " ").split()).lstrip("#*- ")
    note = "".join(c for c in note if c.isprintable())
    if not note:
        raise Refused("the note is empty")
    if len(note) > LONGEST:
        raise Refused(f"a note has {LONGEST:,} characters at most")
    return note
