"""Which approvals stand under the policy in force now: an answer is worth what its giver is still trusted with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from warmstart.confirm.model import Request, Vote
from warmstart.confirm.policy.policy import Ruling
from warmstart.confirm.store.protocol import ConfirmStore


class Standing(NamedTuple):
    """How far a request is."""

    quorum: int  # different people who must approve
    votes: list[Vote]  # that count
    lapsed: list[Vote]  # that no longer do

    @property
    def missing(self) -> int:
        return max(0, self.quorum - len(self.votes))


def read_votes(store: ConfirmStore, id: str) -> list[Vote]:
    """Every approval of a request, the oldest first."""
    found = store.rows("votes", {"request": id})
    return [Vote(by, key, reason, at, bool(revoked)) for by, key, reason, at, revoked in found]


def judge(request: Request, votes: Iterable[Vote], ruling: Ruling) -> Standing:
    """A policy of later can only ask for more: the quorum that the request came in with holds as well."""
    standing = Standing(max(request.quorum, ruling.quorum), [], [])
    for vote in votes:
        (standing.votes if _counts(vote, ruling) else standing.lapsed).append(vote)
    return standing


def _counts(vote: Vote, ruling: Ruling) -> bool:
    """Its giver may decide now, and what it was given with was not taken from them.

    Who was shut out may not have been who they seemed. Who logged out, or whose token or login has run out since, could
    decide when they did, and nobody has said otherwise.
    """
    return not vote.revoked and ruling.lets_decide(vote.by)
