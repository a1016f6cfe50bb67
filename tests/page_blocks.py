"""The fenced blocks of documentation pages, read and run as a person would paste them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(sys.executable).parent


def read_blocks(text: str, language: str) -> list[str]:
    """Return the fenced blocks of a language; an empty one names those without."""
    return [block for name, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.S | re.M) if name == language]


def run_sh(script: str, folder: Path, **variables: str) -> str:
    """Run a block of a page as a person would paste it, and return what it printed."""
    environ = os.environ | {"PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"} | variables
    done = subprocess.run(["bash", "-ec", script], cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout
