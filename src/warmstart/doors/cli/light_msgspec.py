"""Loads msgspec without `typing_extensions`: msgspec asks it, if it is installed, only for names that `typing` has too.

Loading it takes as long as a start of the interpreter. For the program's quick commands only; a library must not.
"""

from __future__ import annotations

import sys
from typing import Any

_EXTENSIONS = "typing_extensions"


def load_msgspec() -> None:
    """Load msgspec, and let others still load `typing_extensions`."""
    modules: dict[str, Any] = sys.modules
    if _EXTENSIONS in modules:
        return
    modules[_EXTENSIONS] = None  # importing it fails
    try:
        __import__("msgspec")
    finally:
        del modules[_EXTENSIONS]
