"""Tokens: 256 random bits, shown once and stored as a hash. The holder of a token acts as its subject.

A fast hash is enough: 256 random bits cannot be guessed, so a slow hash would protect nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable

from warmstart.confirm.lookalikes import find_mixed_word, is_lookalike, look_key
from warmstart.confirm.model import SCOPES, Identity, TokenRecord
from warmstart.errors import BadName, ConfigError
from warmstart.names import check_name, name_key

_RESERVED = frozenset(("policy", "whitelist", "clock", "daemon", "nobody"))  # the daemon's own actors in the audit
PREFIX = "wsc_"  # makes a leaked token recognisable


def make_secret(prefix: str = PREFIX) -> str:
    return prefix + secrets.token_urlsafe(32)


def make_id() -> str:
    """Return 128 random bits in hex."""
    return secrets.token_hex(16)


def digest_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def derive(key: str, *parts: str) -> str:
    """Derive a secret from a key. The same parts give the same secret, so it need not be stored and can be sent again
    after a lost answer or a restart."""
    return hmac.new(bytes.fromhex(key), "\0".join(parts).encode(), hashlib.sha256).hexdigest()


def is_same(given: str, wanted: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())


def check_scopes(scopes: Iterable[str]) -> list[str]:
    wanted = sorted(set(scopes))
    unknown = [scope for scope in wanted if scope not in SCOPES]
    if unknown or not wanted:
        given = f"unknown scope {unknown[0]}" if unknown else "no scope given"
        raise ConfigError(f"{given}; choose from {', '.join(SCOPES)}")
    if "agent:submit" in wanted and "approver:decide" in wanted:
        raise ConfigError(
            "a token that submits and decides would let an agent approve its own requests; make two tokens"
        )
    return wanted


def check_subject(subject: str, known: Iterable[str] = ()) -> str:
    """Check the name of a person or an agent. The daemon's own names are refused, and names that look like one of the
    `known` ones but are not the same: they would mislead in the audit."""
    name = check_name(subject)
    if any(is_lookalike(name, reserved) for reserved in _RESERVED):
        raise BadName(f"{name} is a name that the daemon uses for itself; choose another")
    if word := find_mixed_word(name):
        raise BadName(f"“{word}” mixes letters of several alphabets, so it reads as another name; choose another")
    key, looks = name_key(name), look_key(name)
    if twin := next((one for one in known if name_key(one) != key and look_key(one) == looks), ""):
        raise BadName(f"{name} looks like {twin}, whom this database knows, but is not the same name; choose another")
    return name


def make_record(
    secret: str, name: str, scopes: Iterable[str], *, now: int, by: str, expires: int | None = None
) -> TokenRecord:
    """Make the record that is stored for a new token. `name` is a checked subject."""
    return TokenRecord(
        id=secrets.token_hex(6),
        digest=digest_secret(secret),
        subject=name,
        subject_key=name_key(name),
        scopes=" ".join(check_scopes(scopes)),
        created=now,
        created_by=by,
        expires=expires,
        revoked=None,
    )


def recognise(secret: str, record: TokenRecord | None, now: int) -> Identity | None:
    """Return the identity of a token's holder, or None if the token is unknown, revoked or expired."""
    if record is None or not is_same(digest_secret(secret), record.digest):
        return None
    if record.revoked is not None or (record.expires is not None and record.expires <= now):
        return None
    return Identity(record.subject, record.subject_key, frozenset(record.scopes.split()), record.id)
