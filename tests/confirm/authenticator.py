"""A passkey device in Python, for tests without a browser: it makes keys and signs as WebAuthn says."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from typing import Any
from urllib.parse import urlsplit

from cbor2 import dumps
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from confirm.serving import Answer, House, Person

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Device:
    """One passkey. `origin` is the page's address as the browser shows it."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.host = urlsplit(origin).hostname or ""
        self.raw_id = secrets.token_bytes(16)
        self.id = encode(self.raw_id)
        self._key = ec.generate_private_key(ec.SECP256R1())

    def make(self, challenge: bytes) -> dict[str, str]:
        """Answer an enrolment."""
        point = self._key.public_key().public_numbers()
        key = {1: 2, 3: -7, -1: 1, -2: point.x.to_bytes(32, "big"), -3: point.y.to_bytes(32, "big")}
        attested = bytes(16) + len(self.raw_id).to_bytes(2, "big") + self.raw_id + dumps(key)
        data = self._describe(PRESENT | VERIFIED | ATTESTED) + attested
        attestation = dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client = self._client_data("webauthn.create", challenge)
        return {"id": self.id, "client_data": encode(client), "attestation": encode(attestation)}

    def sign(self, *parts: str, flags: int = PRESENT | VERIFIED) -> dict[str, str]:
        """Sign a statement, given as the parts of its text."""
        challenge = hashlib.sha256("\n".join(("warmstart-confirm", *parts)).encode()).digest()
        client, data = self._client_data("webauthn.get", challenge), self._describe(flags)
        signature = self._key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        signed = {"authenticator_data": data, "client_data": client, "signature": signature}
        return {"id": self.id} | {name: encode(value) for name, value in signed.items()}

    def sign_approval(self, request: dict[str, Any], *terms: str) -> dict[str, str]:
        return self.sign("approve", request["id"], request["digest"], *terms)

    def _describe(self, flags: int) -> bytes:
        return hashlib.sha256(self.host.encode()).digest() + bytes([flags]) + bytes(4)

    def _client_data(self, kind: str, challenge: bytes) -> bytes:
        return json.dumps({"type": kind, "challenge": encode(challenge), "origin": self.origin}).encode()


def make_device(house: House) -> Device:
    return Device(house.local_page.replace("127.0.0.1", "localhost"))


def enrol(person: Person, device: Device, name: str = "phone") -> Answer:
    """Enrol a device over HTTP, as the page does."""
    offer = person.call("POST", "/passkeys/options", {}, Origin=device.origin)
    assert offer.status == 200, offer
    answer = device.make(bytes.fromhex(offer.body["challenge"]))
    return person.call("POST", "/passkeys", {"name": name, "answer": answer}, Origin=device.origin)
