"""Files that are there whole or not at all: written beside their place and then renamed, whoever is killed meanwhile."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LONGEST = 50  # characters of the name that a file will have, in the one that it has until then
_UNFINISHED = re.compile(r"\.(.+)\.[0-9a-f]{16}\.part")
_ABANDONED = 60.0  # seconds after which nobody finishes writing a file


@contextmanager
def write_beside(path: Path, data: bytes, *, mode: int = 0o600, synced: bool = False) -> Iterator[Path]:
    """The data in a file beside its place, to be renamed by the caller: what was not is removed afterwards. `synced`: it
    is on the disk before it can be renamed."""
    unfinished = path.with_name(f".{path.name[:_LONGEST]}.{os.urandom(8).hex()}.part")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(unfinished, flags, mode), "wb") as file:
            file.write(data)
            if synced:
                file.flush()
                os.fsync(file.fileno())
        yield unfinished
    finally:
        with suppress(OSError):
            unfinished.unlink()


def write_whole(path: Path, data: bytes, *, mode: int = 0o600, synced: bool = False) -> None:
    """All of it or nothing, in the place of what was there. `synced`: it survives a power cut once this returns."""
    with write_beside(path, data, mode=mode, synced=synced) as unfinished:
        unfinished.replace(path)
    if synced:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """A rename is on the disk when its folder is. Not every system can be asked for that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def final_name(name: str) -> str:
    """The name that a file gets which is still being written; of any other the one it has."""
    unfinished = _UNFINISHED.fullmatch(name)
    return unfinished[1] if unfinished else name


def sweep_unfinished(folder: Path) -> None:
    """Remove what processes have left in a folder that were killed while they wrote, not what others are writing now."""
    for left in folder.glob(".*.part"):
        with suppress(OSError):
            if _UNFINISHED.fullmatch(left.name) and time.time() - left.stat().st_mtime > _ABANDONED:
                left.unlink()
