"""What sessions cost, in the store: what their transcripts tell and what callers report while they run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from warmstart.model import Spent, Usage
from warmstart.store.rows import LiveRow, SpentRow
from warmstart.store.sqlite import SqliteStore


class SessionFacts(NamedTuple):
    """What usage is grouped by."""

    key: str
    id: str  # the agent's own
    agent: str
    model: str | None
    project: str | None
    started: float | None  # or ended, where only that is known
    usage: str | None  # JSON of model.Usage, where nothing is kept by model and day


class UsageStore:
    """The usage of a store's sessions. Changes are made inside the store's `writing()`."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store

    # What transcripts tell

    def sessions(self) -> list[SessionFacts]:
        return [SessionFacts(*row) for row in self.store.rows("usage_facts")]

    def spent(self) -> Iterator[tuple[str, Spent]]:
        """Of all sessions, by the session's key."""
        for row in self.store.rows("all_spent"):
            yield row[0], to_spent(SpentRow.from_columns(row))

    def spent_of(self, key: str) -> list[SpentRow]:
        return [SpentRow.from_columns(row) for row in self.store.rows("spent_of", (key,))]

    # What callers report

    def live(self) -> list[LiveRow]:
        """Of all sessions; of each what was reported last comes last."""
        return [LiveRow.from_columns(row) for row in self.store.rows("all_live")]

    def live_of(self, session: str) -> list[LiveRow]:
        return [LiveRow.from_columns(row) for row in self.store.rows("live_of", (session,))]

    def put_live(self, row: LiveRow) -> None:
        self.store.run("put_live", row.to_columns())

    def name_agent(self, session: str, agent: str) -> None:
        """What was reported without an agent is this one's."""
        self.store.run("name_live_agent", (agent, session))

    def name_model(self, session: str, agent: str, model: str) -> None:
        """What was reported without a model is this one's."""
        self.store.run("name_live_model", (model, session, agent))

    def put_event(self, session: str, event: str, at: float) -> bool:
        """Whether the event is new."""
        return bool(self.store.run("put_usage_event", (session, event, at)).fetchall())


def to_spent(row: SpentRow | LiveRow) -> Spent:
    """The row as a value."""
    basis = row.basis if isinstance(row, SpentRow) else "reported"
    usage = Usage(row.input, row.output, row.cache_read, row.cache_write, row.reasoning, row.cost, basis)
    return Spent(usage, row.model, row.day)
