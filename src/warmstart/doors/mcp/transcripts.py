"""Which files `record` may read. The path comes from an agent, so it is not trusted.

Allowed is a regular file that a reader knows as a transcript and that lies, every link followed, below one of: the
places where agents leave transcripts, the folder the server was started in (unless that is the home folder or one
above it), and the folders named when the server was started. For any other path the answer is the same whether or
not there is such a file, so that an agent cannot find out what else is on the disk.
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
    """The folders, and single files, that transcripts are read from."""
    usual = (path for _agent, path in ws.places())
    return tuple(dict.fromkeys(_resolve(path) for path in (*usual, *named, *_own_folder(ws, started_in))))


def _own_folder(ws: Warmstart, started_in: Path) -> Iterator[Path]:
    """Clients start servers in the project, but some in the home folder or in /: that would allow everything."""
    folder, home = _resolve(started_in), _resolve(ws.settings.user_home)
    if not home.is_relative_to(folder):
        yield folder


def check_transcript(path: str, folders: Iterable[Path]) -> Path:
    """The file to read. Raises Refused with the reason why not."""
    if not os.path.isabs(path):  # noqa: PTH117  # a Path would first drop what it takes for noise
        raise Refused("give the transcript's absolute path")
    file = _resolve_within(path, folders)
    if file is None:
        raise Refused(
            "that path is in no folder this server reads transcripts from: the agents' usual places, the folder it was "
            "started in, and those given with --transcripts"
        )
    formats.detect(Source(_check_file(file)))
    return file


def _resolve_within(path: str, folders: Iterable[Path]) -> Path | None:
    try:
        file = _resolve(Path(path))
    except (OSError, ValueError, RuntimeError):  # a loop of links, a name no file system takes
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
