"""The daemon's proofs (see confirm/tokens/proof.py): a signature on every answer that is asked for one, and the answer to
the question whether it knows a token."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any

from litestar.types import ASGIApp, BeforeMessageSendHookHandler, Message, Receive, Scope, Send

from warmstart.confirm.desk.desk import Desk
from warmstart.confirm.tokens.access import list_tokens
from warmstart.confirm.tokens.proof import (
    CHALLENGE,
    KEY,
    NONCE,
    PROOF,
    SIGNATURE,
    SignedAnswer,
    make_proof,
    name_token,
    read_authority,
    read_challenge,
)
from warmstart.confirm.tokens.tokens import is_same
from warmstart.errors import StoreError

_CHALLENGE, _PROOF = CHALLENGE.lower().encode(), PROOF.lower().encode()
_NONCE, _SIGNATURE = NONCE.lower().encode(), SIGNATURE.lower().encode()
_KEY = KEY.lower().encode()


class SignedAnswers:
    """Wraps an application: signs the answers to requests with a nonce. `leads_here` says whether an authority
    (127.0.0.1:6000) is one of ours; for others nothing is signed, because another program may stand in between."""

    def __init__(self, app: ASGIApp, desk: Desk, leads_here: Callable[[str], bool]) -> None:
        self._app = app
        self._sign = desk.sign
        self._key = desk.identity.encode()
        self._leads_here = leads_here

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = [value.decode("latin-1") for name, value in scope.get("headers", ()) if name.lower() == _NONCE]
        question = given[0] if len(given) == 1 else ""
        authority = read_authority(question)
        if authority and self._leads_here(authority):
            send = self._make_signer(scope, question, send)
        await self._app(scope, receive, send)

    def _make_signer(self, scope: Any, question: str, send: Send) -> Send:
        """Hold the start of the answer back until its body is known. A stream, which has no end, stays unsigned."""
        held: list[Any] = []
        query = scope["query_string"]
        path = scope["raw_path"].decode("latin-1") + (f"?{query.decode('latin-1')}" if query else "")

        async def send_signed(message: Message) -> None:
            if message["type"] == "http.response.start":
                held.append(message)
                return
            if held:
                start = held.pop()
                if message["type"] == "http.response.body" and not message.get("more_body", False):
                    answer = SignedAnswer(question, scope["method"], path, start["status"], message.get("body", b""))
                    signature = urlsafe_b64encode(self._sign(answer.write()))
                    start["headers"] = [*start["headers"], (_SIGNATURE, signature), (_KEY, self._key)]
                await send(start)
            await send(message)

        return send_signed


def make_prover(desk: Desk) -> BeforeMessageSendHookHandler:
    """Make the hook for an application's `before_send` that shows which token the daemon knows."""

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
