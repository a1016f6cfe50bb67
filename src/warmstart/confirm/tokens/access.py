"""Tokens, logins and the whitelist in the store: who may come in, and what was allowed in advance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.errors import ConfirmationError, Conflict, Unauthorized
from warmstart.confirm.model import LONGEST, LONGEST_APPROVAL, Allowance, Identity, TokenRecord
from warmstart.confirm.store.protocol import ConfirmStore
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
SESSION_LASTS = 12 * 3600
_STILL_OF_USE = (
    LONGEST + LONGEST_APPROVAL
) * 1000  # milliseconds after a login that an approval given with it may wait
PAGE_SCOPES = ("approver:decide", "audit:read")


class NewToken(NamedTuple):
    """A token, the one time it can be read."""

    secret: str
    record: TokenRecord


def create_token(
    turn: Transaction, subject: str, scopes: Iterable[str], *, by: str, seconds: int | None = None
) -> NewToken:
    secret = make_secret()
    expires = None if seconds is None else turn.now + seconds * 1000
    record = make_record(secret, subject, scopes, now=turn.now, by=by, expires=expires)
    turn.store.rows("put_token", msgspec.structs.asdict(record))
    turn.log(
        "token_created",
        by,
        subject=record.subject,
        scopes=record.scopes,
        token=record.id,
        digest=record.digest,
        expires=expires,
    )
    return NewToken(secret, record)


def revoke_token(turn: Transaction, id: str, *, by: str) -> str:
    """From now on it is unknown. Whose it was."""
    found = turn.store.row("revoke_token", {"id": id, "now": turn.now})
    if found is None:
        raise NotFound(f"no token {id} that is still good; see: warmstart confirm token list")
    turn.log("token_revoked", by, subject=found[0], token=id)
    return str(found[0])


def list_tokens(store: ConfirmStore) -> list[TokenRecord]:
    return [TokenRecord(*row) for row in store.rows("tokens")]


def find_identity(store: ConfirmStore, secret: str, now: int) -> Identity | None:
    """Whose token that is."""
    found = store.row("token_by_digest", {"digest": digest_secret(secret)})
    return recognise(secret, TokenRecord(*found) if found else None, now)


# People on the page


class BrowserSession(NamedTuple):
    """A login on the page; the secret goes into the cookie."""

    secret: str
    identity: Identity
    expires: int


def create_login(turn: Transaction, subject: str, scopes: Iterable[str] = PAGE_SCOPES, *, by: str) -> str:
    """The code of a link that logs its opener in, once."""
    name, wanted = check_subject(subject), " ".join(check_scopes(scopes))
    code = make_secret("")
    told: dict[str, Any] = {
        "digest": digest_secret(code),
        "subject": name,
        "scopes": wanted,
        "expires": turn.now + LINK_LASTS * 1000,
    }
    turn.store.rows("put_login", told | {"created": turn.now})
    turn.log("login_link_created", by, **told)
    return code


def log_in(turn: Transaction, code: str) -> BrowserSession | ConfirmationError:
    link = digest_secret(code)
    found = turn.store.row("use_login", {"digest": link, "now": turn.now})
    if found is None:
        return Unauthorized(
            "the link was used before or is too old; make one: warmstart confirm login", code="bad_login"
        )
    subject, scopes = found
    secret = make_secret("")
    identity = Identity(subject, name_key(subject), frozenset(scopes.split()), make_id(), by_session=True)
    expires = turn.now + SESSION_LASTS * 1000
    told: dict[str, Any] = {"digest": digest_secret(secret), "scopes": scopes, "expires": expires}
    row = {"id": identity.credential, "subject": subject, "subject_key": identity.key, "created": turn.now}
    turn.store.rows("put_session", told | row)
    turn.log("login", identity, link=link, **told)
    return BrowserSession(secret, identity, expires)


def find_session(store: ConfirmStore, secret: str, now: int) -> BrowserSession | None:
    found = store.row("session", {"digest": digest_secret(secret)})
    if found is None:
        return None
    id, _, subject, key, scopes, _, expires, ended = found
    if ended is not None or expires <= now:
        return None
    return BrowserSession(secret, Identity(subject, key, frozenset(scopes.split()), id, by_session=True), expires)


def log_out(turn: Transaction, who: Identity) -> None:
    if turn.store.row("end_session", {"id": who.credential, "now": turn.now}) is not None:
        turn.log("logout", who)


def end_sessions(turn: Transaction, subject: str, *, by: str) -> int:
    """Shut somebody out: every login on the page, and what was approved with them no longer counts. How many there were."""
    since = turn.now - _STILL_OF_USE
    ended = turn.store.rows("end_sessions_of", {"subject_key": name_key(subject), "now": turn.now, "since": since})
    count = sum(bool(live) for _, live in ended)
    turn.log("sessions_ended", by, subject=subject, count=count, logins=[id for id, _ in ended])
    return count


# What was allowed in advance


class NewAllowance(NamedTuple):
    """One action in one session, for a while."""

    action: str
    key: str
    session_key: str
    seconds: int
    requester: str = ""
    digest: str = ""


def add_allowance(turn: Transaction, new: NewAllowance, by: Identity | str) -> Allowance | ConfirmationError:
    if turn.policy.is_high_risk(new.action):
        return Conflict(f"{new.action} is high-risk: it is asked about every time", code="high_risk")
    entry = Allowance(
        id=make_id(),
        action=new.action,
        action_key=new.key,
        session_key=new.session_key,
        requester_key=name_key(new.requester),
        digest=new.digest,
        created=turn.now,
        created_by=by if isinstance(by, str) else by.subject,
        expires=turn.now + new.seconds * 1000,
        removed=None,
    )
    turn.store.rows("put_allowance", msgspec.structs.asdict(entry))
    turn.log(
        "whitelisted",
        by,
        action=new.action,
        entry=entry.id,
        session=new.session_key,
        requester=new.requester,
        digest=new.digest,
        expires=entry.expires,
    )
    return entry


def remove_allowance(turn: Transaction, id: str, by: Identity | str) -> str | NotFound:
    """The action that it allowed."""
    found = turn.store.row("remove_allowance", {"id": id, "now": turn.now})
    if found is None:
        return NotFound(f"no whitelist entry {id[:40]}")
    turn.log("whitelist_removed", by, action=found[0], entry=id)
    return str(found[0])


def list_allowances(store: ConfirmStore, now: int) -> list[Allowance]:
    return [Allowance(*row) for row in store.rows("allowances", {"now": now})]
