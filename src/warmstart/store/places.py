"""Places of sessions in the store: the folder and the scope that an agent's program named while the session ran."""

from __future__ import annotations

from warmstart.store.protocol import Store
from warmstart.store.rows import PlaceRow


class PlaceStore:
    """The places of a store's sessions. The first place of a session counts."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, session: str, agent: str) -> PlaceRow | None:
        """Return the place of a session of an agent; None if its program named none."""
        rows = self._store.rows("session_place", (session, agent))
        return PlaceRow.from_columns(rows[0]) if rows else None

    def put(self, row: PlaceRow) -> None:
        """Store the place of a session. If it has one, only a summary is added, unless it has that too."""
        with self._store.writing():
            self._store.run("put_session_place", row.to_columns())
