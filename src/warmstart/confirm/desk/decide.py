"""Decide requests, expire them, and execute an approval once.

A single conditional UPDATE lets the first decision win; every later one gets the stored decision back.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.desk.submit import is_still_allowed
from warmstart.confirm.errors import ConfirmationError, Conflict, Expired, NotAllowed
from warmstart.confirm.lookalikes import is_lookalike
from warmstart.confirm.model import ALLOWED, Assertion, Identity, Request
from warmstart.confirm.passkeys.proofs import find_unproven, keep_proven, report_unproven
from warmstart.confirm.passkeys.records import check_signature, show_proof
from warmstart.confirm.passkeys.statements import Terms, state_approval
from warmstart.confirm.policy.policy import Ruling
from warmstart.confirm.policy.standing import judge, read_votes
from warmstart.confirm.tokens.access import NewAllowance, add_allowance
from warmstart.confirm.tokens.tokens import is_same
from warmstart.errors import NotFound
from warmstart.names import name_key

Answer = Literal["approved", "denied"]


class DecisionRequest(NamedTuple):
    """The decision that somebody wants to make."""

    answer: Answer
    reason: str = ""  # masked
    digest: str | None = None  # of the request that the decider saw
    claimed: str = ""  # the decider named in the body, masked: recorded, never trusted
    proof: Assertion | None = None  # the signature of the decider's passkey
    terms: Terms | None = None  # an approval also allows the same action in advance


def decide(tx: Transaction, who: Identity, id: str, wish: DecisionRequest) -> Request | Exception:
    """Approve or deny a request. With a quorum, an approval is a vote until enough different people have voted."""
    request = tx.find(id)
    if request is None:
        return _not_there(id)
    if (refused := _check_decider(tx, who, request, wish)) is not None:
        tx.log("decision_refused", who, request, why=refused.code, wanted=wish.answer)
        return refused
    if (late := _check_open(tx, request)) is not None:
        return late
    if wish.answer == "approved" and (waiting := _vote(tx, who, request, wish)) is not None:
        return waiting
    return _resolve(tx, who, request, wish)


def deny_all(tx: Transaction, who: Identity, requester: str, reason: str, most: int = 200) -> tuple[int, int]:
    """Deny up to `most` waiting requests of one requester. Return how many were denied, and how many of the rest this
    person may not deny."""
    waiting = tx.store.rows("waiting_of", {"subject_key": name_key(requester), "now": tx.now, "limit": most})
    wish = DecisionRequest("denied", reason)
    results = [decide(tx, who, id, wish) for (id,) in waiting]
    denied = sum(isinstance(result, Request) for result in results)
    return denied, len(results) - denied


def _check_decider(tx: Transaction, who: Identity, request: Request, wish: DecisionRequest) -> ConfirmationError | None:
    ruling = tx.policy.rule_on(request.action)
    if who.key == request.subject_key:
        return NotAllowed("this is your own request: somebody else must decide it", code="own_request")
    if is_lookalike(who.subject, request.subject):
        why = f"your name looks like {request.subject}, who asked: somebody else must decide it"
        return NotAllowed(why, code="own_request")
    if not ruling.lets_decide(who.subject):
        return NotAllowed(f"the policy does not let you decide about {request.action}", code="not_a_decider")
    if wish.answer == "approved" and ruling.decision == "deny":
        return NotAllowed(f"the policy does not allow {request.action}", code="denied_by_policy")
    if wish.digest is not None and not is_same(wish.digest, request.digest):
        return Conflict("this is not the request that you were shown; load it again", code="changed")
    if wish.answer == "approved":
        return _check_terms(request, wish, ruling) or _check_proof(tx, who, request, wish)
    return None


def _check_terms(request: Request, wish: DecisionRequest, ruling: Ruling) -> ConfirmationError | None:
    """Refuse to allow in advance what the policy lets nobody allow alone and unseen."""
    if wish.terms is None:
        return None
    if ruling.high_risk or request.high_risk:
        return Conflict(f"{request.action} is high-risk: a person decides each time", code="high_risk")
    if max(request.quorum, ruling.quorum) > 1:
        return Conflict(f"several people decide about {request.action}, each time", code="quorum")
    return None


def _check_proof(tx: Transaction, who: Identity, request: Request, wish: DecisionRequest) -> ConfirmationError | None:
    return check_signature(tx, who, wish.proof, state_approval(request.id, request.digest, wish.terms))


def _describe_wish(wish: DecisionRequest) -> dict[str, Any]:
    """Return what the audit keeps of a decision beside its reason."""
    claimed: dict[str, Any] = {"claimed": wish.claimed} if wish.claimed else {}
    proof = {"proof": show_proof(wish.proof)} if wish.proof else {}
    return claimed | proof | (wish.terms._asdict() if wish.terms else {})


def _check_open(tx: Transaction, request: Request) -> ConfirmationError | None:
    """Return why the request can no longer be decided, or None if it can. A request past its deadline expires here,
    even if the watch has not seen it yet."""
    if request.status == "pending" and request.deadline <= tx.now:
        expire(tx, request.id)
        request = tx.find(request.id) or request
    if request.status == "pending":
        return None
    if request.status == "expired":
        return Expired(f"too late: {request.action} has expired", decision=request.decision)
    return Conflict(f"already {request.status} by {request.decided_by}", decision=request.decision)


def _vote(tx: Transaction, who: Identity, request: Request, wish: DecisionRequest) -> Request | Conflict | None:
    """Record an approval. Return None if it was the last one needed."""
    given_before = keep_proven(tx.store, request, read_votes(tx.store, request.id))
    standing = judge(request, given_before, tx.policy.rule_on(request.action))
    others = [vote for vote in standing.votes if not is_lookalike(vote.by, who.subject)]
    if standing.missing and len(others) < len(standing.votes):
        return Conflict("you have already approved this; others must approve it too", code="already_voted")
    vote = {
        "request": request.id,
        "subject_key": who.key,
        "subject": who.subject,
        "credential": who.credential,
        "reason": wish.reason,
        "at": tx.now,
    }
    tx.store.rows("put_vote", vote)
    given = len(others) + 1
    if given >= standing.quorum:
        return None
    facts: dict[str, Any] = {"given": given, "quorum": standing.quorum, "digest": request.digest}
    tx.log("vote", who, request, reason=wish.reason, **facts, **_describe_wish(wish))
    return request


def _resolve(tx: Transaction, who: Identity, request: Request, wish: DecisionRequest) -> Request | ConfirmationError:
    until = tx.now + tx.policy.defaults.execute_seconds * 1000
    change = {
        "id": request.id,
        "status": wish.answer,
        "now": tx.now,
        "by": who.subject,
        "reason": wish.reason,
        "execute_by": until if wish.answer == "approved" else None,
    }
    won = tx.store.row("resolve", change) is not None
    after = tx.find(request.id)
    assert after is not None
    if not won:
        return _check_open(tx, after) or Conflict(decision=after.decision)
    limits: dict[str, Any] = {} if after.execute_by is None else {"execute_by": after.execute_by}
    tx.log(wish.answer, who, after, reason=wish.reason, digest=after.digest, **limits, **_describe_wish(wish))
    if wish.terms is not None and wish.answer == "approved":
        _allow_again(tx, who, after, wish, wish.terms)
    return after


def _allow_again(tx: Transaction, who: Identity, request: Request, wish: DecisionRequest, terms: Terms) -> None:
    """Allow the same requester the same action with the same details, for a number of times within a time."""
    new = NewAllowance(
        action=request.action,
        key=request.action_key,
        session_key=request.session_key,
        seconds=terms.seconds,
        requester=request.subject,
        digest=request.digest,
        times=terms.times,
    )
    added = add_allowance(tx, new, who, given=request, proof=wish.proof)
    if isinstance(added, Exception):  # checked before: nothing of the decision may stay
        raise added


def withdraw(tx: Transaction, who: Identity, id: str, reason: str = "") -> Request | Exception:
    """Take a request back: only its requester can, and only while it waits."""
    request = tx.find(id)
    if request is None or request.subject_key != who.key:
        return _not_there(id)
    if (late := _check_open(tx, request)) is not None:
        return late
    why = reason or "withdrawn by the requester"
    tx.store.row("withdraw", {"id": id, "now": tx.now, "by": who.subject, "reason": why})
    after = tx.find(id)
    assert after is not None
    tx.log("withdrawn", who, after, reason=why, digest=after.digest)
    return after


def expire(tx: Transaction, id: str) -> bool:
    """Expire a request that is past its deadline. Return False if it is already decided or not due yet."""
    if tx.store.row("expire", {"id": id, "now": tx.now}) is None:
        return False
    tx.log("expired", "clock", tx.find(id))
    return True


def expire_due(tx: Transaction, most: int = 500) -> int:
    """Expire every request past its deadline, up to `most`. Return how many were expired."""
    due = tx.store.rows("due_requests", {"now": tx.now, "limit": most})
    return sum(expire(tx, id) for (id,) in due)


class Deed(NamedTuple):
    """What an agent is about to do, and its execution token."""

    token: str
    digest: str  # of the exact action and details, freshly computed


def execute(tx: Transaction, who: Identity, id: str, deed: Deed, token: str) -> Request | Exception:
    """Use an approval up, right before the agent acts. `token` is the execution token of this request."""
    request = tx.find(id)
    if request is None or request.subject_key != who.key:
        return _not_there(id)
    refused = _check_deed(tx, who, request, deed, token)
    if refused is None and tx.store.row("take_up", {"id": id, "now": tx.now}) is None:
        refused = Conflict("already executed", code="already_executed", decision=request.decision)
    if refused is not None:
        tx.log("execution_refused", who, request, why=refused.code, digest=deed.digest)
        return refused
    tx.log("executed", who, request, digest=deed.digest)
    return msgspec.structs.replace(request, executed=tx.now)


def _check_deed(tx: Transaction, who: Identity, request: Request, deed: Deed, token: str) -> ConfirmationError | None:
    if (late := _check_open(tx, request)) is None:
        return Conflict("not decided yet", code="not_approved")
    if request.status not in ALLOWED:
        return late if isinstance(late, Expired) else Conflict(str(late), code="not_approved", decision=late.decision)
    if who.credential != request.credential or not is_same(deed.token, token):
        return NotAllowed("this is not the execution token of this request", code="bad_token")
    if request.executed is not None:
        return Conflict("already executed", code="already_executed", decision=request.decision)
    if request.execute_by is None or request.execute_by <= tx.now:
        return Expired("the approval was not used in time", decision=request.decision)
    if not is_same(deed.digest, request.digest):
        return Conflict("these are not the action and details that were approved", code="changed")
    if why := find_unproven(tx.store, request, tx.policy.rule_on(request.action), tx.now):
        report_unproven(tx, request, why)
        return NotAllowed(f"the approval of {request.action} is not believed: it {why}", code="not_believed")
    return _check_standing(tx, request)


def _check_standing(tx: Transaction, request: Request) -> NotAllowed | None:
    """Return why the approval no longer holds under the policy in force, or None if it does."""
    ruling = tx.policy.rule_on(request.action)
    if ruling.decision == "deny" or (ruling.high_risk and request.status == "auto_approved"):
        return NotAllowed(f"the policy no longer allows {request.action}", code="denied_by_policy")
    if request.status == "auto_approved":
        if not is_still_allowed(tx, request, ruling):
            return NotAllowed(f"{request.action} is no longer allowed without asking; submit it again", code="lapsed")
        return None
    standing = judge(request, keep_proven(tx.store, request, read_votes(tx.store, request.id)), ruling)
    if standing.missing:
        given = f"only {len(standing.votes)} of {standing.quorum} approvals still count"
        return NotAllowed(f"the approval of {request.action} has lapsed: {given}; submit it again", code="lapsed")
    return None


def _not_there(id: str) -> NotFound:
    return NotFound(f"no request {id[:40]}")
