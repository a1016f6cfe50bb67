"""Transcripts in: one module per format, each with `NAME`, `sniff(head)` and `read(source, judge)`.

A new format is one module, its entry in FORMATS, and two fixture files under tests/data/<format>/.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import Protocol

from warmstart.errors import SourceError, UnknownFormat, explain
from warmstart.formats import (
    aider,
    anthropic,
    antigravity,
    atif,
    claude_code,
    cline_cli,
    codex,
    codex_exec,
    continue_dev,
    copilot_cli,
    droid,
    gemini,
    grok,
    hermes_db,
    hermes_export,
    inspect_log,
    kimi,
    langfuse,
    langsmith,
    mini_swe,
    openai_chat,
    opencode,
    opencode_db,
    opencode_storage,
    openhands,
    otel,
    pi,
    qwen,
    sharegpt,
    specstory,
    swe_agent,
    tau2,
)
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Session
from warmstart.ports import Judge

__all__ = ["FORMATS", "Format", "Source", "detect", "find_files", "may_be_archive", "may_be_transcript", "read"]


class Format(Protocol):
    """The names that a format module must define."""

    @property
    def NAME(self) -> str: ...  # noqa: N802
    def sniff(self, head: SourceHead) -> bool: ...
    def read(self, source: Source, judge: Judge) -> Iterator[Session]: ...


FORMATS: tuple[Format, ...] = (  # the most specific first: the first that recognises a file reads it
    hermes_db,
    opencode_db,
    opencode,
    opencode_storage,
    pi,
    claude_code,
    qwen,
    codex,
    codex_exec,
    copilot_cli,
    droid,
    kimi,
    grok,
    antigravity,
    gemini,
    inspect_log,
    openhands,
    otel,
    langfuse,
    langsmith,
    continue_dev,
    cline_cli,
    atif,
    tau2,
    swe_agent,
    mini_swe,
    hermes_export,
    sharegpt,
    anthropic,
    openai_chat,
    specstory,
    aider,
)

_SUFFIXES = frozenset(
    (".jsonl", ".json", ".ndjson", ".zst", ".db", ".sqlite", ".sqlite3", ".traj", ".eval", ".log", "")
)
_ARCHIVES = frozenset((".tar", ".tgz", ".tzst", ".gz", ".zip"))

_HISTORY = re.compile(r"\.aider\.chat\.history.*\.md$|\d{4}-\d\d-\d\d_\d\d-\d\d.*\.md$")


def detect(source: Source) -> Format:
    """Return the reader of a file, recognised by its content.

    Raises SourceError for a file that cannot be read and UnknownFormat for one that no reader recognises.
    """
    if source.head.empty:
        raise UnknownFormat(source.shown, "the file is empty")
    known = _sniff(source.head) or _sniff(source.look_further())
    if known is not None:
        return known
    raise UnknownFormat(source.shown, _explain_unknown(source.head))


def _explain_unknown(head: SourceHead) -> str:
    if head.sqlite:
        return "no reader knows this database"
    if head.archive:
        return "no reader knows this archive"
    if not head.records:
        return "no reader knows this format; it begins with no JSON record"
    return "no reader knows this format"


def _sniff(head: SourceHead) -> Format | None:
    return next((known for known in FORMATS if known.sniff(head)), None)


def read(source: Source, judge: Judge) -> Iterator[Session]:
    """Yield the sessions of one file; each result is judged as it is read."""
    yield from detect(source).read(source, judge)


def find_files(path: Path, on_error: Callable[[OSError], None] | None = None, packed: bool = False) -> Iterator[Path]:
    """Yield the path itself, or for a folder every file below it whose ending a transcript may have.

    `packed`: also yield files with the endings of archives. `on_error` gets the errors of folders that cannot be listed.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise SourceError(str(path), explain(error)) from error
    if not stat.S_ISDIR(mode):
        if not stat.S_ISREG(mode):
            raise SourceError(str(path), "not a regular file")
        yield path
        return
    for file in _walk(path, on_error):
        if may_be_transcript(file) or (packed and may_be_archive(file)):
            yield file


def _walk(folder: Path | str, on_error: Callable[[OSError], None] | None) -> Iterator[Path]:
    """Yield the files below a folder in order of their names. Folders tell what an entry is, so that no file is asked."""
    try:
        with os.scandir(folder) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except OSError as error:
        if on_error:
            on_error(error)
        return
    folders: list[str] = []
    for entry in entries:
        try:
            if entry.is_dir():
                if not entry.is_symlink() and entry.name != ".git":  # its objects have no ending either
                    folders.append(entry.path)
            elif entry.is_file():
                yield Path(entry.path)
        except OSError:
            continue
    for inner in folders:
        yield from _walk(inner, on_error)


def may_be_archive(file: PurePath) -> bool:
    """Return whether a file has the ending of an archive or of a packed file."""
    return file.suffix.lower() in _ARCHIVES


def may_be_transcript(file: PurePath) -> bool:
    """Return whether a transcript may have this file's name."""
    if file.suffix.lower() == ".md":  # most Markdown is no transcript
        return bool(_HISTORY.match(file.name)) or ".specstory" in file.parts
    return file.suffix.lower() in _SUFFIXES and not file.name.endswith((".meta.json", "-wal", "-shm"))
