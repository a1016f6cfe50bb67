"""Delete repositories of our own that killed commands left behind."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

_ABANDONED = 3_600.0  # seconds; no command takes that long


def sweep_clones(folder: Path, now: float) -> None:
    """Delete the temporary repositories in a folder that are older than an hour."""
    for clone in folder.glob("git-*"):
        with suppress(OSError):
            if now - clone.stat().st_mtime > _ABANDONED:
                shutil.rmtree(clone, ignore_errors=True)
