"""The daemon's answer to a challenge (see confirm/tokens/proof.py): a header on its answer, on any route."""

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
    """Make the hook for an application's `before_send`."""

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
    """Return the proof, or an empty text if the token is unknown, revoked or expired."""
    parsed = read_challenge(challenge)
    if parsed is None:
        return ""
    name, nonce = parsed
    try:
        known = [token for token in list_tokens(desk.store) if token.revoked is None]
    except StoreError:
        return ""
    valid = (token for token in known if token.expires is None or token.expires > desk.now())
    return next((make_proof(token.digest, nonce) for token in valid if is_same(name, name_token(token.digest))), "")
