"""The statements that a passkey signs. The device signs the sha256 of the text, as WebAuthn's challenge; `verify` writes
the text again from the audit and compares.

A statement names the request and the digest of its exact action and details, so a signature serves no other request.
The page computes the same hash (`passkeys.js`).
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

_HEAD = "warmstart-confirm"


class Terms(NamedTuple):
    """How long the approver lets the same action go on without being asked."""

    times: int
    seconds: int


def state_approval(request: str, digest: str, terms: Terms | None = None) -> bytes:
    """Return the challenge for an approval, perhaps with the permission to repeat it."""
    if terms is None:
        return _hash("approve", request, digest)
    return _hash("approve", request, digest, f"times={terms.times}", f"seconds={terms.seconds}")


def state_vouching(passkey: str, public_key: str) -> bytes:
    """Return the challenge for vouching for another device."""
    return _hash("vouch", passkey, public_key)


def fingerprint(public_key: str) -> str:
    """Return a short name of a public key, for people to compare."""
    return hashlib.sha256(public_key.encode()).hexdigest()[:16]


def _hash(*parts: str) -> bytes:
    return hashlib.sha256("\n".join((_HEAD, *parts)).encode()).digest()
