"""The types of the confirmation side: plain immutable values. Times are whole milliseconds since the epoch, UTC:
they are hashed, and a float could be written in more than one way."""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec
from msgspec import Struct

Status = Literal["pending", "approved", "auto_approved", "denied", "expired"]
Scope = Literal["agent:submit", "approver:decide", "audit:read", "admin"]
Delivery = Literal["queued", "sent", "undeliverable"]

SCOPES: tuple[Scope, ...] = ("agent:submit", "approver:decide", "audit:read", "admin")
STATUSES: tuple[Status, ...] = ("pending", "approved", "auto_approved", "denied", "expired")
ALLOWED: tuple[Status, ...] = ("approved", "auto_approved")  # may be executed

SHORTEST, LONGEST, USUAL = 30, 3_600, 300  # seconds that a request may wait for its decision
LONGEST_APPROVAL = 86_400  # seconds that an approval may be taken up, whatever a policy says
WINDOW = 3_600  # seconds over which requests of an action are counted
MOST_AN_HOUR = 10  # requests of one action


class Identity(Struct, frozen=True):
    """Who is asking, as the token or the session says; never what a body says."""

    subject: str
    key: str  # the subject as it is compared: names that look alike have the same
    scopes: frozenset[str]
    credential: str  # id of the token or session
    by_session: bool = False  # came through the page's login

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or "admin" in self.scopes


class NewRequest(Struct, frozen=True):
    """What an agent asks for, checked and masked. The exact details are not in it: only their digest."""

    action: str
    key: str  # the action as it is compared
    description: str  # masked
    details: str  # JSON, masked
    masked: int  # how many secrets were masked
    digest: str  # sha256 of the exact action and details
    claimed: str  # who the body says it is: shown, never believed
    session_key: str
    timeout: int | None  # seconds; None: as the policy says


class Request(Struct, frozen=True, array_like=True):
    """A stored request. The fields are the columns, in their order."""

    id: str  # 128 random bits, in hex; knowing it allows nothing
    sequence: int  # of the audit entry that recorded it
    action: str
    action_key: str
    description: str
    details: str
    masked: int
    digest: str
    subject: str  # of the requester
    subject_key: str
    credential: str  # id of the token that asked: only it gets the execution token
    claimed: str
    session_key: str
    high_risk: bool
    quorum: int  # different people who must approve
    created: int
    timeout: int  # seconds
    deadline: int  # absolute: it holds over restarts
    status: Status
    decided: int | None
    decided_by: str
    reason: str
    execute_by: int | None  # an approval does not last for ever
    executed: int | None

    @property
    def decision(self) -> HumanDecision | None:
        if self.status == "pending" or self.decided is None:
            return None
        return HumanDecision(
            status=self.status, by=self.decided_by, reason=self.reason, at=self.decided, request=self.id
        )

    @property
    def shown(self) -> str:
        """A hash of what people see beside the action: the audit keeps it, so that nobody shows them something else."""
        seen = (self.description, self.details, self.masked, self.claimed, self.session_key)
        return hashlib.sha256(msgspec.json.encode(seen)).hexdigest()


class HumanDecision(Struct, frozen=True, kw_only=True):
    """What was decided about a request, by whom and why."""

    status: Status
    by: str
    reason: str
    at: int
    request: str = ""  # its id


class Vote(Struct, frozen=True, array_like=True):
    """One person's yes."""

    by: str
    key: str  # the same, as it is compared
    reason: str
    at: int
    revoked: bool  # the token or login that it was given with was taken away


class Delivered(Struct, frozen=True, array_like=True):
    """How far a notification came."""

    channel: str  # kind and place in the settings, such as discord#1: its address holds secrets
    state: Delivery
    attempts: int
    error: str


class AuditEntry(Struct, frozen=True, array_like=True):
    """One transition. The fields are the columns, in their order."""

    sequence: int  # 1, 2, 3 ... without gaps
    at: int
    event: str
    request: str  # its id; empty where it is about something else
    action: str
    actor: str  # subject of the token or session, or who of ours: policy, whitelist, clock, daemon
    credential: str
    details: str  # JSON
    previous: str  # hash of the entry before
    hash: str


class Allowance(Struct, frozen=True, array_like=True):
    """An entry of the whitelist: one action in one session, until it ends."""

    id: str
    action: str
    action_key: str
    session_key: str
    requester_key: str  # empty: whoever asks in that session
    digest: str  # empty: whatever the details
    created: int
    created_by: str
    expires: int
    removed: int | None


class TokenRecord(Struct, frozen=True, array_like=True):
    """What is kept of a token: enough to recognise it, not to use it."""

    id: str
    digest: str  # sha256 of the token
    subject: str
    subject_key: str
    scopes: str  # with spaces between
    created: int
    created_by: str
    expires: int | None
    revoked: int | None


class Executed(Struct, frozen=True):
    """The approval was taken up, once."""

    request: Request
    at: int
