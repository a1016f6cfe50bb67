"""Days and weeks of timestamps. Transcripts may hold any number; one outside the calendar counts as unknown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

_WEEK = 7 * 86_400.0
_RECENT = 4  # weeks


def count_weekly(starts: Sequence[float], now: float = math.inf) -> float:
    """Return sessions per week over the last four weeks that have any: a holiday does not lower the figure."""
    known = [at for at in starts if find_day(at)]
    if not known:
        return 0.0
    last = min(now, max(known))
    recent = [at for at in known if at > last - _RECENT * _WEEK]
    span = max(_WEEK, min(_RECENT * _WEEK, last - min(known)))
    return len(recent) * _WEEK / span


def find_day(seconds: float | None) -> date | None:
    """Return the UTC day of a time, or None."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).date()
    except (OverflowError, ValueError, OSError):
        return None


def find_week(seconds: float | None) -> str | None:
    """Return the Monday of a time's week in UTC, or None."""
    day = find_day(seconds)
    if day is None or day.toordinal() <= day.weekday():
        return None
    return (day - timedelta(days=day.weekday())).isoformat()


def find_latest(*times: float | None) -> float | None:
    """Return the latest of the known times, or None."""
    return max((time for time in times if time is not None and find_day(time)), default=None)


def find_earliest(*times: float | None) -> float | None:
    """Return the earliest of the known times, or None."""
    return min((time for time in times if time is not None and find_day(time)), default=None)
