"""Which daemons run on a database, and by which policy each goes: that stands in the audit, at every start.

A daemon that sees another start with another policy says so in the audit, where that one sees it in turn: so both warn,
and nobody has to know who was killed long ago. Machines and addresses tell daemons apart.
"""

from __future__ import annotations

import socket
from typing import Any, NamedTuple

from warmstart.confirm.audit.chain import read_head
from warmstart.confirm.audit.expected_rows import read_details
from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.model import AuditEntry
from warmstart.confirm.policy.policy import Policy
from warmstart.confirm.store.protocol import ConfirmStore
from warmstart.confirm.tokens.tokens import make_id

STARTED, STOPPED, DIFFERS = "started", "stopped", "policy_differs"


class _Other(NamedTuple):
    """A daemon that goes by another policy."""

    instance: str
    policy: str


class Presence:
    """Of one daemon."""

    def __init__(self, policy: Policy, address: str, version: str) -> None:
        self._instance = make_id()
        self._address = f"{socket.gethostname()} {address}"
        self._version = version
        self._policy = policy.digest
        self._seen = 0
        self._others: dict[str, _Other] = {}  # by their addresses
        self._newcomers: list[str] = []  # that are to be told

    @property
    def others(self) -> str:
        """Where others go by another policy than we do; empty where nobody does."""
        found = (f"{address} (policy {other.policy[:12]})" for address, other in sorted(self._others.items()))
        return ", ".join(found)

    def start(self, turn: Transaction) -> None:
        self._seen = self._log(turn, STARTED, version=self._version)

    def stop(self, turn: Transaction) -> None:
        self._log(turn, STOPPED)

    def look(self, store: ConfirmStore) -> bool:
        """See who started and stopped since the last look. Whether somebody is to be told that we differ."""
        head = read_head(store).sequence
        if head > self._seen:
            for row in store.rows("daemons", {"since": self._seen, "until": head}):
                self._hear(AuditEntry(*row))
            self._seen = head
        return bool(self._newcomers)

    def tell(self, turn: Transaction) -> None:
        for instance in self._newcomers:
            self._log(turn, DIFFERS, other=instance)
        self._newcomers.clear()

    def _hear(self, entry: AuditEntry) -> None:
        told = {name: str(value) for name, value in read_details(entry).items()}
        address, instance, policy = (told.get(name, "") for name in ("address", "instance", "policy"))
        known = self._others.get(address)
        if instance == self._instance:
            return
        if entry.event == STOPPED:
            if known is not None and known.instance == instance:
                del self._others[address]
        elif policy == self._policy:
            self._others.pop(address, None)
        elif entry.event == STARTED:
            self._others[address] = _Other(instance, policy)
            self._newcomers.append(instance)
        elif told.get("other") == self._instance:
            self._others[address] = _Other(instance, policy)

    def _log(self, turn: Transaction, event: str, **more: Any) -> int:
        return turn.log(event, "daemon", policy=self._policy, instance=self._instance, address=self._address, **more)
