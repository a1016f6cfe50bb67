"""Sign answers as a daemon with a given key does, for fakes that are the daemon gone mad."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any

from warmstart.confirm.tokens.identity import derive_key, make_signer, pin_token, split_token
from warmstart.confirm.tokens.proof import CHALLENGE, NONCE, PROOF, SIGNATURE, SignedAnswer, make_proof, read_challenge
from warmstart.confirm.tokens.tokens import digest_secret

SEED = "17" * 32
KEY = derive_key(SEED)
TOKEN = pin_token("t", KEY)


def prove(handler: Any, status: int, body: bytes, token: str = TOKEN, seed: str = SEED) -> dict[str, str]:
    """Return the headers that prove an answer of a `BaseHTTPRequestHandler`."""
    headers = {}
    if question := handler.headers.get(NONCE):
        answer = SignedAnswer(question, handler.command, handler.path, status, body)
        headers[SIGNATURE] = urlsafe_b64encode(make_signer(seed)(answer.write())).decode()
    if asked := read_challenge(handler.headers.get(CHALLENGE, "")):
        headers[PROOF] = make_proof(digest_secret(split_token(token).secret), asked[1])
    return headers
