"""Detect daemons on one database that use different policies. Every daemon records its start and policy in the audit.

A daemon that sees another one start with a different policy records that, and the other one reads it: so both warn, and
a daemon that was killed long ago causes no warning. Daemons are identified by machine and address.
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
    """A daemon with a different policy."""

    instance: str
    policy: str


class Presence:
    """One daemon's record of itself and its view of the others."""

    def __init__(self, policy: Policy, address: str, version: str) -> None:
        self._instance = make_id()
        self._address = f"{socket.gethostname()} {address}"
        self._version = version
        self._policy = policy.digest
        self._seen = 0
        self._others: dict[str, _Other] = {}  # by address
        self._newcomers: list[str] = []  # instances that do not know yet that their policy differs

    @property
    def others(self) -> str:
        """The addresses of daemons with a different policy; empty if there are none."""
        others = (f"{address} (policy {other.policy[:12]})" for address, other in sorted(self._others.items()))
        return ", ".join(others)

    def start(self, tx: Transaction) -> None:
        self._seen = self._log(tx, STARTED, version=self._version)

    def stop(self, tx: Transaction) -> None:
        self._log(tx, STOPPED)

    def look(self, store: ConfirmStore) -> bool:
        """Read who started and stopped since the last look. Return whether a newcomer's policy differs from ours."""
        head = read_head(store).sequence
        if head > self._seen:
            for row in store.rows("daemons", {"since": self._seen, "until": head}):
                self._read(AuditEntry(*row))
            self._seen = head
        return bool(self._newcomers)

    def report(self, tx: Transaction) -> None:
        """Record for each newcomer that its policy differs from ours."""
        for instance in self._newcomers:
            self._log(tx, DIFFERS, other=instance)
        self._newcomers.clear()

    def _read(self, entry: AuditEntry) -> None:
        details = {name: str(value) for name, value in read_details(entry).items()}
        address, instance, policy = (details.get(name, "") for name in ("address", "instance", "policy"))
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
        elif details.get("other") == self._instance:
            self._others[address] = _Other(instance, policy)

    def _log(self, tx: Transaction, event: str, **more: Any) -> int:
        return tx.log(event, "daemon", policy=self._policy, instance=self._instance, address=self._address, **more)
