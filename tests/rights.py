"""Rights on files. For tests that look in a process that is not root, to whom they say nothing."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Literal

import pytest


def let_in(path: Path) -> None:
    """Everybody, into all folders above a path: pytest's own is private, and under xdist there is one more."""
    around = Path(tempfile.gettempdir()).resolve()
    above = path.resolve().parents
    if around not in above:
        pytest.skip("the folders around the tests' own are not ours to open")
    for folder in above[: above.index(around)]:
        folder.chmod(0o755)


def take_writing(path: Path, what: Literal["file", "folder"]) -> None:
    """From everybody: of the file itself or of its folder."""
    let_in(path)
    path.chmod(0o444 if what == "file" else 0o666)
    path.parent.chmod(0o777 if what == "file" else 0o555)
