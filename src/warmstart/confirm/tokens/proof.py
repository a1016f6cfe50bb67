"""Check that our daemon answers before a token is sent to it.

While the daemon is down, another program on its port would get the token and could answer "approved". So the client
first sends a challenge: a nonce, and a name of its token that reveals nothing about it. Only the daemon stores the hash
of that token, and only with that hash can the proof be made. The token follows on the same connection.

This does not protect against an attacker between a client and a running daemon who relays everything.
"""

from __future__ import annotations

import http.client
import re
import secrets

from warmstart.confirm.errors import Unauthorized, Unreachable
from warmstart.confirm.tokens.tokens import derive, digest_secret, is_same

CHALLENGE, PROOF = "Warmstart-Challenge", "Warmstart-Proof"  # headers
_CHALLENGE = re.compile(r"([0-9a-f]{64}) ([0-9a-f]{32})")
_MOST = 1 << 16  # bytes of the answer's body, which is dropped


def name_token(digest: str) -> str:
    """Return the name of a token. It identifies the token to a holder of its hash and reveals nothing to others."""
    return derive(digest, "name")


def make_proof(digest: str, nonce: str) -> str:
    return derive(digest, "proof", nonce)


def read_challenge(header: str) -> tuple[str, str] | None:
    """Return the token's name and the nonce, or None if this is not a challenge."""
    match = _CHALLENGE.fullmatch(header)
    return (match[1], match[2]) if match else None


def check_daemon(connection: http.client.HTTPConnection, token: str) -> None:
    """Challenge the other side. If it does not know the token, close the connection and raise Unauthorized. Otherwise
    keep the connection, which must not be reopened: it could then lead to another program."""
    digest, nonce = digest_secret(token), secrets.token_hex(16)
    connection.request("GET", "/health", headers={CHALLENGE: f"{name_token(digest)} {nonce}"})
    answer = connection.getresponse()
    answer.read(_MOST)
    connection.auto_open = 0
    if is_same(answer.getheader(PROOF, ""), make_proof(digest, nonce)):
        return
    connection.close()
    where = f"{connection.host}:{connection.port}"
    if answer.status >= 500:  # from a proxy: the daemon may be back in a moment
        raise Unreachable(f"{where}: answered {answer.status}")
    raise Unauthorized(
        f"{where}: the program there does not know this token, so it was not sent; make a token for that daemon: "
        "warmstart confirm token create --save --replace"
    )
