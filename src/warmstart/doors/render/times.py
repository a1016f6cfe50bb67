"""Read times that people write: one grammar for every command and tool."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

_DAY, _HOUR = 86_400.0, 3_600.0


def read_since(text: str) -> float:
    """Return the time, in seconds since 1970, of a number of days (30, 30d) or hours (24h) back from now, or of a date (UTC)."""
    if back := re.fullmatch(r"(\d{1,5})([dh]?)", text, re.ASCII):
        return time.time() - int(back[1]) * (_HOUR if back[2] == "h" else _DAY)
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise ValueError(f"{text!r} is neither a number of days nor a date; write 30 or 2026-10-31") from None
