"""A log of errors in hooks, which themselves must stay silent.

At most two small files under the home. They never hold prompts or answers: of unforeseen errors only the kind and the
place, of Warmstart's own errors the redacted message.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from warmstart.errors import WarmstartError

_LARGEST = 64_000  # bytes of a file before it is renamed to `.log.1`
_GAVE_UP = ": gave up after "
_MOST = 1_000  # lines that are looked at
_LONGEST = 300  # characters of a line


def log_trouble(home: Path, what: str, trouble: str | BaseException) -> None:
    """Add a line. Errors are ignored: the disk may be full, and the caller is already handling one."""
    with suppress(Exception):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = _file(home)
        if file.exists() and file.stat().st_size > _LARGEST:
            file.replace(file.with_suffix(".log.1"))
        reason = trouble if isinstance(trouble, str) else describe(trouble)
        line = " ".join(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {what}: {reason}".split())[:_LONGEST]
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8", errors="replace") as log:
            log.write("".join(c for c in line if c.isprintable()) + "\n")


def read_troubles(home: Path, most: int = 5) -> list[str]:
    """Return the latest lines, oldest first."""
    try:
        return _file(home).read_text("utf-8", "replace").splitlines()[-most:]
    except OSError:
        return []


def count_given_up(home: Path, since: float) -> tuple[int, str]:
    """Return how often hooks gave up since a time, and the last line about it."""
    first = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(since))
    lines = [line for line in read_troubles(home, _MOST) if _GAVE_UP in line and line >= first]
    return len(lines), lines[-1] if lines else ""


def describe(error: BaseException) -> str:
    """Describe an error without text that came from outside."""
    if isinstance(error, WarmstartError):
        return f"{type(error).__name__}: {_redact(str(error), getattr(error, 'public_key', ''))}"
    if isinstance(error, OSError) and error.strerror:
        return f"{type(error).__name__}: {error.strerror}"
    place = ""
    at = error.__traceback__
    while at is not None:
        place = f" in {Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}"
        at = at.tb_next
    return f"{type(error).__name__}{place}"


def _redact(text: str, public: str = "") -> str:
    """Redact secrets, but not the public text that a person has to compare."""
    from warmstart.redact import Redactor

    redacted = Redactor({}).scope().text
    return public.join(map(redacted, text.split(public))) if public else redacted(text)


def _file(home: Path) -> Path:
    return home / "hooks.log"
