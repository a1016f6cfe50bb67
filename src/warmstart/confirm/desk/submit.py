"""Submit a request: refuse it, allow it, or let it wait. It is on disk before anybody is notified."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.desk.load import SubmitPast, check_action, check_load, check_repeat, read_load, read_past
from warmstart.confirm.errors import ConfirmationError, Denied, KeyReused, RateLimited
from warmstart.confirm.masking.submission import digest_fingerprints
from warmstart.confirm.model import Allowance, Identity, NewRequest, Request
from warmstart.confirm.passkeys.proofs import keep_signed
from warmstart.confirm.policy.policy import Ruling
from warmstart.confirm.tokens.tokens import make_id

PUSH = "push"  # the channel of browsers; see notify/push.py


class Key(NamedTuple):
    """An idempotency key and the digest of the body it came with."""

    key: str
    digest: str


class SubmitVerdict(NamedTuple):
    """Who or what allows a request without asking."""

    by: str
    reason: str
    entry: str = ""  # id of the whitelist entry


def submit(
    tx: Transaction, who: Identity, new: NewRequest, key: Key | None = None, channels: Sequence[str] = ()
) -> Request | ConfirmationError:
    """Record a request. Deny wins over high-risk, high-risk over allow."""
    if key is not None and (known := _replay(tx, who, key)) is not None:
        return known
    ruling = tx.policy.rule_on(new.action)
    if ruling.decision == "deny":
        tx.log("denied_by_policy", "policy", action=new.action, digest=new.digest, requester=who.subject)
        return Denied(f"{new.action}: denied by the policy", code="denied_by_policy")
    past = read_past(tx.store, tx.policy, who, tx.now, new)
    if (limited := _check_limits(tx, who, new, ruling, past)) is not None:
        return limited
    request = _record(tx, who, new, ruling, may_be_listed=past.is_listed)
    if key is not None:
        answer = {"credential": who.credential, "key": key.key, "digest": key.digest, "request": request.id}
        tx.store.rows("put_answer", answer)
    if request.status == "pending":
        for channel in channels:
            if channel == PUSH and tx.store.row("live_pushes", {"now": tx.now}) is None:
                continue  # no browser wants it
            tx.store.rows("put_notice", {"request": request.id, "channel": channel, "due": tx.now})
    return request


def _replay(tx: Transaction, who: Identity, key: Key) -> Request | KeyReused | None:
    """Return the request that was submitted before with this key."""
    row = tx.store.row("answer", {"credential": who.credential, "key": key.key})
    if row is None:
        return None
    digest, id = row
    request = tx.find(id)
    return request if request is not None and digest == key.digest else KeyReused()


def _check_limits(
    tx: Transaction, who: Identity, new: NewRequest, ruling: Ruling, past: SubmitPast
) -> RateLimited | None:
    """Return the first limit that this request would exceed. The door records it: see FailureLog."""
    load = read_load(tx.store, who, tx.now, tx.memory)
    return (
        check_load(tx.policy, who, tx.now, load, past, new.size)
        or check_repeat(tx.policy.defaults, tx.now, past)
        or check_action(new.action, ruling.rate_limit, tx.now, past)
    )


def find_allowance(
    tx: Transaction, request: Request, ruling: Ruling, may_be_listed: bool = True
) -> SubmitVerdict | None:
    """Return what allows a request without asking: the policy, or a whitelist entry. High-risk actions always need a
    person."""
    if ruling.high_risk:
        return None
    if ruling.decision == "allow":
        return SubmitVerdict("policy", "allowed by the policy")
    entries = _list_covering(tx, "allowance", request) if may_be_listed else []
    if not entries:
        return None
    return SubmitVerdict("whitelist", f"whitelist entry {entries[0].id} by {entries[0].created_by}", entries[0].id)


def is_still_allowed(tx: Transaction, request: Request, ruling: Ruling) -> bool:
    """Return whether the permission under which a request was allowed still holds. It may have been its last use."""
    if ruling.high_risk:
        return False
    return ruling.decision == "allow" or bool(_list_covering(tx, "allowance_still", request))


def _list_covering(tx: Transaction, query: str, request: Request) -> list[Allowance]:
    """Return the whitelist entries that cover a request; once there is a passkey, only signed ones."""
    rows = tx.store.rows(query, _describe_wanted(request))
    return keep_signed(tx.store, [Allowance(*row) for row in rows])


def _describe_wanted(request: Request) -> dict[str, Any]:
    return {
        "action_key": request.action_key,
        "session_key": request.session_key,
        "requester_key": request.subject_key,
        "digest": request.digest,
        "now": request.created,
    }


def _record(tx: Transaction, who: Identity, new: NewRequest, ruling: Ruling, *, may_be_listed: bool) -> Request:
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
        created=tx.now,
        timeout=timeout,
        deadline=tx.now + timeout * 1000,
        status="pending",
        decided=None,
        decided_by="",
        reason="",
        execute_by=None,
        executed=None,
        size=new.size,
    )
    sequence = tx.log(
        "submitted",
        who,
        request,
        digest=request.digest,
        high_risk=request.high_risk,
        quorum=request.quorum,
        shown=request.shown,
        masks=digest_fingerprints(new.fingerprints),
        timeout=timeout,
    )
    request = msgspec.structs.replace(request, sequence=sequence)
    if (allowed := find_allowance(tx, request, ruling, may_be_listed)) is not None:
        request = _allow(tx, request, allowed)
    elif tx.memory is not None:
        tx.memory.add_waiting(who.credential, request.size)
    tx.store.rows("put_request", msgspec.structs.asdict(request))
    if new.fingerprints:
        masks = [{"request": request.id, "mask": mask, "fingerprint": mark} for mask, mark in new.fingerprints]
        tx.store.put_all("put_mask", masks)
    return request


def _allow(tx: Transaction, request: Request, allowed: SubmitVerdict) -> Request:
    until = tx.now + tx.policy.defaults.execute_seconds * 1000
    used = {"entry": allowed.entry} if allowed.entry else {}
    tx.log("auto_approved", allowed.by, request, reason=allowed.reason, digest=request.digest, execute_by=until, **used)
    if allowed.entry:
        tx.store.rows("use_allowance", {"id": allowed.entry})
    return msgspec.structs.replace(
        request,
        status="auto_approved",
        decided=tx.now,
        decided_by=allowed.by,
        reason=allowed.reason,
        execute_by=until,
    )
