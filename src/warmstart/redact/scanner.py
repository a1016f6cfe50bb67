"""Hyperscan: many patterns in one pass over a text. Only this module uses it, and it works without it.

Compiling takes half a second, loading a compiled database a millisecond. So a database is compiled only after much text,
and kept in the folder that the program names. Until then, and where the wheel is missing, `gate.py` uses RE2.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from warmstart.atomic_files import write_whole

_WORTH_COMPILING = 4 << 20  # bytes searched by one process before it compiles the patterns
_CLASS = re.compile(r"\\.|\[\^?\]?|\]")


class PatternScanner:
    """Patterns compiled by Hyperscan. `numbers`: what each is reported as. `once`: each reports only its first match."""

    def __init__(self, sources: Sequence[str], *, numbers: Sequence[int] = (), once: bool = False) -> None:
        self._sources = [spell_spaces(source) for source in sources]
        self._numbers = list(numbers or range(len(sources)))
        self._once = once
        self._database: Any = None
        self._missing = False
        self._folder: Path | None = None
        self._tried = False
        self._compiling = threading.Lock()
        self._scratch = threading.local()

    def keep_in(self, folder: Path) -> None:
        """Keep the compiled patterns in a folder, from which another process loads them; the first folder named counts."""
        self._folder = self._folder or folder

    def is_ready(self, searched: int) -> bool:
        """Return whether `scan` can be called. `searched`: bytes so far in this process; after many, compiling is worth it."""
        if self._database is not None or self._missing:
            return not self._missing
        compiling = searched >= _WORTH_COMPILING
        if self._tried and not compiling:
            return False
        self._tried = True
        return self.prepare(compiling=compiling)

    def prepare(self, *, compiling: bool = True) -> bool:
        """Load the compiled patterns, or compile them; return whether `scan` can be called."""
        with self._compiling:
            if self._database is None and not self._missing:
                self._open(compiling=compiling)
        return self._database is not None

    def scan(self, data: bytes) -> list[tuple[int, int]]:
        """Return `(number of the pattern, end of the match)` of the matches; those of one pattern in order of their ends."""
        matches: list[tuple[int, int]] = []
        self._database.scan(data, match_event_handler=_note, context=matches, scratch=self._own_scratch())
        return matches

    def _own_scratch(self) -> Any:
        """Return the work space of this thread."""
        scratch = getattr(self._scratch, "value", None)
        if scratch is None:
            scratch = self._scratch.value = importlib.import_module("hyperscan").Scratch(self._database)
        return scratch

    def _open(self, *, compiling: bool) -> None:
        try:
            library = importlib.import_module("hyperscan")
        except ImportError:
            self._missing = True
            return
        self._database = self._load(library)
        if self._database is None and compiling:
            self._database = self._compile(library)
            self._missing = self._database is None

    def _compile(self, library: Any) -> Any:
        database = library.Database(mode=library.HS_MODE_BLOCK)
        try:
            database.compile(
                expressions=[source.encode() for source in self._sources],
                ids=self._numbers,
                elements=len(self._sources),
                flags=library.HS_FLAG_SINGLEMATCH if self._once else 0,
            )
        except library.error:  # an old processor, no memory: RE2 does it
            return None
        path = self._find_path(library)
        if path is not None:
            with suppress(OSError):  # a disk that is full or read-only: the next process compiles again
                write_whole(path, _seal(library.dumpb(database)))
        return database

    def _load(self, library: Any) -> Any:
        path = self._find_path(library)
        if path is None:
            return None
        try:
            data = _unseal(path.read_bytes())
            return None if data is None else library.loadb(data, library.HS_MODE_BLOCK)
        except (OSError, library.error):  # not there, or of another processor
            return None

    def _find_path(self, library: Any) -> Path | None:
        if self._folder is None or not self._folder.is_dir():
            return None
        identity = repr((library.__version__, self._once, self._numbers, self._sources)).encode()
        return self._folder / f"patterns-{hashlib.blake2b(identity, digest_size=8).hexdigest()}.hs"


def _note(index: int, _start: int, end: int, _flags: int, matches: list[tuple[int, int]]) -> None:
    matches.append((index, end))


def _seal(data: bytes) -> bytes:
    """Put a digest before the data: half a database must not be loaded."""
    return hashlib.blake2b(data, digest_size=32).digest() + data


def _unseal(sealed: bytes) -> bytes | None:
    data = sealed[32:]
    return data if hashlib.blake2b(data, digest_size=32).digest() == sealed[:32] else None


def spell_spaces(source: str) -> str:
    r"""Write `\s` out as the characters that it means to RE2; to Hyperscan it means the vertical tab too."""
    pieces = []
    at = 0
    inside = False
    for match in _CLASS.finditer(source):
        mark = match.group()
        if mark == r"\s":
            pieces.append(source[at : match.start()] + (r"\t\n\f\r " if inside else r"[\t\n\f\r ]"))
            at = match.end()
        elif mark == "]":
            inside = False
        elif mark[0] == "[" and not inside:
            inside = True
    return "".join([*pieces, source[at:]])


def replace_anchors(source: str, edge: bytes) -> str:
    r"""Replace `^`, `\A` and `\z` by a byte that stands before and behind each of many texts."""
    mark = f"\\x{edge.hex()}"
    return source.replace("(?:^|", f"(?:{mark}|").replace(r"\A", mark).replace(r"\z", mark)
