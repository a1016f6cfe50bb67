"""Usage in the store: from transcripts, and as callers report it while sessions run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from warmstart.model import Spent, Usage
from warmstart.store.known import know_token_basis
from warmstart.store.protocol import Store
from warmstart.store.rows import CounterRow, LiveRow, SpentRow


class SessionFacts(NamedTuple):
    """The facts of a session by which usage is grouped."""

    key: str
    id: str  # the agent's own
    agent: str
    model: str | None
    project: str | None
    started: float | None  # the end, if only that is known


class UsageStore:
    """The usage of a store's sessions. Make changes inside the store's `writing()`."""

    def __init__(self, store: Store) -> None:
        self.store = store

    # From transcripts

    def sessions(self) -> list[SessionFacts]:
        """Return the facts of every session."""
        return [SessionFacts(*row) for row in self.store.rows("usage_facts")]

    def spent(self) -> Iterator[tuple[str, Spent]]:
        """Yield the usage of every session with its key."""
        for row in self.store.rows("all_spent"):
            yield row[0], to_spent(SpentRow.from_columns(row))

    def spent_of(self, key: str) -> list[SpentRow]:
        """Return the usage of one session by model and day."""
        return [SpentRow.from_columns(row) for row in self.store.rows("spent_of", (key,))]

    # From callers

    def live(self) -> list[LiveRow]:
        """Return the reported usage of every session; the latest report of each comes last."""
        return [LiveRow.from_columns(row) for row in self.store.rows("all_live")]

    def live_of(self, session: str) -> list[LiveRow]:
        """Return the reported usage of one session, the latest report last."""
        return [LiveRow.from_columns(row) for row in self.store.rows("live_of", (session,))]

    def put_live(self, row: LiveRow) -> None:
        """Store reported usage."""
        self.store.run("put_live", row.to_columns())

    def name_agent(self, session: str, agent: str) -> None:
        """Attribute usage that was reported without an agent to this agent."""
        self.store.run("name_live_agent", (agent, session))
        self.store.run("delete_named_counters", (agent, session))
        self.store.run("name_counter_agent", (agent, session))

    def name_model(self, session: str, agent: str, model: str) -> None:
        """Attribute usage that was reported without a model to this model."""
        self.store.run("name_live_model", (model, session, agent))

    def counter(self, session: str, agent: str, model: str) -> CounterRow | None:
        """Return the running total that was reported last, of a model or ("") of the whole session."""
        rows = self.store.rows("live_counter", (session, agent, model))
        return CounterRow.from_columns(rows[0]) if rows else None

    def put_counter(self, row: CounterRow) -> None:
        """Store a running total."""
        self.store.run("put_live_counter", row.to_columns())

    def put_event(self, session: str, event: str, at: float) -> bool:
        """Store a report's id. Returns whether it is new."""
        return bool(self.store.rows("put_usage_event", (session, event, at)))


def to_spent(row: SpentRow | LiveRow) -> Spent:
    """Return a row as a value."""
    basis = know_token_basis(row.basis) if isinstance(row, SpentRow) else "reported"
    usage = Usage(row.input, row.output, row.cache_read, row.cache_write, row.reasoning, row.cost, basis)
    return Spent(usage, row.model, row.day)
