"""What the audit tells of tokens, login links, logins and the whitelist: see playing.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from warmstart.confirm.audit.expected_rows import ReplayState, Told, pick, plain
from warmstart.confirm.model import AuditEntry
from warmstart.confirm.policy import actions
from warmstart.names import name_key

find_person = lru_cache(4096)(name_key)  # as names are compared
find_action = lru_cache(4096)(actions.key_of)


def _token_created(book: ReplayState, entry: AuditEntry, told: Told) -> Iterator[str]:
    subject, id = str(told.get("subject")), str(told.get("token"))
    if "born" in book.get("token", id):
        yield "makes a token that was made before"
    facts = {
        "born": entry.sequence,
        "subject": subject,
        "subject_key": find_person(subject),
        "created": entry.at,
        "created_by": entry.actor,
        **pick(told, "scopes", "digest", "expires"),
    }
    book.note("token", id, facts)


def _token_revoked(book: ReplayState, entry: AuditEntry, told: Told) -> Iterable[str]:
    id = str(told.get("token"))
    book.note("token", id, book.get("token", id) | {"revoked": entry.at})
    return ()


def _link_created(book: ReplayState, entry: AuditEntry, told: Told) -> Iterable[str]:
    facts = {"born": entry.sequence, "created": entry.at, **pick(told, "subject", "scopes", "expires")}
    book.note("login link", str(told.get("digest")), facts)
    return ()


def _logged_in(book: ReplayState, entry: AuditEntry, told: Told) -> Iterator[str]:
    facts = {
        "born": entry.sequence,
        "subject": entry.actor,
        "subject_key": find_person(entry.actor),
        "created": entry.at,
        **pick(told, "digest", "scopes", "expires"),
    }
    book.note("login", entry.credential, facts)
    link = book.get("login link", str(told.get("link")))
    if "used" in link:
        yield "logs in by a link that was used before"
    book.note("login link", str(told.get("link")), link | {"used": entry.at})


def _logged_out(book: ReplayState, entry: AuditEntry, told: Told) -> Iterable[str]:
    book.note("login", entry.credential, {"ended": entry.at} | book.get("login", entry.credential))
    return ()


def _shut_out(book: ReplayState, entry: AuditEntry, told: Told) -> Iterable[str]:
    """Every login of somebody."""
    named = told.get("logins")
    for id in map(str, named if isinstance(named, list) else ()):
        book.note("login", id, {"ended": entry.at} | book.get("login", id) | {"scopes": ""})
    return ()


# What was allowed in advance


def _whitelisted(book: ReplayState, entry: AuditEntry, told: Told) -> Iterable[str]:
    facts = {
        "born": entry.sequence,
        "action": entry.action,
        "action_key": find_action(entry.action),
        "session_key": plain(told.get("session")),
        "requester_key": find_person(str(told.get("requester", ""))),
        "created": entry.at,
        "created_by": entry.actor,
        **pick(told, "digest", "expires"),
    }
    book.note("whitelist entry", str(told.get("entry")), facts)
    return ()


def _whitelist_removed(book: ReplayState, entry: AuditEntry, told: Told) -> Iterable[str]:
    id = str(told.get("entry"))
    book.note("whitelist entry", id, book.get("whitelist entry", id) | {"removed": entry.at})
    return ()


ACCESS = {
    "token_created": _token_created,
    "token_revoked": _token_revoked,
    "login_link_created": _link_created,
    "login": _logged_in,
    "logout": _logged_out,
    "sessions_ended": _shut_out,
    "whitelisted": _whitelisted,
    "whitelist_removed": _whitelist_removed,
}
