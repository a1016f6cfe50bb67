"""Turns: heavy work for one caller is done one piece at a time, so that a flood by one holds up only itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

LARGE = 16 << 10  # bytes: parsing or writing out more in the event loop would hold up everybody else


class CallerTurns:
    """The turns of one event loop, by caller."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._users: dict[str, int] = {}

    @asynccontextmanager
    async def take(self, caller: str) -> AsyncIterator[None]:
        """Wait until all earlier work of this caller is done."""
        lock = self._locks.setdefault(caller, asyncio.Lock())
        self._users[caller] = self._users.get(caller, 0) + 1
        try:
            async with lock:
                yield
        finally:
            self._users[caller] -= 1
            if not self._users[caller]:
                del self._users[caller], self._locks[caller]

    async def run(self, caller: str, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Do the work in a thread, in turn."""
        async with self.take(caller):
            return await asyncio.to_thread(work, *args, **kwargs)
