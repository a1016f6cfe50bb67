"""A mapping that forgets: a gateway runs for weeks."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Latest(Generic[K, V]):
    """Keeps the entries that were put in last. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._entries: OrderedDict[K, V] = OrderedDict()

    def put(self, key: K, value: V) -> None:
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)

    def get(self, key: K) -> V | None:
        return self._entries.get(key)

    def delete(self, key: K) -> None:
        with self._lock:
            self._entries.pop(key, None)

    def __iter__(self) -> Iterator[K]:
        """Iterate over a copy of the keys, the latest last."""
        with self._lock:
            return iter(list(self._entries))

    def __contains__(self, key: object) -> bool:
        return key in self._entries
