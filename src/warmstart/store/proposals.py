"""Proposals in the store: what reviews want to keep, and how far they have looked."""

from __future__ import annotations

from warmstart.errors import NotFound, Refused
from warmstart.store.rows import ProposalRow
from warmstart.store.sqlite import SqliteStore


class ProposalStore:
    """The proposals of a store. Changes are made inside the store's `writing()`."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store

    def put(self, row: ProposalRow) -> bool:
        """Whether it is new: what says the same was proposed before, and perhaps declined, is left as it is."""
        return bool(self.store.run("put_proposal", row.to_columns()).fetchall())

    def list(self, status: str | None = None, session_key: str | None = None) -> list[ProposalRow]:
        """The oldest first."""
        return [ProposalRow.from_columns(row) for row in self.store.rows("proposals", (status, session_key))]

    def find(self, name: str) -> ProposalRow:
        """By its id, or the beginning of it while that fits only one."""
        rows = self.store.rows("proposals_by_prefix", (name,)) if name else []
        if not rows:
            raise NotFound(f"no proposal {name}; see: warmstart review list")
        if len(rows) > 1:
            raise Refused(f"{name} fits several proposals: {', '.join(row[0][:12] for row in rows[:5])}")
        return ProposalRow.from_columns(rows[0])

    def decide(self, row: ProposalRow, status: str, reason: str, at: float, by: str) -> None:
        """Once and for ever. Raises Refused where someone has decided already."""
        if not self.store.run("decide_proposal", (status, reason, at, by, row.id)).fetchall():
            raise Refused(f"proposal {row.id[:12]} is decided already: {self.find(row.id).status}")

    def reviewed(self, session_key: str) -> int:
        """Steps of a session that a review has seen."""
        found = self.store.rows("reviewed_steps", (session_key,))
        return int(found[0][0]) if found else 0

    def put_reviewed(self, session_key: str, steps: int, at: float) -> None:
        self.store.run("put_reviewed", (session_key, steps, at))
