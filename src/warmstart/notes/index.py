"""The index of a project's active notes, as hooks read it: a file of lines sorted by mark, searched by byte offset.

    {"warmstart_notes": 1, "project": "/home/mira/shop", "scope": "", "roots": [...], ...}
    =path:a.yml<TAB>{"id": ..., "kind": "path", ...}      by its key, for failed calls
    path:a.yml<TAB>{"id": ..., "kind": "path", ...}       by its trigger, for calls about to be made

A lookup reads some twenty places of the file, however many notes it holds. `folders` beside it names the index of each
folder. A file of another version, cut short or missing counts as no notes; the next `learn` writes it anew
(see index_files). Hooks load this module for every call, so it imports nothing but `os`.
"""

from __future__ import annotations

import os

from warmstart.notes.compact_json import parse_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

VERSION = 1
FOLDER = "notes"  # under the home
FOLDERS = "folders"
LEVELS = "levels"
_MOST = 16  # notes returned for one mark
_LONGEST_HEADER = 65_536
_LARGEST_MAP = 8_000_000  # bytes of the map of folders


class NoteIndex:
    """An open index file. `find` returns the notes of a mark."""

    __slots__ = ("_end", "_file", "_start", "answers_failures", "project", "roots", "scope", "watches_files")

    def __init__(self, file: BinaryIO, header: dict[str, Any], start: int, end: int) -> None:
        self._file, self._start, self._end = file, start, end
        self.project = str(header.get("project", ""))
        self.scope = str(header.get("scope", ""))
        self.roots = [root for root in header.get("roots", ()) if isinstance(root, str)]
        self.answers_failures = header.get("answers_failures") is True  # a note has something to say after a failure
        self.watches_files = header.get("watches_files") is True  # a note is about files that were not read before

    def find(self, mark: str) -> list[dict[str, Any]]:
        """Return the notes with this trigger, those with the most support first."""
        key = make_key(mark)
        if key is None:
            return []
        low, high = self._start, self._end
        while low < high:  # the first offset from which the next whole line is not before the key
            middle = (low + high) // 2
            if _is_before(self._line_at(middle), key):
                low = middle + 1
            else:
                high = middle
        notes: list[dict[str, Any]] = []
        line = self._line_at(low)
        while line.startswith(key) and len(notes) < _MOST:
            note = parse_json(line[len(key) :])
            if isinstance(note, dict):
                notes.append(note)
            line = self._file.readline()
        return notes

    def _line_at(self, offset: int) -> bytes:
        """Return the first line that starts at this offset or behind it; empty at the end."""
        if offset <= self._start:
            self._file.seek(self._start)
        else:
            self._file.seek(offset - 1)
            self._file.readline()
        return self._file.readline()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class LoadedIndex:
    """An index in memory, for processes that ask more than once. Notes are parsed when they are found."""

    __slots__ = ("_lines", "project", "roots", "scope", "watches_files")

    def __init__(self, index: NoteIndex) -> None:
        self.project, self.scope, self.roots = index.project, index.scope, index.roots
        self.watches_files = index.watches_files
        self._lines: dict[bytes, list[bytes]] = {}
        line = index._line_at(0)
        while line:
            mark, _, note = line.partition(b"\t")
            self._lines.setdefault(mark + b"\t", []).append(note)
            line = index._file.readline()

    def find(self, mark: str) -> list[dict[str, Any]]:
        """Return the notes with this trigger, those with the most support first."""
        key = make_key(mark)
        lines = self._lines.get(key, ()) if key else ()
        return [parse_json(line) for line in lines[:_MOST]]


def _is_before(line: bytes, key: bytes) -> bool:
    return bool(line) and line[: line.find(b"\t") + 1] < key


def make_key(mark: str) -> bytes | None:
    """Return the beginning of a mark's lines; None for a mark that no line can have."""
    if not mark or (not mark.isprintable() and any(ord(char) < 32 for char in mark)):
        return None
    return mark.encode("utf-8", "surrogatepass") + b"\t"


def open_index(path: str, root: str = "") -> NoteIndex | None:
    """Open an index file; None where there is none, or one of another version or cut short. `root`: one more."""
    try:
        file = open(path, "rb")
    except (OSError, ValueError):
        return None
    index = _read_header(file)
    if index is None:
        file.close()
    elif root and root not in index.roots:
        index.roots.append(root)
    return index


def _read_header(file: BinaryIO) -> NoteIndex | None:
    try:
        line = file.readline(_LONGEST_HEADER)
        header = parse_json(line) if line.endswith(b"\n") else None
        size = os.fstat(file.fileno()).st_size
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(header, dict) or header.get("warmstart_notes") != VERSION:
        return None
    if header.get("bytes") != size - len(line):
        return None
    return NoteIndex(file, header, len(line), size)


def read_levels(home: str) -> dict[str, str] | None:
    """Return the levels of advice by kind, under "" for all others; None where `config.toml` has changed since."""
    stamp = stamp_settings(home)
    if not stamp:
        return {}
    try:
        with open(os.path.join(home, FOLDER, LEVELS), "rb") as file:
            lines = file.read(_LONGEST_HEADER).decode("ascii", "replace").split("\n")
    except (OSError, ValueError):
        return None
    if lines[0] != stamp or lines[-1] != "":
        return None
    return {kind: level for kind, _, level in (line.partition("\t") for line in lines[1:-1])}


def stamp_settings(home: str) -> str:
    """Return a value that changes whenever `config.toml` changes; "" where there is none."""
    try:
        known = os.stat(os.path.join(home, "config.toml"))
    except (OSError, ValueError):
        return ""
    return f"{VERSION} {known.st_mtime_ns} {known.st_size} {known.st_ino}"


def find_index(home: str, folder: str | None) -> tuple[str, str] | None:
    """Return the index for a working folder, with the folder that it belongs to: the longest around the working folder.

    None where there is no index. The folder "" stands for all others.
    """
    notes = os.path.join(home, FOLDER)
    try:
        with open(os.path.join(notes, FOLDERS), "rb") as file:
            known = b"\n" + file.read(_LARGEST_MAP)
    except (OSError, ValueError):
        return None
    entry = _look_up(known, folder or "")
    if entry is None and folder and os.path.isabs(folder) and "\0" not in folder:
        entry = _look_up(known, os.path.realpath(folder))
    name, around = entry or (_get_line(known, ""), "")
    return None if name is None or "/" in name or os.sep in name else (os.path.join(notes, name), around)


def _look_up(known: bytes, folder: str) -> tuple[str, str] | None:
    while folder:
        folder = folder.rstrip("/")
        name = _get_line(known, folder) if folder else None
        if name is not None:
            return name, folder
        folder = folder.rpartition("/")[0]
    return None


def _get_line(known: bytes, folder: str) -> str | None:
    key = b"\n" + folder.encode("utf-8", "surrogatepass") + b"\t"
    at = known.find(key)
    end = known.find(b"\n", at + 1)
    return None if at < 0 or end < 0 else known[at + len(key) : end].decode("utf-8", "replace")
