"""Create, find and revoke tokens, logins and whitelist entries in the store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.errors import ConfirmationError, Conflict, NotAllowed, Unauthorized
from warmstart.confirm.model import LONGEST, LONGEST_APPROVAL, Allowance, Assertion, Identity, Request, TokenRecord
from warmstart.confirm.passkeys.proofs import keep_signed
from warmstart.confirm.store.protocol import ConfirmStore
from warmstart.confirm.tokens.identity import pin_token, split_token
from warmstart.confirm.tokens.keys import read_identity
from warmstart.confirm.tokens.tokens import (
    check_scopes,
    check_subject,
    digest_secret,
    make_id,
    make_record,
    make_secret,
    recognise,
)
from warmstart.errors import NotFound
from warmstart.names import name_key

LINK_LASTS = 15 * 60  # seconds
SESSION_LASTS = 30 * 86_400
_APPROVAL_LASTS = (LONGEST + LONGEST_APPROVAL) * 1000  # milliseconds after a login's end that its approvals may count
PAGE_SCOPES = ("approver:decide", "audit:read")


class NewToken(NamedTuple):
    """A new token; its secret, with the daemon's key pinned in it, is available only here."""

    secret: str
    record: TokenRecord


def create_token(
    tx: Transaction, subject: str, scopes: Iterable[str], *, by: str, seconds: int | None = None
) -> NewToken:
    secret = make_secret()
    expires = None if seconds is None else tx.now + seconds * 1000
    record = make_record(
        secret, check_subject(subject, list_subjects(tx.store)), scopes, now=tx.now, by=by, expires=expires
    )
    tx.store.rows("put_token", msgspec.structs.asdict(record))
    tx.log(
        "token_created",
        by,
        subject=record.subject,
        scopes=record.scopes,
        token=record.id,
        digest=record.digest,
        expires=expires,
    )
    return NewToken(pin_token(secret, read_identity(tx)), record)


def revoke_token(tx: Transaction, id: str, *, by: str) -> str:
    """Revoke a token and return its subject."""
    row = tx.store.row("revoke_token", {"id": id, "now": tx.now})
    if row is None:
        raise NotFound(f"no valid token {id}; see: warmstart confirm token list")
    tx.log("token_revoked", by, subject=row[0], token=id)
    return str(row[0])


def list_subjects(store: ConfirmStore) -> list[str]:
    """Return everybody who ever had a token, a login or a passkey."""
    return [str(subject) for (subject,) in store.rows("subjects")]


def list_tokens(store: ConfirmStore) -> list[TokenRecord]:
    return [TokenRecord(*row) for row in store.rows("tokens")]


def find_identity(store: ConfirmStore, secret: str, now: int) -> Identity | None:
    """Return whose token that is, or None for an unknown, revoked or expired one."""
    secret = split_token(secret).secret
    row = store.row("token_by_digest", {"digest": digest_secret(secret)})
    return recognise(secret, TokenRecord(*row) if row else None, now)


# People on the page


class BrowserSession(NamedTuple):
    """A login on the page; the cookie holds its secret."""

    secret: str
    identity: Identity
    expires: int


def create_login(tx: Transaction, subject: str, scopes: Iterable[str] = PAGE_SCOPES, *, by: str) -> str:
    """Create a one-time login link and return its code."""
    code = make_secret("")
    link: dict[str, Any] = {
        "digest": digest_secret(code),
        "subject": check_subject(subject, list_subjects(tx.store)),
        "scopes": " ".join(check_scopes(scopes)),
        "expires": tx.now + LINK_LASTS * 1000,
    }
    tx.store.rows("put_login", link | {"created": tx.now})
    tx.log("login_link_created", by, **link)
    return code


