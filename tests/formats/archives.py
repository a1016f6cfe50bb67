"""Archives of the shared corpus, unpacked where a test needs them."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
import zstandard

from places import CORPUS, NO_CORPUS


def unpack(name: str, folder: Path) -> Path:
    """Unpack `projects/NAME.tar.zst` into a folder and return where it is; skip the test where there is no corpus."""
    archive = CORPUS / "projects" / f"{name}.tar.zst"
    if not archive.is_file():
        pytest.skip(NO_CORPUS)
    decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    with archive.open("rb") as packed:
        data = decompressor.stream_reader(packed).read()
    with tarfile.open(fileobj=io.BytesIO(data)) as files:
        files.extractall(folder, filter="data")
    return folder / name
