"""The daemon's answer to a challenge, see confirm/proof.py: a header on whatever else it answers, on any route."""

from __future__ import annotations

from typing import Any

from litestar.types import BeforeMessageSendHookHandler, Message, Scope

from warmstart.confirm.desk.desk import Desk
from warmstart.confirm.tokens.access import list_tokens
from warmstart.confirm.tokens.proof import CHALLENGE, PROOF, make_proof, name_token, read_challenge
from warmstart.confirm.tokens.tokens import is_same
from warmstart.errors import StoreError

_CHALLENGE, _PROOF = CHALLENGE.lower().encode(), PROOF.lower().encode()


def make_prover(desk: Desk) -> BeforeMessageSendHookHandler:
    """For an application's `before_send`."""

    async def add_proof(message: Message, scope: Scope) -> None:
        if message["type"] != "http.response.start":
            return
        given = [value for name, value in scope["headers"] if name == _CHALLENGE]
        proof = _find_proof(desk, given[0].decode("latin-1")) if len(given) == 1 else ""
        if proof:
            others: list[Any] = [pair for pair in message["headers"] if pair[0] != _PROOF]
            message["headers"] = [*others, (_PROOF, proof.encode())]

    return add_proof


def _find_proof(desk: Desk, challenge: str) -> str:
    """Empty where we have no such token, or not any more."""
    asked = read_challenge(challenge)
    if asked is None:
        return ""
    name, nonce = asked
    try:
        known = [one for one in list_tokens(desk.store) if one.revoked is None]
    except StoreError:
        return ""
    good = (one for one in known if one.expires is None or one.expires > desk.now())
    return next((make_proof(one.digest, nonce) for one in good if is_same(name, name_token(one.digest))), "")
