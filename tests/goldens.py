"""Golden files: what the program printed when a person last approved it. `WARMSTART_GOLDENS=write` writes them anew."""

from __future__ import annotations

import difflib
import os

from places import DATA

GOLDENS = DATA / "goldens"


def check_golden(name: str, text: str) -> None:
    """Compare a text with its golden file."""
    path = GOLDENS / name
    if os.environ.get("WARMSTART_GOLDENS") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert path.exists(), f"no golden file {name}: run the test with WARMSTART_GOLDENS=write and read what it wrote"
    stored = path.read_text()
    changes = "\n".join(list(difflib.unified_diff(stored.splitlines(), text.splitlines(), lineterm="", n=1))[:40])
    assert text == stored, f"{name} changed; if that is intended: WARMSTART_GOLDENS=write, and git diff\n{changes}"
