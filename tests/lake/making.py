"""Transcripts for lakes, and what a lake's files hold."""

from __future__ import annotations

import hashlib
from pathlib import Path

from notes.stored import RIGHT, WRONG, sessions
from transcripts import write_jsonl


def write_sessions(folder: Path, count: int, first: int = 0, *calls) -> Path:
    folder.mkdir(exist_ok=True)
    for number, lines in enumerate(sessions(count, *(calls or (WRONG, RIGHT)), first=first), first):
        write_jsonl(folder / f"{number:03}.jsonl", lines)
    return folder


def hash_files(lake: Path) -> dict[str, str]:
    return {
        str(file.relative_to(lake)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(lake.rglob("*.parquet"))
    }


def fill(ws, lake: Path | str, folder: Path, **how):
    return ws.lake(str(lake), **how).ingest([folder])
