"""A request ends: decided by people, run out by the clock; and an approval is taken up, once.

Who is first wins by one conditional UPDATE; everybody else is told what stands in the table.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.desk.submit import find_allowance
from warmstart.confirm.errors import ConfirmationError, Conflict, Expired, NotAllowed
from warmstart.confirm.model import ALLOWED, Executed, Identity, Request
from warmstart.confirm.policy.standing import judge, read_votes
from warmstart.confirm.tokens.tokens import is_same
from warmstart.errors import NotFound

Answer = Literal["approved", "denied"]


class DecisionRequest(NamedTuple):
    """What somebody wants to decide, and why."""

    answer: Answer
    reason: str = ""  # masked
    digest: str | None = None  # of what was shown to them


def decide(turn: Transaction, who: Identity, id: str, wish: DecisionRequest) -> Request | Exception:
    """Approve or deny. With a quorum, an approval is a vote until enough different people gave theirs."""
    request = turn.find(id)
    if request is None:
        return _not_there(id)
    if (refused := _check_decider(turn, who, request, wish)) is not None:
        turn.log("decision_refused", who, request, why=refused.code, wanted=wish.answer)
        return refused
    if (late := _check_open(turn, request)) is not None:
        return late
    if wish.answer == "approved" and (waiting := _vote(turn, who, request, wish)) is not None:
        return waiting
    return _resolve(turn, who, request, wish)


def _check_decider(
    turn: Transaction, who: Identity, request: Request, wish: DecisionRequest
) -> ConfirmationError | None:
    ruling = turn.policy.rule_on(request.action)
    if who.key == request.subject_key:
        return NotAllowed("who asks does not decide: this is your own request", code="own_request")
    if not ruling.lets_decide(who.subject):
        return NotAllowed(f"the policy lets others decide about {request.action}", code="not_a_decider")
    if wish.answer == "approved" and ruling.decision == "deny":
        return NotAllowed(f"the policy does not allow {request.action}", code="denied_by_policy")
    if wish.digest is not None and not is_same(wish.digest, request.digest):
        return Conflict("the request is not the one that was shown; load it again", code="changed")
    return None


def _check_open(turn: Transaction, request: Request) -> ConfirmationError | None:
    """Whether it can still be decided. A deadline that has passed counts now, not when the clock gets to it."""
    if request.status == "pending" and request.deadline <= turn.now:
        expire(turn, request.id)
        request = turn.find(request.id) or request
    if request.status == "pending":
        return None
    if request.status == "expired":
        return Expired(f"too late: {request.action} has expired", decision=request.decision)
    return Conflict(f"already {request.status} by {request.decided_by}", decision=request.decision)


def _vote(turn: Transaction, who: Identity, request: Request, wish: DecisionRequest) -> Request | Conflict | None:
    """Count an approval. None: that was the last one needed."""
    standing = judge(request, read_votes(turn.store, request.id), turn.policy.rule_on(request.action))
    others = [vote for vote in standing.votes if vote.key != who.key]
    if standing.missing and len(others) < len(standing.votes):
        return Conflict("you have approved already; others must too", code="already_voted")
    vote = {
        "request": request.id,
        "subject_key": who.key,
        "subject": who.subject,
        "credential": who.credential,
        "reason": wish.reason,
        "at": turn.now,
    }
    turn.store.rows("put_vote", vote)
    given = len(others) + 1
    if given >= standing.quorum:
        return None
    turn.log("vote", who, request, reason=wish.reason, given=given, quorum=standing.quorum, digest=request.digest)
    return request


def _resolve(turn: Transaction, who: Identity, request: Request, wish: DecisionRequest) -> Request | ConfirmationError:
    lasts = turn.policy.defaults.execute_seconds * 1000
    change = {
        "id": request.id,
        "status": wish.answer,
        "now": turn.now,
        "by": who.subject,
        "reason": wish.reason,
        "execute_by": turn.now + lasts if wish.answer == "approved" else None,
    }
    won = turn.store.row("resolve", change) is not None
    after = turn.find(request.id)
    assert after is not None
    if not won:
        return _check_open(turn, after) or Conflict(decision=after.decision)
    limits: dict[str, Any] = {} if after.execute_by is None else {"execute_by": after.execute_by}
    turn.log(wish.answer, who, after, reason=wish.reason, digest=after.digest, **limits)
    return after


def expire(turn: Transaction, id: str) -> bool:
    """End a request whose time is over. False: somebody was faster, or it is not over yet."""
    if turn.store.row("expire", {"id": id, "now": turn.now}) is None:
        return False
    turn.log("expired", "clock", turn.find(id))
    return True


def expire_due(turn: Transaction, most: int = 500) -> int:
    """End everything whose time is over."""
    due = turn.store.rows("due_requests", {"now": turn.now, "limit": most})
    return sum(expire(turn, id) for (id,) in due)


class Deed(NamedTuple):
    """What an agent is about to do, and the token that lets it."""

    token: str
    digest: str  # of the exact action and details, computed anew


def execute(turn: Transaction, who: Identity, id: str, deed: Deed, token: str) -> Executed | Exception:
    """Take an approval up. `token` is the one that was given out for this request."""
    request = turn.find(id)
    if request is None or request.subject_key != who.key:
        return _not_there(id)
    refused = _check_deed(turn, who, request, deed, token)
    if refused is None and turn.store.row("take_up", {"id": id, "now": turn.now}) is None:
        refused = Conflict("already executed", code="already_executed", decision=request.decision)
    if refused is not None:
        turn.log("execution_refused", who, request, why=refused.code, digest=deed.digest)
        return refused
    turn.log("executed", who, request, digest=deed.digest)
    return Executed(turn.find(id) or request, turn.now)


def _check_deed(turn: Transaction, who: Identity, request: Request, deed: Deed, token: str) -> ConfirmationError | None:
    if (late := _check_open(turn, request)) is None:
        return Conflict("not decided yet", code="not_approved")
    if request.status not in ALLOWED:
        return late if isinstance(late, Expired) else Conflict(str(late), code="not_approved", decision=late.decision)
    if who.credential != request.credential or not is_same(deed.token, token):
        return NotAllowed("not the execution token of this request", code="bad_token")
    if request.executed is not None:
        return Conflict("already executed", code="already_executed", decision=request.decision)
    if request.execute_by is None or request.execute_by <= turn.now:
        return Expired("the approval was not taken up in time", decision=request.decision)
    if not is_same(deed.digest, request.digest):
        return Conflict("these are not the action and details that were approved", code="changed")
    return _check_standing(turn, request)


def _check_standing(turn: Transaction, request: Request) -> NotAllowed | None:
    """Whether it would be approved today: by the policy in force, and by those who are still trusted."""
    ruling = turn.policy.rule_on(request.action)
    if ruling.decision == "deny" or (ruling.high_risk and request.status == "auto_approved"):
        return NotAllowed(f"the policy no longer allows {request.action}", code="denied_by_policy")
    if request.status == "auto_approved":
        if find_allowance(turn, request, ruling) is None:
            return NotAllowed(f"{request.action} is no longer allowed without asking; ask again", code="lapsed")
        return None
    standing = judge(request, read_votes(turn.store, request.id), ruling)
    if standing.missing:
        given = f"{len(standing.votes)} of {standing.quorum} approvals still count"
        return NotAllowed(f"the approval of {request.action} no longer stands: {given}; ask again", code="lapsed")
    return None


def _not_there(id: str) -> NotFound:
    return NotFound(f"no request {id[:40]}")
