"""What a writer remembers from one transaction to the next, so that it does not ask the database for what it just wrote."""

from __future__ import annotations

from typing import NamedTuple

from warmstart.confirm.audit.chain import ChainHead


class TokenLoad(NamedTuple):
    """The requests of a token that wait for a decision."""

    waiting: int
    taken: int  # bytes


class WriterMemory:
    """The newest audit entry and the load of each token. Every change has an audit entry, so what is remembered holds as
    long as nobody else has appended one."""

    def __init__(self) -> None:
        self.head: ChainHead | None = None
        self.loads: dict[str, TokenLoad] = {}  # by credential

    def begin(self, head: ChainHead) -> None:
        """Start a transaction at this entry; forget everything if it is not the one that we wrote last."""
        if head != self.head:
            self.forget()
        self.head = head

    def forget(self) -> None:
        """Something was rolled back: believe nothing but the database."""
        self.head = None
        self.loads.clear()

    def add_waiting(self, credential: str, size: int) -> None:
        """Count a request that was just stored."""
        if (load := self.loads.get(credential)) is not None:
            self.loads[credential] = TokenLoad(load.waiting + 1, load.taken + size)