def log_in(tx: Transaction, code: str) -> BrowserSession | ConfirmationError:
    link = digest_secret(code)
    row = tx.store.row("use_login", {"digest": link, "now": tx.now})
    if row is None:
        return Unauthorized(
            "this login link was already used or has expired; make a new one: warmstart confirm login", code="bad_login"
        )
    subject, scopes = row
    secret = make_secret("")
    identity = Identity(subject, name_key(subject), frozenset(scopes.split()), make_id(), by_session=True)
    expires = tx.now + SESSION_LASTS * 1000
    session: dict[str, Any] = {"digest": digest_secret(secret), "scopes": scopes, "expires": expires}
    person = {"id": identity.credential, "subject": subject, "subject_key": identity.key, "created": tx.now}
    tx.store.rows("put_session", session | person)
    tx.log("login", identity, link=link, **session)
    return BrowserSession(secret, identity, expires)


def find_session(store: ConfirmStore, secret: str, now: int) -> BrowserSession | None:
    row = store.row("session", {"digest": digest_secret(secret)})
    if row is None:
        return None
    id, _, subject, key, scopes, _, expires, ended = row
    if ended is not None or expires <= now:
        return None
    return BrowserSession(secret, Identity(subject, key, frozenset(scopes.split()), id, by_session=True), expires)


def log_out(tx: Transaction, who: Identity) -> None:
    if tx.store.row("end_session", {"id": who.credential, "now": tx.now}) is not None:
        tx.log("logout", who)


def end_sessions(tx: Transaction, subject: str, *, by: str) -> int:
    """Revoke every login of a person on the page; approvals given with them no longer count. Return how many were open."""
    since = tx.now - _APPROVAL_LASTS
    ended = tx.store.rows("end_sessions_of", {"subject_key": name_key(subject), "now": tx.now, "since": since})
    count = sum(bool(live) for _, live in ended)
    tx.log("sessions_ended", by, subject=subject, count=count, logins=[id for id, _ in ended])
    return count


# The whitelist


class NewAllowance(NamedTuple):
    """A whitelist entry to be made: one action in one session, for a while."""

    action: str
    key: str
    session_key: str
    seconds: int
    requester: str = ""
    digest: str = ""
    times: int | None = None  # how often; None: as often as wanted


def add_allowance(
    tx: Transaction,
    new: NewAllowance,
    by: Identity | str,
    *,
    given: Request | None = None,
    proof: Assertion | None = None,
) -> Allowance | ConfirmationError:
    """Allow an action in advance. `given`: the request with whose approval it was given; `proof`: its signature."""
    if proof is None and tx.store.row("any_passkey") is not None:
        return NotAllowed(
            "what is allowed in advance is signed with a passkey here: choose it on the page when you approve a request",
            code="passkey_needed",
        )
    if tx.policy.is_high_risk(new.action):
        return Conflict(
            f"{new.action} is high-risk and cannot be whitelisted: a person decides each time", code="high_risk"
        )
    entry = Allowance(
        id=make_id(),
        action=new.action,
        action_key=new.key,
        session_key=new.session_key,
        requester_key=name_key(new.requester),
        digest=new.digest,
        created=tx.now,
        created_by=by if isinstance(by, str) else by.subject,
        expires=tx.now + new.seconds * 1000,
        removed=None,
        times=new.times,
    )
    limits: dict[str, Any] = {} if new.times is None else {"times": new.times, "seconds": new.seconds}
    if proof is not None:
        limits["proof"] = msgspec.structs.asdict(proof)
    tx.store.rows("put_allowance", msgspec.structs.asdict(entry))
    tx.log(
        "whitelisted",
        by,
        given,
        action=new.action,
        entry=entry.id,
        session=new.session_key,
        requester=new.requester,
        digest=new.digest,
        expires=entry.expires,
        **limits,
    )
    return entry


def remove_allowance(tx: Transaction, id: str, by: Identity | str) -> str | NotFound:
    """Remove a whitelist entry and return its action."""
    row = tx.store.row("remove_allowance", {"id": id, "now": tx.now})
    if row is None:
        return NotFound(f"no whitelist entry {id[:40]}")
    tx.log("whitelist_removed", by, action=row[0], entry=id)
    return str(row[0])


def list_allowances(store: ConfirmStore, now: int) -> list[Allowance]:
    """Return the whitelist entries in force. Unsigned ones end with the first passkey."""
    return keep_signed(store, [Allowance(*row) for row in store.rows("allowances", {"now": now})])
