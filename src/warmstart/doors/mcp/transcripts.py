"""Which files `record` may read. The path comes from an agent, so it is not trusted.

The path must be a regular file that a reader recognises as a transcript. With all links resolved, it must lie in the
agents' usual places, in the folder the server was started in (unless that is the home folder or one above it), or in a
folder named at the start. For any other path the answer is the same whether or not the file exists, so that an agent
cannot explore the disk.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from warmstart import formats
from warmstart.errors import Refused
from warmstart.formats.source import Source
from warmstart.pipeline import Warmstart

MAX_SIZE = 512 << 20


def choose_folders(ws: Warmstart, named: Sequence[Path], started_in: Path) -> tuple[Path, ...]:
    """Return the folders, and single files, that transcripts may be read from."""
    usual = (path for _agent, path in ws.places())
    return tuple(dict.fromkeys(_resolve(path) for path in (*usual, *named, *_find_folder(ws, started_in))))


def _find_folder(ws: Warmstart, started_in: Path) -> Iterator[Path]:
    """Yield the folder a client started the server in, unless it is the home folder or above: that would allow too much."""
    if find_project(ws.settings.user_home, started_in) is not None:
        yield _resolve(started_in)


def find_project(user_home: Path, started_in: Path) -> str | None:
    """Return the folder a client started the server in as a project; the home folder and those above it are none."""
    folder = _resolve(started_in)
    return None if _resolve(user_home).is_relative_to(folder) else str(folder)


def check_transcript(path: str, folders: Iterable[Path]) -> Path:
    """Return the file to read. Raises Refused with the reason."""
    if not os.path.isabs(path):  # noqa: PTH117  # a Path would first drop what it takes for noise
        raise Refused("give the transcript's absolute path")
    file = _resolve_within(path, folders)
    if file is None:
        raise Refused(
            "the path is in none of the folders that this server may read: the agents' usual places, the folder it was "
            "started in, and those given with --transcripts"
        )
    formats.detect(Source(_check_file(file)))
    return file


def _resolve_within(path: str, folders: Iterable[Path]) -> Path | None:
    try:
        file = _resolve(Path(path))
    except (OSError, ValueError, RuntimeError):  # a loop of links, an impossible name
        return None
    return file if any(file.is_relative_to(folder) for folder in folders) else None


def _check_file(file: Path) -> Path:
    try:
        facts = file.stat()
    except OSError as error:
        raise Refused(f"{file.name[:200]}: {(error.strerror or str(error)).lower()}") from error
    if not stat.S_ISREG(facts.st_mode):
        raise Refused(f"{file.name}: not a file; give the file of that session")
    if facts.st_size > MAX_SIZE:
        raise Refused(f"{file.name}: larger than {MAX_SIZE >> 20} MB; record it with: warmstart record SESSION PATH")
    return file


def _resolve(path: Path) -> Path:
    return Path(os.path.realpath(path))
