"""Transcripts in: one module per format, each with `NAME`, `sniff(head)` and `read(source, judge)`.

A new format is one module, its entry in FORMATS, and two fixture files under tests/data/<format>/.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from warmstart.errors import SourceError, UnknownFormat, explain
from warmstart.formats import (
    anthropic,
    atif,
    claude_code,
    codex,
    codex_exec,
    gemini,
    hermes_db,
    hermes_export,
    mini_swe,
    openai_chat,
    sharegpt,
    tau2,
)
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Session
from warmstart.ports import Judge

__all__ = ["FORMATS", "Format", "Source", "detect", "find_files", "read"]


class Format(Protocol):
    """The names that a format module must define."""

    @property
    def NAME(self) -> str: ...  # noqa: N802
    def sniff(self, head: SourceHead) -> bool: ...
    def read(self, source: Source, judge: Judge) -> Iterator[Session]: ...


FORMATS: tuple[Format, ...] = (  # the most specific first: the first that recognises a file reads it
    hermes_db,
    claude_code,
    codex,
    codex_exec,
    gemini,
    atif,
    tau2,
    mini_swe,
    hermes_export,
    sharegpt,
    anthropic,
    openai_chat,
)

_SUFFIXES = frozenset((".jsonl", ".json", ".ndjson", ".zst", ".db", ".sqlite", ".sqlite3", ".traj", ".log", ""))


def detect(source: Source) -> Format:
    """Return the reader of a file, recognised by its content.

    Raises SourceError for a file that cannot be read and UnknownFormat for one that no reader recognises.
    """
    if source.head.empty:
        raise UnknownFormat(source.shown, "the file is empty")
    known = _sniff(source.head) or _sniff(source.look_further())
    if known is not None:
        return known
    raise UnknownFormat(source.shown, "no reader knows this format")


def _sniff(head: SourceHead) -> Format | None:
    return next((known for known in FORMATS if known.sniff(head)), None)


def read(source: Source, judge: Judge) -> Iterator[Session]:
    """Yield the sessions of one file; each result is judged as it is read."""
    yield from detect(source).read(source, judge)


def find_files(path: Path) -> Iterator[Path]:
    """Yield the path itself, or for a folder every file below it whose ending a transcript may have."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise SourceError(str(path), explain(error)) from error
    if not stat.S_ISDIR(mode):
        if not stat.S_ISREG(mode):
            raise SourceError(str(path), "not a regular file")
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            file = Path(folder, name)
            if (
                file.suffix.lower() in _SUFFIXES
                and not name.endswith((".meta.json", "-wal", "-shm"))
                and file.is_file()
            ):
                yield file
