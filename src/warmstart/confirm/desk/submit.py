"""A request comes in: refused, allowed or waiting, and on the disk before anybody is told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.errors import ConfirmationError, Denied, KeyReused, RateLimited
from warmstart.confirm.model import WINDOW, Identity, NewRequest, Request
from warmstart.confirm.policy.policy import Ruling
from warmstart.confirm.tokens.tokens import make_id


class Key(NamedTuple):
    """An idempotency key, and the body it came with."""

    key: str
    digest: str


class SubmitVerdict(NamedTuple):
    """Why a request need not wait."""

    by: str
    reason: str


def submit(
    turn: Transaction, who: Identity, new: NewRequest, key: Key | None = None, channels: Sequence[str] = ()
) -> Request | ConfirmationError:
    """Record a request. Deny comes first, then high-risk, then what allows."""
    if key is not None and (known := _replay(turn, who, key)) is not None:
        return known
    ruling = turn.policy.rule_on(new.action)
    if ruling.decision == "deny":
        turn.log("denied_by_policy", "policy", action=new.action, digest=new.digest, requester=who.subject)
        return Denied(f"{new.action}: the policy does not allow it", code="denied_by_policy")
    if (limited := _check_limit(turn, who, new, ruling)) is not None:
        return limited
    request = _record(turn, who, new, ruling)
    if key is not None:
        answer = {"credential": who.credential, "key": key.key, "digest": key.digest, "request": request.id}
        turn.store.rows("put_answer", answer)
    if request.status == "pending":
        for channel in channels:
            turn.store.rows("put_notice", {"request": request.id, "channel": channel, "due": turn.now})
    return request


def _replay(turn: Transaction, who: Identity, key: Key) -> Request | KeyReused | None:
    found = turn.store.row("answer", {"credential": who.credential, "key": key.key})
    if found is None:
        return None
    digest, id = found
    request = turn.find(id)
    return request if request is not None and digest == key.digest else KeyReused()


def _check_limit(turn: Transaction, who: Identity, new: NewRequest, ruling: Ruling) -> RateLimited | None:
    """Counted from the table: a restart forgets nothing."""
    since = turn.now - WINDOW * 1000
    count, oldest = turn.store.row("count_recent", {"action_key": new.key, "since": since})
    if count < ruling.rate_limit:
        return None
    wait = max(1, math.ceil((oldest - since) / 1000))
    turn.log("rate_limited", who, action=new.action, digest=new.digest, limit=ruling.rate_limit)
    return RateLimited(
        f"{new.action}: {ruling.rate_limit} an hour are allowed; try again in {wait} seconds",
        limit=ruling.rate_limit,
        retry_after=wait,
    )


def find_allowance(turn: Transaction, request: Request, ruling: Ruling) -> SubmitVerdict | None:
    """What allows a request without asking, if anything does: of what was good when it came in, what still is.

    Nothing does for high-risk actions.
    """
    if ruling.high_risk:
        return None
    if ruling.decision == "allow":
        return SubmitVerdict("policy", "allowed by the policy")
    wanted = {
        "action_key": request.action_key,
        "session_key": request.session_key,
        "requester_key": request.subject_key,
        "digest": request.digest,
        "now": request.created,
    }
    found = turn.store.row("allowance", wanted) if request.session_key else None
    return SubmitVerdict("whitelist", f"whitelist entry {found[0]} by {found[7]}") if found else None


def _record(turn: Transaction, who: Identity, new: NewRequest, ruling: Ruling) -> Request:
    timeout = min(new.timeout or ruling.timeout, ruling.longest)
    request = Request(
        id=make_id(),
        sequence=0,
        action=new.action,
        action_key=new.key,
        description=new.description,
        details=new.details,
        masked=new.masked,
        digest=new.digest,
        subject=who.subject,
        subject_key=who.key,
        credential=who.credential,
        claimed=new.claimed,
        session_key=new.session_key,
        high_risk=ruling.high_risk,
        quorum=ruling.quorum,
        created=turn.now,
        timeout=timeout,
        deadline=turn.now + timeout * 1000,
        status="pending",
        decided=None,
        decided_by="",
        reason="",
        execute_by=None,
        executed=None,
    )
    sequence = turn.log(
        "submitted",
        who,
        request,
        digest=request.digest,
        high_risk=request.high_risk,
        quorum=request.quorum,
        shown=request.shown,
        timeout=timeout,
    )
    request = msgspec.structs.replace(request, sequence=sequence)
    if (allowed := find_allowance(turn, request, ruling)) is not None:
        request = _allow(turn, request, allowed)
    turn.store.rows("put_request", msgspec.structs.asdict(request))
    return request


def _allow(turn: Transaction, request: Request, allowed: SubmitVerdict) -> Request:
    until = turn.now + turn.policy.defaults.execute_seconds * 1000
    turn.log("auto_approved", allowed.by, request, reason=allowed.reason, digest=request.digest, execute_by=until)
    return msgspec.structs.replace(
        request,
        status="auto_approved",
        decided=turn.now,
        decided_by=allowed.by,
        reason=allowed.reason,
        execute_by=until,
    )
