"""Tokens: 256 random bits, shown once, kept as a hash. Whoever has one is its subject.

A plain hash is enough: there is nothing to guess in 256 random bits, so nothing that a slow hash would protect.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable

from warmstart.confirm.model import SCOPES, Identity, TokenRecord
from warmstart.errors import BadName, ConfigError
from warmstart.names import check_name, name_key

_OURS = frozenset(("policy", "whitelist", "clock", "daemon", "nobody"))
PREFIX = "wsc_"  # says what it is when it turns up where it should not


def make_secret(prefix: str = PREFIX) -> str:
    return prefix + secrets.token_urlsafe(32)


def make_id() -> str:
    """128 random bits."""
    return secrets.token_hex(16)


def digest_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def derive(key: str, *parts: str) -> str:
    """A secret that only the holder of `key` can make, always the same for the same parts: one that is given out may
    be asked for again after a lost answer or a restart, and need not be stored."""
    return hmac.new(bytes.fromhex(key), "\0".join(parts).encode(), hashlib.sha256).hexdigest()


def is_same(given: str, wanted: str) -> bool:
    """Compared in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())


def check_scopes(scopes: Iterable[str]) -> list[str]:
    wanted = sorted(set(scopes))
    unknown = [scope for scope in wanted if scope not in SCOPES]
    if unknown or not wanted:
        raise ConfigError(f"scopes are {', '.join(SCOPES)}{f'; not {unknown[0]}' if unknown else ''}")
    if "agent:submit" in wanted and "approver:decide" in wanted:
        raise ConfigError("a token that both submits and decides is an agent that approves itself; make two")
    return wanted


def check_subject(subject: str) -> str:
    """A person's or an agent's name. Those that we use ourselves would lie in the audit."""
    name = check_name(subject)
    if name_key(name) in _OURS:
        raise BadName(f"{name} is a name that the daemon itself goes by; take another")
    return name


def make_record(
    secret: str, subject: str, scopes: Iterable[str], *, now: int, by: str, expires: int | None = None
) -> TokenRecord:
    """What is kept of a new token."""
    name = check_subject(subject)
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
    """Who that is; None for whom we do not know, or no longer."""
    if record is None or not is_same(digest_secret(secret), record.digest):
        return None
    if record.revoked is not None or (record.expires is not None and record.expires <= now):
        return None
    return Identity(record.subject, record.subject_key, frozenset(record.scopes.split()), record.id)
