"""One change: the store inside a transaction, the time, and the policy in force.

A refused change that must be recorded (a late approval, a wrong token) returns its error instead of raising it:
raising would undo the audit entry as well.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from warmstart.confirm.audit import chain
from warmstart.confirm.audit.memory import WriterMemory
from warmstart.confirm.model import Identity, Request
from warmstart.confirm.policy.policy import Policy
from warmstart.confirm.store.protocol import ConfirmStore


class Transaction(NamedTuple):
    """A change in progress; see the module."""

    store: ConfirmStore
    now: int
    policy: Policy
    memory: WriterMemory | None = None  # of the daemon's writer

    def log(
        self, event: str, who: Identity | str, request: Request | None = None, *, action: str = "", **details: Any
    ) -> int:
        """Add an audit entry and return its sequence."""
        head = chain.append(
            self.store,
            event,
            at=self.now,
            actor=who if isinstance(who, str) else who.subject,
            credential="" if isinstance(who, str) else who.credential,
            request=request.id if request else "",
            action=request.action if request else action,
            details=details,
            head=self.memory.head if self.memory else None,
        )
        if self.memory is not None:
            self.memory.head = head
            if request is not None and event != "submitted":  # it may wait no longer
                self.memory.loads.pop(request.credential, None)
        return head.sequence

    def find(self, id: str) -> Request | None:
        row = self.store.row("request", {"id": id})
        return load_request(row) if row else None


def load_request(row: Any) -> Request:
    values = list(row)
    values[13] = bool(values[13])  # high_risk
    return Request(*values)
