"""The corpus' whole projects, unpacked and read: shared by the benchmarks that replay them in order of time."""

from __future__ import annotations

import io
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import zstandard

from warmstart.model import PastSession
from warmstart.pipeline import Warmstart
from warmstart.store.history import read_history

PROJECTS = ROOT.parent / "shared" / "corpus" / "projects"
NAMES = ("context-evaluator", "chkit", "cipher-box", "mise")


@contextmanager
def open_project(folder: Path, name: str) -> Iterator[tuple[Path, list[PastSession]]]:
    """Yield the folder of a project's transcripts and its sessions in order of time.

    `folder` holds `NAME.tar.zst`, or unpacked folders `NAME` with transcripts in them or in their `sessions`.
    """
    from warmstart import config

    with TemporaryDirectory() as scratch:
        transcripts = find_transcripts(folder, name, Path(scratch))
        settings = config.load(Path(scratch) / "home", environ={"HOME": scratch})
        with Warmstart(settings) as ws:
            ws.ingest(transcripts)
            yield transcripts, [session for session in read_history(ws.store) if session is not None]


def find_transcripts(folder: Path, name: str, scratch: Path) -> Path:
    """Return the folder of a project's transcripts, unpacked if need be."""
    unpacked = folder / name
    if not unpacked.is_dir():
        archive = folder / f"{name}.tar.zst"
        if not archive.is_file():
            sys.exit(f"{archive}: no such archive; see shared/corpus/projects/README.md")
        with archive.open("rb") as file:
            data = zstandard.ZstdDecompressor(max_window_size=2**31).stream_reader(file).read()
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            tar.extractall(scratch, filter="data")
        unpacked = scratch / name
    return unpacked / "sessions" if (unpacked / "sessions").is_dir() else unpacked
