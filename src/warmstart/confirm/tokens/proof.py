"""Check that our daemon answers: before a token is sent to it, and again for every answer that is believed.

While the daemon is down, another program on its port could take the token and answer "approved". It may even have the
agent's token. So every request carries a fresh nonce, and the daemon signs its answer with its own private key:

    Warmstart-Nonce: NONCE AUTHORITY              the client's view of where it connected to: 127.0.0.1:6000
    Warmstart-Signature: SIGNATURE                over nonce, authority, method, path, status and body
    Warmstart-Key: KEY                            its public key, for `warmstart confirm trust`; nobody else reads it

The daemon signs only for addresses that lead to it, so a program on another port cannot pass the question on and get
the token. The first question, without any token, is `GET /health`. The token follows on the same connection.

A second header, `Warmstart-Challenge`, asks whether the daemon knows a token, without sending it.
"""

from __future__ import annotations

import hashlib
import http.client
import re
import secrets
from base64 import urlsafe_b64decode
from typing import NamedTuple

from warmstart.confirm.errors import Unauthorized, Unreachable, UntrustedDaemon
from warmstart.confirm.tokens.ed25519 import verify
from warmstart.confirm.tokens.identity import read_key, split_token
from warmstart.confirm.tokens.tokens import derive, digest_secret, is_same

CHALLENGE, PROOF = "Warmstart-Challenge", "Warmstart-Proof"  # headers
NONCE, SIGNATURE, KEY = "Warmstart-Nonce", "Warmstart-Signature", "Warmstart-Key"
_CHALLENGE = re.compile(r"([0-9a-f]{64}) ([0-9a-f]{32})")
_QUESTION = re.compile(r"[0-9a-f]{32} [!-~]{1,300}")
_MOST = 1 << 16  # bytes of the first answer's body, which is dropped
_CONTEXT = "warmstart-confirm-answer-1"


def name_token(digest: str) -> str:
    """Return the name of a token. It identifies the token to a holder of its hash and reveals nothing to others."""
    return derive(digest, "name")


def make_proof(digest: str, nonce: str) -> str:
    return derive(digest, "proof", nonce)


def read_challenge(header: str) -> tuple[str, str] | None:
    """Return the token's name and the nonce, or None if this is not a challenge."""
    match = _CHALLENGE.fullmatch(header)
    return (match[1], match[2]) if match else None


class SignedAnswer(NamedTuple):
    """An answer, as the daemon signs it."""

    question: str  # the header: nonce and authority
    method: str
    path: str
    status: int
    body: bytes

    def write(self) -> bytes:
        """Return the bytes that are signed."""
        body = hashlib.sha256(self.body).hexdigest()
        return "\0".join((_CONTEXT, self.question, self.method, self.path, str(self.status), body)).encode()


def read_authority(question: str) -> str:
    """Return where a client thinks that it is connected, empty if the header is malformed."""
    return question.partition(" ")[2] if _QUESTION.fullmatch(question) else ""


class DaemonCheck:
    """Checks the answers of one server against a pinned key."""

    def __init__(self, authority: str, key: str) -> None:
        self._authority = authority
        self._key = key
        self._public = read_key(key)

    def ask(self) -> str:
        """Return a fresh question, the value of the header `Warmstart-Nonce`."""
        return f"{secrets.token_hex(16)} {self._authority}"

    def verify(self, answer: SignedAnswer, signature: str) -> None:
        """Raise UntrustedDaemon unless our daemon gave this answer to this question."""
        try:
            given = urlsafe_b64decode(signature.encode())
        except ValueError:
            given = b""
        if verify(self._public, answer.write(), given):
            return
        if answer.status >= 500:  # perhaps from a proxy: the daemon may be back in a moment
            raise Unreachable(f"{self._authority}: answered {answer.status}")
        error = UntrustedDaemon(
            f"{self._authority}: the program there did not prove that it is the confirmation daemon with the key "
            f"{self._key}, so nothing that it says is believed. Find out which program listens there. If the daemon "
            "got a new key on purpose: warmstart confirm trust. If the address is forwarded from another port: start "
            f"the daemon with --allow-host {self._authority}"
        )
        error.public_key = self._key
        raise error


def check_daemon(connection: http.client.HTTPConnection, check: DaemonCheck, token: str = "") -> None:
    """Question the other side. Close the connection and raise UntrustedDaemon if it is not our daemon, Unauthorized if it
    does not know the token. Otherwise keep the connection, which must not be reopened: it could then lead to another
    program."""
    digest, nonce, question = digest_secret(split_token(token).secret), secrets.token_hex(16), check.ask()
    headers = {NONCE: question} | ({CHALLENGE: f"{name_token(digest)} {nonce}"} if token else {})
    connection.request("GET", "/health", headers=headers)
    response = connection.getresponse()
    body = response.read(_MOST)
    connection.auto_open = 0
    try:
        answer = SignedAnswer(question, "GET", "/health", response.status, body)
        check.verify(answer, response.getheader(SIGNATURE, ""))
        if token and not is_same(response.getheader(PROOF, ""), make_proof(digest, nonce)):
            raise Unauthorized(
                f"{connection.host}:{connection.port}: the daemon does not know this token, so it was not sent; make a "
                "token for that daemon: warmstart confirm token create --save --replace"
            )
    except BaseException:
        connection.close()
        raise
