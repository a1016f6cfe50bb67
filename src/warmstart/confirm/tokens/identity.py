"""The daemon's identity: an Ed25519 key in its own database. Its public part is pinned by whoever believes the daemon.

The pin travels with the token: `wsc_SECRET.KEY`. The daemon ignores the part after the dot; a client never believes an
answer that this key did not sign. So a token file, a variable or a guard's command line carries both.
"""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from warmstart.confirm.tokens.ed25519 import derive_public
from warmstart.errors import ConfigError, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

KEY_LENGTH = 43  # characters of a public key


class PinnedToken(NamedTuple):
    """A token as its owner keeps it."""

    secret: str
    key: str  # the daemon's public key; empty in tokens made before daemons had one


def split_token(text: str) -> PinnedToken:
    secret, _, key = text.partition(".")
    return PinnedToken(secret, key)


def pin_token(secret: str, key: str) -> str:
    """Return the token with this pin in place of any other."""
    return f"{split_token(secret).secret}.{key}" if key else secret


def write_key(public: bytes) -> str:
    return urlsafe_b64encode(public).decode().rstrip("=")


def read_key(text: str) -> bytes:
    """Return the public key of a pin. Raise ConfigError if it is none."""
    try:
        key = b64decode(f"{text}=", altchars=b"-_", validate=True)
    except ValueError:
        key = b""
    if len(key) != 32 or write_key(key) != text:
        raise ConfigError(f"{text[:60]}: not a daemon's key; `warmstart confirm identity` prints it")
    return key


@lru_cache(8)
def derive_key(seed: str) -> str:
    """Return the public key, as text, of a private one in hex."""
    return write_key(derive_public(bytes.fromhex(seed)))


def make_signer(seed: str) -> Callable[[bytes], bytes]:
    """Return the function that signs with a private key in hex."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError as error:
        raise Refused("the daemon needs cryptography; install it with: pip install 'warmstart[confirm]'") from error
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(seed)).sign
