"""Days and weeks of timestamps. Transcripts may hold any number; one outside the calendar counts as unknown."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from datetime import UTC, date, datetime, timedelta

Moment = tuple[float, str]  # start and key of a session: the order of sessions
AT_END: Moment = (math.inf, "")  # after all sessions

_WEEK = 7 * 86_400.0
_RECENT = 4  # weeks


def count_weekly(starts: Collection[float], now: float = math.inf, earliest: float | None = None) -> float:
    """Return sessions per week over the last four weeks that have any: a holiday does not lower the figure.

    `earliest`: the start of the first session, if `starts` are only those that `keep_recent` keeps.
    """
    known = [at for at in starts if find_day(at)]
    if not known:
        return 0.0
    last = min(now, max(known))
    recent = keep_recent(known, last)
    span = max(_WEEK, min(_RECENT * _WEEK, last - min(known if earliest is None else (earliest,))))
    return len(recent) * _WEEK / span


def keep_recent(starts: Iterable[float], last: float) -> list[float]:
    """Return the starts in the four weeks up to `last`, and later ones."""
    return [at for at in starts if at > last - _RECENT * _WEEK]


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


def make_moment(started: float | None, key: str) -> Moment:
    """Return the place of a session in time. Those without a start come first."""
    return (-math.inf if started is None or math.isnan(started) else started), key
