"""Decide which approvals count under the policy in force: a vote counts while its giver may still decide."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from warmstart.confirm.model import Request, Vote
from warmstart.confirm.policy.policy import Ruling
from warmstart.confirm.store.protocol import ConfirmStore


class Standing(NamedTuple):
    """The approvals of a request so far."""

    quorum: int  # different people who must approve
    votes: list[Vote]  # that count
    lapsed: list[Vote]  # that no longer count

    @property
    def missing(self) -> int:
        return max(0, self.quorum - len(self.votes))


def read_votes(store: ConfirmStore, id: str) -> list[Vote]:
    """Return every approval of a request, oldest first."""
    rows = store.rows("votes", {"request": id})
    return [Vote(by, key, reason, at, bool(revoked)) for by, key, reason, at, revoked in rows]


def judge(request: Request, votes: Iterable[Vote], ruling: Ruling) -> Standing:
    """Separate votes that count from lapsed ones. A later policy can only raise the quorum of the submission."""
    standing = Standing(max(request.quorum, ruling.quorum), [], [])
    for vote in votes:
        (standing.votes if _counts(vote, ruling) else standing.lapsed).append(vote)
    return standing


def _counts(vote: Vote, ruling: Ruling) -> bool:
    """Return whether the voter may decide now and the token or login used was not revoked.

    After a revocation it is doubtful who really voted. After a logout or a normal expiry it is not: the vote was valid
    when it was given.
    """
    return not vote.revoked and ruling.lets_decide(vote.by)
