"""What reviews have spent today, counted over all processes: one line per answer of a model, under the home."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

_DAY = 86_400
_LONGEST = 1 << 20  # bytes; the file then begins anew with today's lines


class SpentTokens(Struct, frozen=True):
    """The tokens of one answer; cached ones count a tenth."""

    at: float  # seconds since the epoch
    tokens: int


_line = msgspec.json.Decoder(SpentTokens)


class DailyBudget:
    """The tokens that reviews may still use today (UTC)."""

    def __init__(self, home: Path, limit: int, clock: Callable[[], float] = time.time) -> None:
        """`limit`: tokens a day; 0: none, so no model is asked."""
        self._path = home / "review-spent.jsonl"
        self._limit = limit
        self._clock = clock

    @property
    def limit(self) -> int:
        return self._limit

    def left(self) -> int:
        return max(0, self._limit - sum(spent.tokens for spent in self._read_today()))

    def spend(self, tokens: int) -> None:
        """Record an answer at once: a process may be ended before its review is over."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        line = msgspec.json.encode(SpentTokens(self._clock(), tokens)) + b"\n"
        descriptor = os.open(self._path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
        try:
            os.write(descriptor, line)
            is_long = os.fstat(descriptor).st_size > _LONGEST
        finally:
            os.close(descriptor)
        if is_long:
            from warmstart.atomic_files import write_whole

            write_whole(self._path, b"".join(msgspec.json.encode(one) + b"\n" for one in self._read_today()))

    def _read_today(self) -> list[SpentTokens]:
        try:
            data = self._path.read_bytes()
        except OSError:
            return []
        today = self._clock() // _DAY
        lines = []
        for line in data.splitlines():
            try:
                spent = _line.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            if spent.at // _DAY == today:
                lines.append(spent)
        return lines
