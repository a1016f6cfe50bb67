"""The types of the confirmation side: plain immutable values. Times are integer milliseconds since the epoch (UTC),
because they are hashed and a float can be written in more than one way."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta, Struct

Status = Literal["pending", "approved", "auto_approved", "denied", "expired", "withdrawn"]
Scope = Literal["agent:submit", "approver:decide", "audit:read", "admin"]
Delivery = Literal["queued", "sent", "undeliverable"]

SCOPES: tuple[Scope, ...] = get_args(Scope)
STATUSES: tuple[Status, ...] = get_args(Status)
ALLOWED: tuple[Status, ...] = ("approved", "auto_approved")  # may be executed

SHORTEST, LONGEST, USUAL = 30, 3_600, 300  # seconds that a request may wait for its decision
LONGEST_APPROVAL = 86_400  # seconds that an approval can stay valid under any policy
WINDOW = 3_600  # seconds over which the rate limit counts requests for an action
MOST_AN_HOUR = 10  # requests for one action, unless the policy says otherwise


class Identity(Struct, frozen=True):
    """Who is calling, taken from the token or the session, never from a request body."""

    subject: str
    key: str  # the subject as it is compared: names that look alike share a key
    scopes: frozenset[str]
    credential: str  # id of the token or session
    by_session: bool = False  # logged in on the page

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or "admin" in self.scopes


class NewRequest(Struct, frozen=True):
    """A submitted request, checked and masked. Of the exact details it holds only the digest."""

    action: str
    key: str  # the action as it is compared
    description: str  # masked
    details: str  # JSON, masked
    masked: int  # how many secrets were masked
    digest: str  # sha256 of the exact action and details
    claimed: str  # the requester named in the body: shown, never trusted
    session_key: str
    timeout: int | None  # seconds; None: the policy decides
    fingerprints: tuple[tuple[str, str], ...] = ()  # of masked values: (token#1, fingerprint)

    @property
    def size(self) -> int:
        """Bytes that the request takes: description and details as stored."""
        return len(self.description.encode()) + len(self.details.encode())


class Request(Struct, frozen=True, array_like=True):
    """A stored request. The fields are the table's columns, in order."""

    id: str  # 128 random bits, in hex; knowing it grants nothing
    sequence: int  # of the audit entry that recorded it
    action: str
    action_key: str
    description: str
    details: str
    masked: int
    digest: str
    subject: str  # of the requester
    subject_key: str
    credential: str  # id of the submitting token: only this token gets the execution token
    claimed: str
    session_key: str
    high_risk: bool
    quorum: int  # different people who must approve
    created: int
    timeout: int  # seconds
    deadline: int  # absolute, so it survives restarts
    status: Status
    decided: int | None
    decided_by: str
    reason: str
    execute_by: int | None  # when the approval lapses
    executed: int | None
    size: int = 0  # bytes of description and details as stored

    @property
    def decision(self) -> HumanDecision | None:
        if self.status == "pending" or self.decided is None:
            return None
        return HumanDecision(
            status=self.status, by=self.decided_by, reason=self.reason, at=self.decided, request=self.id
        )

    @property
    def shown(self) -> str:
        """Hash the texts that people see beside the action. The audit records it, so a later change is detected."""
        texts = (self.description, self.details, self.masked, self.claimed, self.session_key)
        return hashlib.sha256(msgspec.json.encode(texts)).hexdigest()


class HumanDecision(Struct, frozen=True, kw_only=True):
    """The decision about a request: who decided what, when and why."""

    status: Status
    by: str
    reason: str
    at: int
    request: str = ""  # id of the request


class Vote(Struct, frozen=True, array_like=True):
    """One person's approval."""

    by: str
    key: str  # `by` as it is compared
    reason: str
    at: int
    revoked: bool  # the token or login that was used has been revoked since


class Delivered(Struct, frozen=True, array_like=True):
    """The state of one notification."""

    channel: str  # kind and position in the settings, such as discord#1; never the address, which holds secrets
    state: Delivery
    attempts: int
    error: str


class MaskedValue(Struct, frozen=True):
    """A masked value of a request, and what is known about the value."""

    mask: str  # token#1
    seen: int  # in other requests
    approved: int  # of these


class AuditEntry(Struct, frozen=True, array_like=True):
    """One transition. The fields are the table's columns, in order."""

    sequence: int  # 1, 2, 3 ... without gaps
    at: int
    event: str
    request: str  # id of the request; empty if the entry is not about one
    action: str
    actor: str  # subject of the token or session; or policy, whitelist, clock, daemon
    credential: str
    details: str  # JSON
    previous: str  # hash of the entry before
    hash: str


class Allowance(Struct, frozen=True, array_like=True):
    """A whitelist entry: one action in one session, until it expires."""

    id: str
    action: str
    action_key: str
    session_key: str
    requester_key: str  # empty: any requester in that session
    digest: str  # empty: any details
    created: int
    created_by: str
    expires: int
    removed: int | None
    times: int | None = None  # how often it allows; None: as often as wanted
    used: int = 0


class Passkey(Struct, frozen=True, array_like=True):
    """A device that signs approvals. The fields are the table's columns, in order."""

    id: str  # of the credential, base64url
    subject: str
    subject_key: str
    name: str
    public_key: str  # COSE, base64url
    rp: str  # host name of the page that it belongs to
    created: int
    vouched: int | None  # None: nobody vouched for it yet, so it cannot approve
    vouched_by: str  # id of the passkey that did; empty for the first
    removed: int | None


class Assertion(Struct, frozen=True, forbid_unknown_fields=True):
    """A passkey's signature of one statement, as browsers return it; all base64url."""

    id: Annotated[str, Meta(max_length=1_500)]  # of the passkey
    authenticator_data: Annotated[str, Meta(max_length=4_000)]
    client_data: Annotated[str, Meta(max_length=4_000)]
    signature: Annotated[str, Meta(max_length=4_000)]


class TokenRecord(Struct, frozen=True, array_like=True):
    """The stored part of a token: enough to recognise it, not to use it."""

    id: str
    digest: str  # sha256 of the token
    subject: str
    subject_key: str
    scopes: str  # separated by spaces
    created: int
    created_by: str
    expires: int | None
    revoked: int | None
