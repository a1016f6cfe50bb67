"""Atomic file writes: write a sibling file, fsync, rename. Locks between processes."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LONGEST = 50  # characters of the final name that the sibling's name repeats
_UNFINISHED = re.compile(r"\.(.+)\.[0-9a-f]{16}\.part")
_ABANDONED = 60.0  # seconds after which a writer must have died


@contextmanager
def write_beside(
    path: Path, data: bytes | Iterable[bytes], *, mode: int = 0o600, synced: bool = False
) -> Iterator[Path]:
    """Write the data to a sibling file that the caller renames; it is deleted on exit if it was not.

    `synced`: flush it to disk before the rename.
    """
    unfinished = path.with_name(f".{path.name[:_LONGEST]}.{os.urandom(8).hex()}.part")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(unfinished, flags, mode), "wb") as file:
            file.writelines((data,) if isinstance(data, bytes) else data)
            if synced:
                file.flush()
                os.fsync(file.fileno())
        yield unfinished
    finally:
        with suppress(OSError):
            unfinished.unlink()


def write_whole(path: Path, data: bytes | Iterable[bytes], *, mode: int = 0o600, synced: bool = False) -> None:
    """Replace a file atomically. `synced`: the new content survives a power cut once this returns."""
    with write_beside(path, data, mode=mode, synced=synced) as unfinished:
        unfinished.replace(path)
    if synced:
        sync_folder(path.parent)


def write_once(path: Path, data: bytes) -> None:
    """Write a file that is not there yet. Of several processes that do so at the same time, the first wins."""
    with write_beside(path, data, synced=True) as unfinished:
        try:
            os.link(unfinished, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            unfinished.replace(path)


def sync_folder(folder: Path) -> None:
    """Flush a folder to disk, and with it the renames in it, on systems that support this."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def lock_file(path: Path, *, wait: bool) -> Iterator[bool]:
    """Hold a lock between processes; yields whether it was free. The system releases it when the process ends."""
    handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        yield _lock(handle, wait)
    finally:
        os.close(handle)


def _lock(handle: int, wait: bool) -> bool:
    try:
        try:
            import fcntl
        except ImportError:  # Windows
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def final_name(name: str) -> str:
    """Return the name that an unfinished `.part` file will get; any other name unchanged."""
    unfinished = _UNFINISHED.fullmatch(name)
    return unfinished[1] if unfinished else name


def sweep_unfinished(folder: Path) -> None:
    """Delete stale `.part` files left by killed writers; those younger than a minute may still be in use."""
    for part in folder.glob(".*.part"):
        with suppress(OSError):
            if _UNFINISHED.fullmatch(part.name) and time.time() - part.stat().st_mtime > _ABANDONED:
                part.unlink()
