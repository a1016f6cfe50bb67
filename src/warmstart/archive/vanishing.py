"""Which transcripts an agent will delete, and when. Claude Code deletes those unused for `cleanupPeriodDays`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

_DAYS = 30  # Claude Code's own default
_MOST_DAYS = 100_000  # more is never
_DAY = 86_400.0
_SOON = 7 * _DAY


class Vanishing(Struct, frozen=True, kw_only=True):
    """The transcripts of an agent that it will delete and that are not archived."""

    agent: str
    days: int  # without use, after which the agent deletes a transcript
    transcripts: int
    soon: int  # of these, within a week
    earliest: float | None  # when the first one is due, in seconds since the epoch


class _Settings(msgspec.Struct):
    cleanupPeriodDays: int | float | None = None  # noqa: N815


def find_vanishing(home: Path, archived: Collection[tuple[str, int]], now: float) -> Vanishing:
    """Look through Claude Code's folder. `archived`: path and modification time, in nanoseconds, of archived versions."""
    days = read_cleanup_days(home / "settings.json")
    due = sorted(
        mtime / 1e9 + days * _DAY
        for path, mtime in _list_transcripts(home / "projects")
        if (str(path), mtime) not in archived
    )
    return Vanishing(
        agent="claude-code",
        days=days,
        transcripts=len(due),
        soon=sum(at <= now + _SOON for at in due),
        earliest=due[0] if due else None,
    )


def read_cleanup_days(settings: Path) -> int:
    """Return after how many days Claude Code deletes a transcript; its default where the settings do not say."""
    try:
        days = msgspec.json.decode(settings.read_bytes(), type=_Settings).cleanupPeriodDays
    except (OSError, msgspec.DecodeError, RecursionError):
        return _DAYS
    return _DAYS if days is None or not 0 <= days <= _MOST_DAYS else int(days)


def _list_transcripts(folder: Path) -> Iterator[tuple[Path, int]]:
    for path in folder.rglob("*.jsonl"):
        try:
            yield path, path.stat().st_mtime_ns
        except OSError:
            continue
