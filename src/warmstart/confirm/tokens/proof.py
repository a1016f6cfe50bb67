"""That it is our daemon which answers, before it is sent a token.

While the daemon is down, whoever else listens on its port would be sent the token and could answer "approved". So who
asks first sends a challenge: something random, and which token it has, under a name that tells nothing about it. Only
the daemon keeps that token's hash, and only who has it can make the answer. The token follows on the same connection.

It does not help against somebody who stands between two that are both there and hands everything on.
"""

from __future__ import annotations

import http.client
import re
import secrets

from warmstart.confirm.errors import Unauthorized, Unreachable
from warmstart.confirm.tokens.tokens import derive, digest_secret, is_same

CHALLENGE, PROOF = "Warmstart-Challenge", "Warmstart-Proof"  # headers
_CHALLENGE = re.compile(r"([0-9a-f]{64}) ([0-9a-f]{32})")
_MOST = 1 << 16  # bytes of an answer that nobody needs


def name_token(digest: str) -> str:
    """Which token is meant, for those who have its hash; from the name nobody gets to that."""
    return derive(digest, "name")


def make_proof(digest: str, nonce: str) -> str:
    return derive(digest, "proof", nonce)


def read_challenge(header: str) -> tuple[str, str] | None:
    """The token's name and what is random; None where it is no challenge."""
    found = _CHALLENGE.fullmatch(header)
    return (found[1], found[2]) if found else None


def check_daemon(connection: http.client.HTTPConnection, token: str) -> None:
    """Raises Unauthorized where the other side does not know the token, and hangs up. Where it does, the connection is
    never opened anew behind our back: that might lead to somebody else."""
    digest, nonce = digest_secret(token), secrets.token_hex(16)
    connection.request("GET", "/health", headers={CHALLENGE: f"{name_token(digest)} {nonce}"})
    answer = connection.getresponse()
    answer.read(_MOST)
    connection.auto_open = 0
    if is_same(answer.getheader(PROOF, ""), make_proof(digest, nonce)):
        return
    connection.close()
    where = f"{connection.host}:{connection.port}"
    if answer.status >= 500:  # of a proxy: the daemon may be back in a moment
        raise Unreachable(f"{where}: answered {answer.status}")
    raise Unauthorized(
        f"{where}: what answers there does not know this token, so it was not sent; make one for that daemon: "
        "warmstart confirm token create --save --replace"
    )
