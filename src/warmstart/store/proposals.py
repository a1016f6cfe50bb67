"""Proposals of reviews in the store, and how far each session has been reviewed."""

from __future__ import annotations

from warmstart.errors import NotFound, Refused
from warmstart.store.protocol import Store
from warmstart.store.rows import ProposalRow


class ProposalStore:
    """The proposals of a store. Make changes inside the store's `writing()`."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def put(self, row: ProposalRow) -> bool:
        """Store a proposal. Returns False if the same content was proposed before; that proposal stays as it is."""
        return bool(self.store.rows("put_proposal", row.to_columns()))

    def list(self, status: str | None = None, session_key: str | None = None) -> list[ProposalRow]:
        """Return the proposals that match, oldest first."""
        return [ProposalRow.from_columns(row) for row in self.store.rows("proposals", (status, session_key))]

    def find(self, name: str) -> ProposalRow:
        """Return a proposal by its id or a unique prefix of it."""
        rows = self.store.rows("proposals_by_prefix", (name,)) if name else []
        if not rows:
            raise NotFound(f"no proposal {name}; see: warmstart review list")
        if len(rows) > 1:
            raise Refused(f"{name} matches several proposals: {', '.join(row[0][:12] for row in rows[:5])}")
        return ProposalRow.from_columns(rows[0])

    def decide(self, row: ProposalRow, status: str, reason: str, at: float, by: str) -> None:
        """Decide a proposal. Raises Refused if it is already decided."""
        if not self.store.rows("decide_proposal", (status, reason, at, by, row.id)):
            raise Refused(f"proposal {row.id[:12]} is already {self.find(row.id).status}")

    def reviewed(self, session_key: str) -> int:
        """Return the number of a session's steps that were reviewed."""
        rows = self.store.rows("reviewed_steps", (session_key,))
        return int(rows[0][0]) if rows else 0

    def put_reviewed(self, session_key: str, steps: int, at: float) -> None:
        """Store the number of a session's steps that were reviewed."""
        self.store.run("put_reviewed", (session_key, steps, at))
