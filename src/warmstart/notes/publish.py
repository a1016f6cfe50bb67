"""Notes in a file that agents read: a managed block between markers in AGENTS.md, CLAUDE.md, GEMINI.md or a SKILL.md."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from warmstart.atomic_files import write_whole
from warmstart.errors import Refused
from warmstart.notes.types import Note
from warmstart.plurals import format_count

BEGIN = "<!-- warmstart notes begin: written by `warmstart notes publish`; edits in this block are overwritten -->"
END = "<!-- warmstart notes end -->"
_BEGIN_MARK, _END_MARK = "<!-- warmstart notes begin", "<!-- warmstart notes end"
_MOST = 40  # lines
_LARGEST = 2_000_000  # bytes of a file that is edited
_SKILL = """---
name: {name}
description: What earlier agent sessions learned about this project. Read it before running commands or tests here.
---

"""


class Published(Struct, frozen=True, kw_only=True):
    """A file with its managed block, before it is written."""

    file: Path
    before: bytes | None  # None: there is no file yet
    after: bytes
    lines: int  # notes in the block

    @property
    def changed(self) -> bool:
        return self.before != self.after

    def diff(self) -> str:
        """Return the change as a unified diff."""
        old = (self.before or b"").decode("utf-8", "replace").splitlines(keepends=True)
        new = self.after.decode("utf-8", "replace").splitlines(keepends=True)
        return "".join(difflib.unified_diff(old, new, str(self.file), str(self.file)))

    def write(self) -> None:
        """Write the file at once or not at all. Raises Refused if it changed meanwhile."""
        if _read(self.file) != self.before:
            raise Refused(f"{self.file} changed while you looked at the difference; run the command again")
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.file, self.after, mode=_mode_of(self.file), synced=True)
        except OSError as error:
            raise Refused(f"{self.file}: cannot be written: {error.strerror or error}") from error


def prepare(file: Path, notes: Iterable[Note]) -> Published:
    """Return the file with its block brought up to date. Text outside the markers stays byte for byte."""
    before = _read(file)
    lines = [_write_line(note) for note in sorted(notes, key=lambda note: (-note.rate, -note.support, note.id))][:_MOST]
    if before is None:
        head = _SKILL.format(name=file.parent.name or "project-notes") if file.name == "SKILL.md" else ""
        after = (head + _write_block(lines, "\n")).encode() if lines else b""
        return Published(file=file, before=None, after=after, lines=len(lines))
    try:
        text = before.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"{file}: not UTF-8 text ({error}); it was left untouched") from error
    return Published(file=file, before=before, after=_replace(file, text, lines).encode(), lines=len(lines))


def _replace(file: Path, text: str, lines: Sequence[str]) -> str:
    begins, ends = text.count(_BEGIN_MARK), text.count(_END_MARK)
    newline = "\r\n" if "\r\n" in text else "\n"
    if (begins, ends) == (0, 0):
        if not lines:
            return text
        gap = "" if not text or text.endswith(newline * 2) else newline if text.endswith(newline) else newline * 2
        return text + gap + _write_block(lines, newline)
    start, end = text.find(_BEGIN_MARK), text.find(_END_MARK)
    if (begins, ends) != (1, 1) or end < start:
        raise Refused(
            f"{file}: the markers of the managed block are damaged ({begins} beginnings, {ends} ends); "
            "delete them or mend them, then run the command again"
        )
    after = text.find("\n", end)
    rest = "" if after < 0 else text[after + 1 :]
    return text[:start] + (_write_block(lines, newline) if lines else "") + rest


def _write_block(lines: Sequence[str], newline: str) -> str:
    body = ("## Learned from earlier agent sessions", "", *lines)
    return newline.join((BEGIN, *body, END, ""))


def _write_line(note: Note) -> str:
    """Return a note as a list item with its evidence. Markdown and HTML of others stay inert."""
    own = note.text.partition(": ")[0] if note.kind == "refusal" else note.text  # a person's words stay on this machine
    text = " ".join(own.split()).replace("<", "&lt;").replace("-->", "")
    seen = f", last {datetime.fromtimestamp(note.last_seen, UTC):%Y-%m-%d}" if note.last_seen else ""
    sessions = format_count(note.support, "session")
    return f"- {text} ({sessions}{seen})"


def _read(file: Path) -> bytes | None:
    try:
        if file.stat().st_size > _LARGEST:
            raise Refused(f"{file}: larger than {_LARGEST} bytes; it was left untouched")
        return file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refused(f"{file}: cannot be read: {error}") from error


def _mode_of(file: Path) -> int:
    try:
        return file.stat().st_mode & 0o777
    except OSError:
        return 0o644
