"""Past sessions out of the store, one at a time: a store may hold a million calls."""

from __future__ import annotations

from collections.abc import Iterator

from warmstart.ingest.records import past_session
from warmstart.model import PastSession
from warmstart.ports import Progress
from warmstart.store import SessionRow, SqliteStore


def read_history(
    store: SqliteStore,
    *,
    agent: str | None = None,
    project: str | None = None,
    since: float | None = None,
    progress: Progress | None = None,
) -> Iterator[PastSession | None]:
    """The sessions that fit, the earliest first; None for one whose record cannot be read."""
    keys = [key for (key,) in store.rows("session_keys", (agent, project, since))]
    for done, key in enumerate(keys):
        if progress:
            progress(done, len(keys), key)
        for columns in store.rows("session_by_key", (key,)):  # none, where another process has just deleted it
            yield past_session(SessionRow.from_columns(columns), store.calls_of(key))
