"""Functions that tests send to a background process. It imports this module, which therefore imports little."""

from __future__ import annotations

import os
import signal
from typing import Any

from warmstart.errors import Refused


def count(ws: Any, progress: Any) -> tuple[int, int, int]:
    """Return the number of sessions, and the process with its priority."""
    progress(1, 2, "")
    return ws.count_sessions(), os.getpid(), os.nice(0)


def refuse(_ws: Any, _progress: Any) -> None:
    raise Refused("not today")


def fail(_ws: Any, _progress: Any) -> None:
    raise ZeroDivisionError("by hand")


def die(_ws: Any, _progress: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
