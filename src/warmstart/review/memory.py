"""Lasting notes on disk: MEMORY.md and USER.md, one note per entry, written atomically."""

from __future__ import annotations

import re
from pathlib import Path

from warmstart.errors import Refused
from warmstart.review.claims import normalise
from warmstart.review.skills import write_safely

FILES: dict[str, str] = {"memory": "MEMORY.md", "user": "USER.md"}
LONGEST = 1_000  # characters of a note
_SECTION = "\n§\n"  # between notes that Hermes wrote
_BULLET = re.compile(r"^[-*] +")


class MemoryFolder:
    """The folder of the two files. A file is a list of bullets, or has Hermes' own form if Hermes wrote it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def notes(self, target: str) -> list[str]:
        text = self._read(target)
        if _SECTION in text:
            return [note.strip() for note in text.split(_SECTION) if note.strip()]
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
        text = self._read(target)
        if _SECTION in text:
            self._write(target, f"{text.rstrip()}{_SECTION}{content}\n")
        else:
            lead = f"{text.rstrip()}\n" if text.strip() else ""
            self._write(target, f"{lead}- {content}\n")

    def replace(self, target: str, old: str, content: str) -> None:
        self._change(target, self.find(target, old), content)

    def remove(self, target: str, old: str) -> None:
        self._change(target, self.find(target, old), None)

    def _change(self, target: str, note: str, content: str | None) -> None:
        """Replace a note, or remove it if there is no new content."""
        text = self._read(target)
        if _SECTION in text:
            notes = [content if other == note else other for other in self.notes(target)]
            self._write(target, _SECTION.join(other for other in notes if other) + "\n")
            return
        lines = text.splitlines(keepends=True)
        at = next(n for n, line in enumerate(lines) if _BULLET.sub("", line.strip()) == note)
        lines[at : at + 1] = [] if content is None else [f"- {content}\n"]
        self._write(target, "".join(lines))

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
