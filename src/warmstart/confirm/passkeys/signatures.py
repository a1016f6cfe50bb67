"""Check what devices send: the answer to an enrolment, and signatures. Uses py_webauthn, of the extra `confirm`.

Every signature must come from a device that verified its user (a finger, a face, a PIN), and from a page under the host
name that the passkey was made for.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from warmstart.confirm.errors import BadRequest
from warmstart.confirm.model import Assertion
from warmstart.errors import Refused

_IP = re.compile(r"[0-9.]+|.*:.*")
MISSING = "passkeys need py_webauthn; install it with: pip install 'warmstart[confirm]'"


class NewPasskey(NamedTuple):
    """A checked enrolment."""

    id: str
    public_key: str
    rp: str


class EnrolmentAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """A device's answer to an enrolment, as browsers return it; all base64url."""

    id: str
    client_data: str
    attestation: str


class _ClientData(Struct):
    origin: str


def can_have_passkeys(host: str) -> bool:
    """Return whether browsers make passkeys for pages under this host name: not for a bare IP address."""
    return bool(host) and not _IP.fullmatch(host)


def check_enrolment(answer: EnrolmentAnswer, challenge: bytes, rp: str) -> NewPasskey:
    """Return the new passkey. Raise BadRequest if the answer is not that of a device to this challenge."""
    webauthn = _load()
    credential = {
        "id": answer.id,
        "rawId": answer.id,
        "type": "public-key",
        "response": {"clientDataJSON": answer.client_data, "attestationObject": answer.attestation},
    }
    try:
        verified = webauthn.verify_registration_response(
            credential=credential,
            expected_challenge=challenge,
            expected_rp_id=rp,
            expected_origin=[_read_origin(answer.client_data, rp)],
            require_user_verification=True,
        )
    except (webauthn.WebAuthnException, ValueError, KeyError) as error:
        raise BadRequest(f"the device's answer is not valid: {error}", code="bad_passkey") from None
    if _encode(verified.credential_id) != answer.id:
        raise BadRequest("the device's answer is not valid: it is about another passkey", code="bad_passkey")
    return NewPasskey(answer.id, _encode(verified.credential_public_key), rp)


def check_assertion(assertion: Assertion, public_key: str, rp: str, challenge: bytes) -> str:
    """Return why the signature does not prove the statement, or an empty text if it does."""
    webauthn = _load()
    credential = {
        "id": assertion.id,
        "rawId": assertion.id,
        "type": "public-key",
        "response": {
            "clientDataJSON": assertion.client_data,
            "authenticatorData": assertion.authenticator_data,
            "signature": assertion.signature,
        },
    }
    try:
        webauthn.verify_authentication_response(
            credential=credential,
            expected_challenge=challenge,
            expected_rp_id=rp,
            expected_origin=[_read_origin(assertion.client_data, rp)],
            credential_public_key=_decode(public_key),
            credential_current_sign_count=0,  # a request is approved once, so a repeated signature is of no use
            require_user_verification=True,
        )
    except (webauthn.WebAuthnException, ValueError, KeyError) as error:
        return str(error) or type(error).__name__
    return ""


def _read_origin(client_data: str, rp: str) -> str:
    """Return the origin of the page that asked the device. Raise ValueError if it is not under the passkey's host."""
    try:
        origin = msgspec.json.decode(_decode(client_data), type=_ClientData).origin
    except msgspec.DecodeError:
        raise ValueError("the client data cannot be read") from None
    parts = urlsplit(origin)
    if parts.hostname != rp or (parts.scheme != "https" and rp != "localhost"):
        raise ValueError(f"made for a page at {origin[:80]}, not at {rp}")
    return origin


class _WebAuthn(NamedTuple):
    """The parts of py_webauthn used here. Loaded at first use: it takes a while and many daemons have no passkey."""

    verify_registration_response: Any
    verify_authentication_response: Any
    WebAuthnException: type[Exception]


def _load() -> _WebAuthn:
    try:
        from webauthn import verify_authentication_response, verify_registration_response
        from webauthn.helpers.exceptions import WebAuthnException
    except ImportError as error:
        raise Refused(MISSING) from error
    return _WebAuthn(verify_registration_response, verify_authentication_response, WebAuthnException)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (binascii.Error, UnicodeEncodeError):
        raise ValueError("not base64url") from None
