"""Times of transcripts, which may be anything: what no calendar knows is not known."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta


def find_day(seconds: float | None) -> date | None:
    """The day of a time, in UTC."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).date()
    except (OverflowError, ValueError, OSError):
        return None


def find_week(seconds: float | None) -> str | None:
    """The Monday of a time's week, in UTC."""
    day = find_day(seconds)
    if day is None or day.toordinal() <= day.weekday():
        return None
    return (day - timedelta(days=day.weekday())).isoformat()


def find_latest(*times: float | None) -> float | None:
    """The latest of the times that can be told."""
    return max((time for time in times if time is not None and find_day(time)), default=None)


def find_earliest(*times: float | None) -> float | None:
    return min((time for time in times if time is not None and find_day(time)), default=None)
